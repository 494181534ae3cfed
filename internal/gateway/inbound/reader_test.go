package inbound_test

import (
	"encoding/base64"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/durward-gateway/durward/internal/gateway/inbound"
	"github.com/durward-gateway/durward/internal/mcp/jsonrpc"
	"github.com/durward-gateway/durward/internal/mcp/legacysse"
	"github.com/durward-gateway/durward/internal/mcp/session"
	"github.com/durward-gateway/durward/storage"
)

// plainSeal seals in the clear, with the facts that a value is bound to: nobody attacks these tests. Its Open fails with err.
type plainSeal struct{ err error }

func (s *plainSeal) Seal(plain, ad []byte) string {
	return base64.RawURLEncoding.EncodeToString(plain) + "." + base64.RawURLEncoding.EncodeToString(ad)
}

func (s *plainSeal) Open(sealed string, ad []byte) ([]byte, error) {
	if s.err != nil {
		return nil, s.err
	}
	text, _, _ := strings.Cut(sealed, ".")
	plain, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || s.Seal(plain, ad) != sealed {
		return nil, errors.New("not ours")
	}
	return plain, nil
}

// plainMACs makes digests that anybody can make.
type plainMACs struct{}

func (plainMACs) AppendMAC(to, message []byte) []byte {
	sum := make([]byte, 8)
	for i, b := range message {
		sum[i%8] = sum[i%8]*31 + b
	}
	return append(to, sum...)
}

func (m plainMACs) CheckMAC(message, tag []byte) bool {
	return string(m.AppendMAC(nil, message)) == string(tag)
}

// parties are a user, an agent and a server.
type parties struct{ user, server string }

func (p parties) Binding() session.Binding {
	return session.Binding{Organization: "acme", User: p.user, Agent: "agent", Server: "s1"}
}

func (p parties) ServerURL() (*url.URL, error) { return url.Parse(p.server) }

// noting are parties who say when they get a message.
type noting struct {
	parties
	note func(*jsonrpc.Message)
}

func (n noting) NoteMessage(m *jsonrpc.Message) { n.note(m) }

var alice = parties{"alice", "https://upstream.example/sse"}

// bench holds a reader and the parts that its requests need.
type bench struct {
	*inbound.Reader
	seal      *plainSeal
	sessions  *session.Codec
	questions *session.Questions
	desk      *legacysse.Desk
	shed      []bool // lasting, of each look at the memory
	short     int    // the look at which memory is short, from 1; 0: none
	unread    []error
	noted     []string // the methods of messages that were noted before an answer
}

func newBench() *bench {
	b := &bench{seal: new(plainSeal), questions: session.NewQuestions(plainMACs{}), desk: new(legacysse.Desk)}
	b.sessions = session.New(b.seal, func() time.Time { return time.Unix(1_800_000_000, 0) })
	b.Reader = inbound.New(inbound.Options{
		MaxBody: 1 << 10, Sessions: b.sessions, Questions: b.questions, Desk: b.desk,
		Asked: func(id []byte) bool { return string(id) == `"gateway"` },
		Shed: func(w http.ResponseWriter, _ *http.Request, lasting bool) bool {
			b.shed = append(b.shed, lasting)
			if len(b.shed) != b.short {
				return false
			}
			w.WriteHeader(http.StatusServiceUnavailable)
			return true
		},
		Unread: func(err error) { b.unread = append(b.unread, err) },
	})
	return b
}

// request makes a request with pairs of headers.
func request(t *testing.T, method, target, body string, header ...string) *http.Request {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, target, strings.NewReader(body))
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	return r
}

// relabelled returns the request as one of plain text.
func relabelled(r *http.Request) *http.Request {
	r.Header.Set("Content-Type", "text/plain")
	return r
}

func (b *bench) read(r *http.Request) (*inbound.Request, *httptest.ResponseRecorder, string) {
	in, w := new(inbound.Request), httptest.NewRecorder()
	return in, w, b.Read(w, r, noting{alice, func(m *jsonrpc.Message) {
		if w.Body.Len() == 0 && len(w.Header()) == 0 {
			b.noted = append(b.noted, m.Method)
		}
	}}, in)
}

// sealed returns the sealed form of a session of a user.
func (b *bench) sealed(t *testing.T, s session.Session, who parties) string {
	t.Helper()
	id, err := b.sessions.Seal(s, who.Binding())
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func (b *bench) address(t *testing.T, endpoint string, who parties) string {
	t.Helper()
	sealed, err := b.sessions.SealEndpoint(endpoint, who.Binding())
	if err != nil {
		t.Fatal(err)
	}
	return "/mcp/demo?" + inbound.EndpointParameter + "=" + url.QueryEscape(sealed)
}

const ping = `{"jsonrpc":"2.0","id":7,"method":"ping"}`

// TestRead checks that what must not be carried is answered with its status, and has the outcome "refused".
func TestRead(t *testing.T) {
	t.Parallel()
	b := newBench()
	id := b.sealed(t, session.Session{Upstream: "u", ProtocolVersion: "2025-06-18"}, alice)
	older := b.sealed(t, session.Session{Upstream: "u", ProtocolVersion: "2025-03-26"}, alice)
	of2026 := []string{"MCP-Protocol-Version", "2026-07-28"}
	ping2026 := `{"jsonrpc":"2.0","id":7,"method":"ping","params":{"_meta":{"` + jsonrpc.MetaProtocolVersion + `":"2026-07-28"}}}`
	address := b.address(t, "https://upstream.example/messages", alice)
	_, query, _ := strings.Cut(address, "?")
	for name, tc := range map[string]struct {
		r      *http.Request
		status int    // 0: it goes on
		text   string // in the answer
	}{
		"a message":                       {request(t, "POST", "/mcp/demo", ping), 0, ""},
		"a stream":                        {request(t, "GET", "/mcp/demo", ""), 0, ""},
		"the end of a session":            {request(t, "DELETE", "/mcp/demo", "", "Mcp-Session-Id", id), 0, ""},
		"another method":                  {request(t, "PUT", "/mcp/demo", ping), 405, ""},
		"a tag with unusual characters":   {request(t, "POST", "/mcp/demo", ping, "X-Trace-Session-Id", "a b"), 400, "-32600"},
		"no JSON":                         {request(t, "POST", "/mcp/demo", "{"), 400, "-32700"},
		"no message":                      {request(t, "POST", "/mcp/demo", `{"jsonrpc":"2.0","id":7}`), 400, "-32600"},
		"another media type":              {relabelled(request(t, "POST", "/mcp/demo", ping)), 415, ""},
		"a large body":                    {request(t, "POST", "/mcp/demo", `"`+strings.Repeat("x", 1<<10)+`"`), 413, ""},
		"an encoded body":                 {request(t, "POST", "/mcp/demo", ping, "Content-Encoding", "gzip"), 415, ""},
		"a session":                       {request(t, "POST", "/mcp/demo", ping, "Mcp-Session-Id", id), 0, ""},
		"two sessions":                    {request(t, "POST", "/mcp/demo", ping, "Mcp-Session-Id", id, "Mcp-Session-Id", id), 404, "initialize"},
		"another user's session":          {request(t, "POST", "/mcp/demo", ping, "Mcp-Session-Id", b.sealed(t, session.Session{Upstream: "u"}, parties{user: "bob"})), 404, "initialize"},
		"an unsealed session":             {request(t, "POST", "/mcp/demo", ping, "Mcp-Session-Id", "u"), 404, "initialize"},
		"an address":                      {request(t, "POST", b.address(t, "https://upstream.example/messages?id=1", alice), ping), 0, ""},
		"an address and a session":        {request(t, "POST", b.address(t, "https://upstream.example/messages", alice), ping, "Mcp-Session-Id", id), 400, `"id":7`},
		"two addresses":                   {request(t, "POST", address+"&"+query, ping), 404, "GET"},
		"a stream with another's address": {request(t, "GET", "/mcp/demo?sessionId=a", ""), 0, ""},
		"another user's address":          {request(t, "POST", b.address(t, "https://upstream.example/messages", parties{user: "bob"}), ping), 404, "GET"},
		"an address elsewhere":            {request(t, "POST", b.address(t, "https://other.example/messages", alice), ping), 404, "GET"},
		"a batch":                         {request(t, "POST", "/mcp/demo", "["+ping+"]"), 0, ""},
		"a batch of its revision":         {request(t, "POST", "/mcp/demo", "["+ping+"]", "MCP-Protocol-Version", "2025-03-26", "Mcp-Session-Id", older), 0, ""},
		"a batch of another revision":     {request(t, "POST", "/mcp/demo", "["+ping+"]", "MCP-Protocol-Version", "2025-06-18"), 400, inbound.LastBatchVersion},
		"a batch in another's session":    {request(t, "POST", "/mcp/demo", "["+ping+"]", "Mcp-Session-Id", id), 400, inbound.LastBatchVersion},
		"a body without its revision":     {request(t, "POST", "/mcp/demo", ping, of2026...), 400, jsonrpc.MetaProtocolVersion},
		"headers that miss a method":      {request(t, "POST", "/mcp/demo", ping2026, of2026...), 400, "the Mcp-Method header is missing"},
		"an id of a session in 2026":      {request(t, "GET", "/mcp/demo", "", append(of2026, "Mcp-Session-Id", "u")...), 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			in, w, outcome := b.read(tc.r)
			if tc.status == 0 {
				if outcome != "" || w.Body.Len() > 0 || in.HTTP != tc.r {
					t.Errorf("%q, %d %s", outcome, w.Code, w.Body)
				}
				return
			}
			if outcome != "refused" || w.Code != tc.status || !strings.Contains(w.Body.String(), tc.text) {
				t.Errorf("%q, %d %s", outcome, w.Code, w.Body)
			}
		})
	}
	if len(b.unread) > 0 {
		t.Errorf("sessions that could not be read: %v", b.unread)
	}
}

// TestOrder checks which of several faults a request is answered for: the one that is found with the least work.
func TestOrder(t *testing.T) {
	t.Parallel()
	b := newBench()
	own := b.sealed(t, session.Session{Upstream: "u", ProtocolVersion: "2025-06-18"}, alice)
	answer := `{"jsonrpc":"2.0","id":1,"result":{}}`
	for i, tc := range []struct {
		r      *http.Request
		status int
		text   string
	}{
		{relabelled(request(t, "PUT", "/mcp/demo?sessionId=a", "{", "X-Session-Id", "a b", "Mcp-Session-Id", "u")), 405, ""},
		{relabelled(request(t, "POST", "/mcp/demo?sessionId=a", "{", "X-Session-Id", "a b", "Mcp-Session-Id", "u")), 400, "-32600"},
		{relabelled(request(t, "POST", "/mcp/demo?sessionId=a", "{", "Mcp-Session-Id", "u")), 415, ""},
		{request(t, "POST", "/mcp/demo?sessionId=a", "{"+strings.Repeat(" ", 1<<10), "Mcp-Session-Id", "u"), 413, ""},
		{request(t, "POST", "/mcp/demo?sessionId=a", "{", "Mcp-Session-Id", "u"), 400, "-32700"},
		{request(t, "POST", "/mcp/demo?sessionId=a", "["+answer+"]", "Mcp-Session-Id", "u", "MCP-Protocol-Version", "2025-06-18"), 400, "two sessions"},
		{request(t, "POST", "/mcp/demo", "["+answer+"]", "Mcp-Session-Id", "u", "MCP-Protocol-Version", "2025-06-18"), 404, "initialize"},
		{request(t, "POST", "/mcp/demo", "["+answer+"]", "Mcp-Session-Id", own), 400, inbound.LastBatchVersion},
		{request(t, "POST", "/mcp/demo", answer, "Mcp-Session-Id", own, "MCP-Protocol-Version", "2025-06-18", "MCP-Protocol-Version", "2025-06-18"), 400, "more than once"},
	} {
		in, w, outcome := b.read(tc.r)
		if outcome != "refused" || w.Code != tc.status || !strings.Contains(w.Body.String(), tc.text) {
			t.Errorf("%d: %q, %d %s", i, outcome, w.Code, w.Body)
		}
		if allow := w.Header().Get("Allow"); (allow == "GET, POST, DELETE") != (tc.status == http.StatusMethodNotAllowed) {
			t.Errorf("%d: allowed are %q", i, allow)
		}
		if in.Unasked {
			t.Errorf("%d: the answer of a refused request was judged", i)
		}
	}
}

// TestNoted checks that a message is noted before its request is refused: headers of the refusal can name its method.
func TestNoted(t *testing.T) {
	t.Parallel()
	initialize := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`
	for name, tc := range map[string]struct {
		r      *http.Request
		short  int
		status int // 200: it goes on
		noted  []string
	}{
		"goes on":             {request(t, "POST", "/mcp/demo", ping), 0, 200, []string{"ping"}},
		"unknown session":     {request(t, "POST", "/mcp/demo", ping, "Mcp-Session-Id", "u"), 0, 404, []string{"ping"}},
		"unknown address":     {request(t, "POST", "/mcp/demo?sessionId=a", ping), 0, 404, []string{"ping"}},
		"header mismatch":     {request(t, "POST", "/mcp/demo", ping, "MCP-Protocol-Version", "2026-07-28"), 0, 400, []string{"ping"}},
		"short of memory":     {request(t, "POST", "/mcp/demo", initialize), 2, 503, []string{"initialize"}},
		"not read for memory": {request(t, "POST", "/mcp/demo", initialize), 1, 503, nil},
		"no message":          {request(t, "POST", "/mcp/demo", `{"jsonrpc":"2.0","id":7,"method":"ping"`), 0, 400, nil},
		"a batch":             {request(t, "POST", "/mcp/demo", "["+ping+"]"), 0, 200, nil},
		"a stream":            {request(t, "GET", "/mcp/demo", ""), 0, 200, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench()
			b.short = tc.short
			if _, w, _ := b.read(tc.r); w.Code != tc.status || !slices.Equal(b.noted, tc.noted) {
				t.Errorf("%d %s, noted %q", w.Code, w.Body, b.noted)
			}
		})
	}
}

// TestReadFacts checks the facts of a request that was read.
func TestReadFacts(t *testing.T) {
	t.Parallel()
	b := newBench()
	id := b.sealed(t, session.Session{Upstream: "u", ProtocolVersion: "2025-06-18"}, alice)
	in, _, _ := b.read(request(t, "POST", "/mcp/demo", `{"jsonrpc":"2.0","id":"a\u0062","method":"tools/call","params":{"name":"pay","arguments":{"n":1}}}`, "Mcp-Session-Id", id, "X-Trace-Session-Id", "tag"))
	if in.Session.Upstream != "u" || in.Version() != "2025-06-18" || in.Tracking != "tag" || string(in.ID()) != `"a\u0062"` || in.OpensSession() || in.Modern() {
		t.Errorf("%+v", in)
	}
	if method, name, arguments := in.Named(); method != "tools/call" || name != "pay" || string(arguments) != `{"n":1}` {
		t.Errorf("%s %s %s", method, name, arguments)
	}
	if !in.Asks(jsonrpc.IDValue([]byte(`"ab"`))) || in.Asks(jsonrpc.IDValue([]byte(`1`))) {
		t.Error("the id is not its own")
	}
	for text, want := range map[string][3]string{
		`{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"file:///a"}}`: {"resources/read", "file:///a"},
		`[` + ping + `]`:                       {},
		`{"jsonrpc":"2.0","id":1,"result":{}}`: {"response"},
	} {
		in, _, _ := b.read(request(t, "POST", "/mcp/demo", text))
		if method, name, arguments := in.Named(); [3]string{method, name, string(arguments)} != want {
			t.Errorf("%s: %q %q %q", text, method, name, arguments)
		}
	}
	in, _, _ = b.read(request(t, "DELETE", "/mcp/demo", ""))
	if method, _, _ := in.Named(); method != "DELETE" {
		t.Errorf("%q", method)
	}
	in, _, _ = b.read(request(t, "POST", b.address(t, "https://upstream.example/messages?id=1", alice), ping))
	if in.Endpoint == nil || in.Endpoint.String() != "https://upstream.example/messages?id=1" {
		t.Errorf("%v", in.Endpoint)
	}
	if refused, w, _ := b.read(request(t, "POST", "/mcp/demo", `[`+ping+`,{`)); w.Code != http.StatusBadRequest || len(refused.Message.Messages) > 0 {
		t.Errorf("%d, and messages of a refused body: %v", w.Code, refused.Message.Messages)
	}
}

// TestLastEventID checks that the id of an event goes upstream only with a session that the upstream knows (M25).
func TestLastEventID(t *testing.T) {
	t.Parallel()
	b := newBench()
	known, own := b.sealed(t, session.Session{Upstream: "u"}, alice), b.sealed(t, session.Begin(), alice)
	for name, tc := range map[string]struct {
		header []string
		stays  bool
	}{
		"in a session":                     {[]string{"Mcp-Session-Id", known}, true},
		"without a session":                {nil, false},
		"in one that the upstream has not": {[]string{"Mcp-Session-Id", own}, false},
		"of a revision without sessions":   {[]string{"Mcp-Session-Id", known, "MCP-Protocol-Version", "2026-07-28"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := request(t, "GET", "/mcp/demo", "", append(tc.header, "Last-Event-Id", "5")...)
			if _, w, outcome := b.read(r); outcome != "" {
				t.Fatalf("%d %s", w.Code, w.Body)
			}
			if stays := r.Header.Get("Last-Event-Id") != ""; stays != tc.stays {
				t.Errorf("it stays: %v", stays)
			}
		})
	}
}

// TestSessionUnread checks that a session whose key cannot be looked up is not taken for one that has ended: its client
// would give up a valid session.
func TestSessionUnread(t *testing.T) {
	t.Parallel()
	b := newBench()
	id, address := b.sealed(t, session.Session{Upstream: "u"}, alice), b.address(t, "https://upstream.example/messages", alice)
	b.seal.err = storage.ErrUnavailable
	for _, r := range []*http.Request{request(t, "POST", "/mcp/demo", ping, "Mcp-Session-Id", id), request(t, "POST", address, ping)} {
		if _, w, outcome := b.read(r); outcome != "refused" || w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" {
			t.Errorf("%q, %d %v %s", outcome, w.Code, w.Header(), w.Body)
		}
	}
	if len(b.unread) != 2 || !errors.Is(b.unread[1], storage.ErrUnavailable) {
		t.Errorf("%v", b.unread)
	}
}

// counted counts the bytes that are read.
type counted struct {
	io.Reader
	read int
}

func (c *counted) Read(p []byte) (n int, err error) {
	n, err = c.Reader.Read(p)
	c.read += n
	return n, err
}

func (c *counted) Close() error { return nil }

// TestShed checks when the memory is looked at: before the body, and again for what stays.
func TestShed(t *testing.T) {
	t.Parallel()
	initialize := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`
	listen := `{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen"}`
	for name, tc := range map[string]struct {
		method, body string
		looks        []bool
	}{
		"a call":         {"POST", ping, []bool{false}},
		"a session":      {"POST", initialize, []bool{false, true}},
		"a subscription": {"POST", listen, []bool{false, true}},
		"a stream":       {"GET", "", []bool{true, true}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench()
			if _, w, outcome := b.read(request(t, tc.method, "/mcp/demo", tc.body)); outcome != "" || !slices.Equal(b.shed, tc.looks) {
				t.Fatalf("%q %s, looks %v", outcome, w.Body, b.shed)
			}
			for look := range tc.looks {
				b := newBench()
				b.short = look + 1
				r := request(t, tc.method, "/mcp/demo", tc.body)
				unread := &counted{Reader: r.Body}
				r.Body = unread
				_, w, outcome := b.read(r)
				if look == 0 && unread.read > 0 {
					t.Errorf("%d bytes of the body are read", unread.read)
				}
				if outcome != "unavailable" || w.Code != http.StatusServiceUnavailable || len(b.shed) != look+1 {
					t.Errorf("look %d: %q %d", look, outcome, w.Code)
				}
			}
		})
	}
}

// TestAnswers checks that a server gets the answers to its questions under its own ids, and that other answers are
// noted.
func TestAnswers(t *testing.T) {
	t.Parallel()
	b := newBench()
	id := b.sealed(t, session.Session{Upstream: "u"}, alice)
	mark := func(own, upstream string) string {
		return string(b.questions.Mark([]byte(own), upstream, alice.Binding()))
	}
	answer := func(id string) string { return `{"jsonrpc":"2.0","id":` + id + `,"result":{}}` }
	type facts struct {
		body                string
		unasked, forGateway bool
		repeated            int64
	}
	for _, tc := range []struct {
		name, body string
		want       facts
		header     []string
	}{
		{"asked", answer(mark(`1500`, "u")), facts{answer(`1500`), false, false, 0}, nil},
		{"asked, and answered before", answer(mark(`1500`, "u")), facts{answer(`1500`), false, false, 1}, nil},
		{"in a batch", "[" + ping + "," + answer(mark(`"b"`, "u")) + "]", facts{"[" + ping + "," + answer(`"b"`) + "]", false, false, 0}, nil},
		{"asked in another session", answer(mark(`1`, "v")), facts{answer(mark(`1`, "v")), true, false, 0}, nil},
		{"not asked", answer(`1`), facts{answer(`1`), true, false, 0}, nil},
		{"asked by the gateway", answer(`"gateway"`), facts{answer(`"gateway"`), false, true, 0}, nil},
		{"asked, and not asked", "[" + answer(mark(`2`, "u")) + "," + answer(`3`) + "]", facts{"[" + answer(mark(`2`, "u")) + "," + answer(`3`) + "]", true, false, 0}, nil},
		// A reader that asked whether these were asked would say so: the revision has no session to ask of.
		{"of a revision without questions", answer(mark(`4`, "")), facts{answer(mark(`4`, "")), true, false, 0}, []string{"MCP-Protocol-Version", "2026-07-28"}},
		{"of that revision to the gateway", answer(`"gateway"`), facts{answer(`"gateway"`), true, false, 0}, []string{"MCP-Protocol-Version", "2026-07-28"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			in, w, outcome := b.read(request(t, "POST", "/mcp/demo", tc.body, append(tc.header, "Mcp-Session-Id", id)...))
			if outcome != "" {
				t.Fatalf("%d %s", w.Code, w.Body)
			}
			if got := (facts{string(in.Body), in.Unasked, in.ForGateway, in.Repeated}); got != tc.want {
				t.Errorf("got  %+v\nwant %+v", got, tc.want)
			}
		})
	}
}

// TestReply checks that a client of 2024-11-05 gets the gateway's answer on its stream, and is told when that is not
// open; other clients get it as the answer.
func TestReply(t *testing.T) {
	t.Parallel()
	b := newBench()
	reply := func(in *inbound.Request) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		in.Reply(w, http.StatusOK, []byte(`{"a":1}`))
		return w
	}
	in, _, _ := b.read(request(t, "POST", "/mcp/demo", ping))
	if w := reply(in); w.Code != http.StatusOK || w.Body.String() != `{"a":1}` {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	address := b.address(t, "https://upstream.example/messages", alice)
	in, _, _ = b.read(request(t, "POST", address, ping))
	if w := reply(in); w.Code != http.StatusBadRequest || w.Body.String() != `{"a":1}` {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	target, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	box := b.desk.NewBox()
	box.Open(target.Query().Get(inbound.EndpointParameter))
	defer box.Close()
	if w := reply(in); w.Code != http.StatusAccepted || w.Body.Len() > 0 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// TestReplaceBody checks that a replaced body is read like the first one.
func TestReplaceBody(t *testing.T) {
	t.Parallel()
	b := newBench()
	in, _, _ := b.read(request(t, "POST", "/mcp/demo", ping))
	for _, bad := range []string{"{", strings.Repeat(" ", 2<<10) + ping} {
		if err := in.ReplaceBody([]byte(bad)); err == nil || string(in.Body) != ping {
			t.Errorf("%.20q is taken: %v", bad, err)
		}
	}
	if err := in.ReplaceBody([]byte(`{"jsonrpc":"2.0","id":8,"method":"ping"}`)); err != nil || string(in.ID()) != "8" {
		t.Errorf("%s, %v", in.ID(), err)
	}
}

// TestTakenBack checks which requests a request cancels.
func TestTakenBack(t *testing.T) {
	t.Parallel()
	b := newBench()
	id := b.sealed(t, session.Session{Upstream: "u"}, alice)
	cancels := func(id string) string {
		return `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + id + `}}`
	}
	in, _, _ := b.read(request(t, "POST", "/mcp/demo", "["+cancels("7.0")+","+ping+","+cancels(`"x"`)+"]", "Mcp-Session-Id", id))
	if got, want := in.TakenBack(), []string{jsonrpc.IDValue([]byte("7")), jsonrpc.IDValue([]byte(`"x"`))}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	without, _, _ := b.read(request(t, "POST", "/mcp/demo", cancels("7")))
	if got := without.TakenBack(); got != nil {
		t.Errorf("without a session: %q", got)
	}
	of := func(s session.Session) *inbound.Request { return &inbound.Request{Session: s} }
	for _, other := range []session.Session{{}, {Upstream: "v"}, {Upstream: "u", Own: true}, {Upstream: "u", Guided: true}} {
		if in.SameSession(of(other)) {
			t.Errorf("%+v is taken for the same session", other)
		}
	}
	if !in.SameSession(of(session.Session{Upstream: "u", ProtocolVersion: "2025-06-18"})) {
		t.Error("its own session is taken for another")
	}
}

// TestTrackingTag checks which header is the tag for logs, and that MCP's own headers are not.
func TestTrackingTag(t *testing.T) {
	t.Parallel()
	for want, header := range map[string]http.Header{
		"":                       {"Mcp-Session-Id": {"secret"}, "Mcp-Param-Session-Id": {"an argument"}},
		"tag":                    {"X-Trace-Session-Id": {"tag"}, "Mcp-Session-Id": {"secret"}},
		"its-own":                {"X-Mcp-Session-Id": {"its-own"}, "X-Trace-Session-Id": {"tag"}},
		strings.Repeat("x", 256): {"X-Session-Id": {strings.Repeat("x", 256)}},
	} {
		if tag, ok := inbound.TrackingTag(header); !ok || tag != want {
			t.Errorf("%v: %q, %v", slices.Collect(maps.Keys(header)), tag, ok)
		}
	}
	for _, bad := range []string{"a b", "a\n", "é", strings.Repeat("x", 257)} {
		if tag, ok := inbound.TrackingTag(http.Header{"X-Session-Id": {bad}}); ok {
			t.Errorf("%.10q is the tag %q", bad, tag)
		}
	}
}
