package mcp

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/durward-gateway/durward/internal/credential/connection"
	"github.com/durward-gateway/durward/internal/gateway/inbound"
	"github.com/durward-gateway/durward/internal/identity/authn"
	"github.com/durward-gateway/durward/internal/mcp/conversation"
	"github.com/durward-gateway/durward/internal/mcp/legacysse"
	"github.com/durward-gateway/durward/internal/mcp/session"
	"github.com/durward-gateway/durward/internal/mcp/streams"
	"github.com/durward-gateway/durward/internal/policy/approval"
	"github.com/durward-gateway/durward/internal/proxy/forward"
	"github.com/durward-gateway/durward/modules/app"
	"github.com/durward-gateway/durward/modules/app/metrics"
	"github.com/durward-gateway/durward/modules/app/settings"
	"github.com/durward-gateway/durward/storage"
)

// tagged is a seal for tests: a sealed value carries the facts that it is bound to, and a secret tag.
type tagged struct{ tag []byte }

func newTagged() tagged {
	t := tagged{make([]byte, 16)}
	_, _ = rand.Read(t.tag)
	return t
}

func (s tagged) Seal(plain, ad []byte) string {
	return base64.RawURLEncoding.EncodeToString(plain) + "." + base64.RawURLEncoding.EncodeToString(append(bytes.Clone(s.tag), ad...))
}

func (s tagged) Open(sealed string, ad []byte) ([]byte, error) {
	plain, _, _ := strings.Cut(sealed, ".")
	p, err := base64.RawURLEncoding.DecodeString(plain)
	if err != nil || s.Seal(p, ad) != sealed {
		return nil, errors.New("not ours")
	}
	return p, nil
}

// legacy is a handler in front of an upstream of 2024-11-05 at https://upstream.example/base/sse.
type legacy struct {
	*Handler
	call *app.Call
	got  *http.Request // the last that came to the upstream
}

func newLegacy(limits forward.Limits, answer func(*http.Request) *http.Response) *legacy {
	l := new(legacy)
	l.Handler = &Handler{Carrier: app.Carrier{Logger: zap.NewNop(), Forwarder: forward.New(forward.Over(roundTrip(func(r *http.Request) (*http.Response, error) {
		l.got = r
		return answer(r), nil
	})), limits)}}
	l.call = &app.Call{
		Decision: &app.Decision{Off: true},
		Caller:   &authn.Caller{OrganizationID: "o", UserID: "u", Agent: "a"}, Credentials: noCredential{},
		Server: &storage.Server{ID: "s", Slug: "demo", Entry: storage.DirectoryEntry{URL: "https://upstream.example/base/sse", Protocol: storage.ProtocolMCP}},
		Core: &app.Core{Streams: new(streams.Registry), Sessions: session.New(newTagged(), time.Now), Questions: session.NewQuestions(plainMACs{}), Desk: new(legacysse.Desk), Sizes: settings.Sizes{MCP: 1 << 20, Event: 1 << 20}, Metrics: &metrics.Traffic{
			Calls:           prometheus.NewCounterVec(prometheus.CounterOpts{Name: "calls_total", Help: "Calls."}, []string{"family", "result"}),
			UpstreamSeconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "seconds", Help: "Waits."}, []string{"family"}),
			Streams:         prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "streams", Help: "Streams."}, []string{"family"}),
		}},
	}
	l.call.Core.Asks = approval.NewStates(newTagged(), publicURL, time.Now)
	l.call.Core.BindReader()
	l.call.Limits.Exempt()
	return l
}

// send serves one request; it returns true when the connection was broken off.
func (l *legacy) send(t *testing.T, method, target, body string, header ...string) (*httptest.ResponseRecorder, bool) {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, target, strings.NewReader(body))
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	l.got = nil
	call := *l.call
	aborted := func() (aborted bool) {
		defer func() { aborted = recover() == http.ErrAbortHandler }()
		if err := l.ServeHTTP(w, app.WithCall(r, &call), nil); err != nil {
			t.Error(err)
		}
		return false
	}()
	return w, aborted
}

func events(body io.Reader) *http.Response {
	return &http.Response{StatusCode: http.StatusOK, ContentLength: -1, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: io.NopCloser(body)}
}

const answerOfTools = `{"jsonrpc":"2.0","id":1,"result":{"tools":[]}}`

const listTools = `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`

// TestLegacySession checks that the stream announces an address of ours, and what is posted there goes where the
// upstream said.
func TestLegacySession(t *testing.T) {
	receipt := &http.Response{StatusCode: http.StatusAccepted, ContentLength: 8, Header: http.Header{}}
	l := newLegacy(forward.Limits{}, func(r *http.Request) *http.Response {
		if r.Method == http.MethodPost {
			receipt.Body = io.NopCloser(strings.NewReader("Accepted"))
			return receipt
		}
		return events(strings.NewReader("event: endpoint\ndata: messages?sessionId=1\n\nevent: message\ndata: " + answerOfTools + "\n\n"))
	})
	w, aborted := l.send(t, http.MethodGet, "/mcp/demo?x=1", "", "Accept", "text/event-stream")
	before, rest, _ := strings.Cut(w.Body.String(), "\n\n")
	address := strings.TrimPrefix(before, "event: endpoint\ndata: ")
	if aborted || w.Code != http.StatusOK || !strings.HasPrefix(address, "/mcp/demo?sessionId=") || rest != "event: message\ndata: "+answerOfTools+"\n\n" {
		t.Fatalf("%d %s, aborted %v", w.Code, w.Body, aborted)
	}

	if w, _ := l.send(t, http.MethodPost, address+"&other=1", listTools); w.Code != http.StatusAccepted || w.Body.Len() > 0 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if l.got == nil || l.got.URL.String() != "https://upstream.example/base/messages?sessionId=1" {
		t.Errorf("posted to %v", l.got)
	}
	receipt = &http.Response{StatusCode: http.StatusAccepted, Header: http.Header{}}
	if w, _ := l.send(t, http.MethodPost, address, listTools); w.Code != http.StatusAccepted {
		t.Errorf("an empty receipt: %d %s", w.Code, w.Body)
	}
	receipt = &http.Response{StatusCode: http.StatusOK, ContentLength: -1, Header: http.Header{"Content-Type": {"text/html"}}}
	if w, _ := l.send(t, http.MethodPost, address, listTools); w.Code != http.StatusBadGateway {
		t.Errorf("a page: %d %s", w.Code, w.Body)
	}

	// Other revisions have no such parameter, and neither have other methods.
	receipt = &http.Response{StatusCode: http.StatusAccepted, ContentLength: -1, Header: http.Header{"Content-Type": {"application/json"}}}
	modern := `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`
	l.send(t, http.MethodPost, "/mcp/demo?sessionId=x", modern, "MCP-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/list")
	if l.got == nil || l.got.URL.Path != "/base/sse" {
		t.Errorf("2026-07-28: %v", l.got)
	}

	for _, tc := range []struct {
		name, target string
		header       []string
		want         int
		change       func(*app.Call)
	}{
		{"altered", address[:len(address)-1], nil, http.StatusNotFound, nil},
		{"the upstream's own", "/mcp/demo?sessionId=1", nil, http.StatusNotFound, nil},
		{"empty", "/mcp/demo?sessionId=", nil, http.StatusNotFound, nil},
		{"twice", address + address[strings.Index(address, "?"):][1:], nil, http.StatusNotFound, nil},
		{"twice, apart", address + "&" + address[strings.Index(address, "?")+1:], nil, http.StatusNotFound, nil},
		{"with a session in the header", address, []string{"Mcp-Session-Id", "x"}, http.StatusBadRequest, nil},
		{"another user", address, nil, http.StatusNotFound, func(c *app.Call) { c.Caller = &authn.Caller{OrganizationID: "o", UserID: "u2", Agent: "a"} }},
		{"another agent", address, nil, http.StatusNotFound, func(c *app.Call) { c.Caller = &authn.Caller{OrganizationID: "o", UserID: "u"} }},
		{"another server", address, nil, http.StatusNotFound, func(c *app.Call) {
			c.Server = &storage.Server{ID: "s2", Slug: "demo", Entry: c.Server.Entry}
		}},
		{"the server has moved", address, nil, http.StatusNotFound, func(c *app.Call) {
			c.Server = &storage.Server{ID: "s", Slug: "demo", Entry: storage.DirectoryEntry{URL: "https://moved.example/base/sse", Protocol: storage.ProtocolMCP}}
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			kept := *l.call
			defer func() { *l.call = kept }()
			if tc.change != nil {
				tc.change(l.call)
			}
			if w, _ := l.send(t, http.MethodPost, tc.target, listTools, tc.header...); w.Code != tc.want || l.got != nil {
				t.Errorf("%d %s; at the upstream: %v", w.Code, w.Body, l.got)
			}
		})
	}
}

// TestLegacyRefusals checks that a stream that announces what is not taken is an upstream error, or is cut when it has
// begun.
func TestLegacyRefusals(t *testing.T) {
	const news = `{"jsonrpc":"2.0","method":"notifications/message"}`
	silent, feed := io.Pipe()
	defer feed.Close()
	late, feedLate := io.Pipe()
	for _, tc := range []struct {
		name   string
		stream io.Reader
		header []string
		limits forward.Limits
		want   int
		cut    bool
		body   string
		result string
	}{
		{"another origin", strings.NewReader("event: endpoint\ndata: https://evil.example/\n\n"), nil, forward.Limits{}, http.StatusBadGateway, false, "", "upstream_error"},
		{"once more", strings.NewReader("data: " + news + "\n\nevent: endpoint\ndata: /mcp/other\n\n"), nil, forward.Limits{}, http.StatusOK, true, "data: " + news + "\n\n", "cut"},
		{"never", silent, nil, forward.Limits{Idle: 20 * time.Millisecond}, http.StatusBadGateway, false, "", "upstream_error"},
		{"never, and too late for a status", late, nil, forward.Limits{Idle: 2 * endpointWait}, http.StatusOK, true, "", "cut"},
		{"on a stream of a session it means nothing", strings.NewReader("event: endpoint\ndata: //x\n\ndata: " + news + "\n\n"), []string{"Mcp-Session-Id", "ours"}, forward.Limits{}, http.StatusOK, false, "data: " + news + "\n\n", "ok"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l := newLegacy(tc.limits, func(*http.Request) *http.Response { return events(closer{tc.stream}) })
			for i, value := range tc.header {
				if value == "ours" {
					sealed, err := l.call.Core.Sessions.Seal(session.Session{Upstream: "u"}, session.Binding{Organization: "o", User: "u", Agent: "a", Server: "s"})
					if err != nil {
						t.Fatal(err)
					}
					tc.header[i] = sealed
				}
			}
			if tc.limits.Idle > 0 {
				// The pipes know nothing of contexts: what an upstream's connection does then is done here.
				timer := time.AfterFunc(tc.limits.Idle+20*time.Millisecond, func() {
					_ = feed.CloseWithError(io.ErrUnexpectedEOF)
					if tc.stream == late {
						_ = feedLate.CloseWithError(io.ErrUnexpectedEOF)
					}
				})
				defer timer.Stop()
			}
			w, cut := l.send(t, http.MethodGet, "/mcp/demo", "", tc.header...)
			if w.Code != tc.want || cut != tc.cut || (w.Code == http.StatusOK && w.Body.String() != tc.body) {
				t.Errorf("%d %q, cut %v", w.Code, w.Body, cut)
			}
			if got := counted(t, l.call.Core.Metrics.Calls); len(got) != 1 || got[tc.result] != 1 {
				t.Errorf("counted %v, want %s", got, tc.result)
			}
			if strings.Contains(w.Body.String(), "evil") || w.Code == http.StatusBadGateway && w.Header().Get("Content-Type") != "application/json" {
				t.Errorf("%v %s", w.Header(), w.Body)
			}
		})
	}
}

// lostConnection is the credential source of a user whose connection has ended.
type lostConnection struct{ app.CredentialSource }

func (lostConnection) Credential(context.Context) (connection.Credential, error) {
	return connection.Credential{}, &connection.NotConnectedError{Reason: "the provider has ended the access"}
}

// TestLegacyAnswers checks that an answer of the gateway's own comes on the client's stream: clients of 2024-11-05 read
// no answer to a POST, and would wait for one until their own timeout. Without the stream, the status says so.
func TestLegacyAnswers(t *testing.T) {
	const question = `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"`
	for _, tc := range []struct {
		name, tool, says string
		guideOnly        bool
		credentials      app.CredentialSource
	}{
		{"not connected any more", "x", textLost, false, lostConnection{}},
		{"a call that nobody judged, connected meanwhile", "x", textConnected, true, noCredential{}},
		{"a call of the gateway's tool, connected meanwhile", conversation.ConnectTool, textConnected, true, noCredential{}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l := newLegacy(forward.Limits{}, func(*http.Request) *http.Response { return nil })
			l.call.Core.Guide, l.call.Credentials, l.call.Decision = true, tc.credentials, &app.Decision{Off: true, GuideOnly: tc.guideOnly}
			sealed, err := l.call.Core.Sessions.SealEndpoint("https://upstream.example/base/messages", l.call.Binding())
			if err != nil {
				t.Fatal(err)
			}
			send := func() *httptest.ResponseRecorder {
				w, _ := l.send(t, http.MethodPost, "/mcp/demo?"+inbound.EndpointParameter+"="+sealed, question+tc.tool+`"}}`)
				if l.got != nil {
					t.Error("the upstream was asked")
				}
				return w
			}
			if w := send(); w.Code < http.StatusBadRequest || !strings.Contains(w.Body.String(), tc.says) {
				t.Errorf("without a stream: %d %s", w.Code, w.Body)
			}
			silent, end := io.Pipe()
			box := l.call.Core.Desk.NewBox()
			box.Open(sealed)
			stream := box.Merge(silent, 1<<20)
			defer func() {
				_ = end.Close()
				stream.Close()
			}()
			if w := send(); w.Code != http.StatusAccepted || w.Body.Len() > 0 {
				t.Fatalf("%d %s", w.Code, w.Body) // nothing would come on the stream
			}
			text := make([]byte, 1<<16)
			n, err := stream.Read(text)
			if got := string(text[:n]); err != nil || !strings.Contains(got, `"id":7`) || !strings.Contains(got, tc.says) {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
}

// closer hides everything of a reader but Read.
type closer struct{ io.Reader }
