package mcp

import (
	"encoding/base64"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/durward-gateway/durward/internal/gateway"
	"github.com/durward-gateway/durward/internal/identity/authn"
	"github.com/durward-gateway/durward/internal/mcp/jsonrpc"
	"github.com/durward-gateway/durward/internal/mcp/legacysse"
	"github.com/durward-gateway/durward/internal/mcp/listfilter"
	"github.com/durward-gateway/durward/internal/mcp/session"
	"github.com/durward-gateway/durward/internal/mcp/streams"
	"github.com/durward-gateway/durward/internal/proxy/forward"
	"github.com/durward-gateway/durward/modules/app"
	"github.com/durward-gateway/durward/modules/app/metrics"
	"github.com/durward-gateway/durward/modules/app/settings"
	"github.com/durward-gateway/durward/storage"
)

// said is an upstream's answer to one request.
type said struct {
	label  string // Content-Type; "" for none
	text   string
	status int   // 200
	broken error // the body ends with it
}

// asked is a client's request.
type asked struct {
	method, body, version, event string // POST and a call; "" for no header
	session                      bool
	filter                       *listfilter.Filter
}

const (
	callOne   = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x"}}`
	answerOne = `{"jsonrpc":"2.0","id":1,"result":{"content":[]}}`
	newsOne   = `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":1}}`
)

// ask sends one request and returns what the client gets.
func ask(t *testing.T, a asked, s said) (w *httptest.ResponseRecorder, aborted bool) {
	t.Helper()
	h := &Handler{Carrier: app.Carrier{Logger: zap.NewNop(), Forwarder: forward.New(forward.Over(roundTrip(func(*http.Request) (*http.Response, error) {
		header := http.Header{}
		if s.label != "" {
			header["Content-Type"] = []string{s.label}
		}
		end := s.broken
		if end == nil {
			end = io.EOF
		}
		return &http.Response{StatusCode: max(s.status, 200), Header: header, ContentLength: -1, Body: brokenBody(s.text, end)}, nil
	})), forward.Limits{})}}
	c := &app.Call{
		Decision: &app.Decision{Off: a.filter == nil, Filter: a.filter}, Caller: &authn.Caller{OrganizationID: "o", UserID: "u"}, Credentials: noCredential{},
		Server: &storage.Server{ID: "s", Slug: "demo", Entry: storage.DirectoryEntry{URL: "https://upstream.example/mcp", Protocol: storage.ProtocolMCP}},
		Core: &app.Core{Log: slog.New(slog.DiscardHandler), Streams: new(streams.Registry), Sessions: session.New(newTagged(), time.Now), Questions: session.NewQuestions(plainMACs{}), Desk: new(legacysse.Desk), Sizes: settings.Sizes{MCP: 1 << 20, Event: 1 << 10}, Metrics: &metrics.Traffic{
			Calls:           prometheus.NewCounterVec(prometheus.CounterOpts{Name: "calls_total", Help: "Calls."}, []string{"family", "result"}),
			UpstreamSeconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "seconds", Help: "Seconds."}, []string{"family"}),
			Streams:         prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "streams", Help: "Streams."}, []string{"family"}),
		}},
	}
	c.Core.BindReader()
	c.Limits.Exempt()
	method, body := a.method, a.body
	if method == "" {
		method = http.MethodPost
	}
	if body == "" && method == http.MethodPost {
		body = callOne
	}
	r := httptest.NewRequestWithContext(t.Context(), method, "/mcp/demo", strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	if a.version != "" {
		r.Header.Set(jsonrpc.HeaderProtocolVersion, a.version)
	}
	if a.version == jsonrpc.Version20260728 {
		r.Header.Set(jsonrpc.HeaderMethod, "prompts/get")
		r.Header.Set(jsonrpc.HeaderName, "x")
	}
	if a.session {
		sealed, err := c.Core.Sessions.Seal(session.Session{Upstream: "u"}, c.Binding())
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set(jsonrpc.HeaderSessionID, sealed)
	}
	if a.event != "" {
		r.Header.Set("Last-Event-Id", a.event)
	}
	w = httptest.NewRecorder()
	func() {
		defer func() { aborted = recover() == http.ErrAbortHandler }()
		if err := h.ServeHTTP(w, app.WithCall(r, c), nil); err != nil {
			t.Error(err)
		}
	}()
	return w, aborted
}

const refusedOne = `{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"` + gateway.TextUpstream + `","data":{"error":"UpstreamError","message":"` + gateway.TextUpstream + `"}}}`

// TestW04ReadAsWhatItIs checks that an answer is read by its real content, whatever its label is, and an unreadable one
// is a 502, also without a filter.
func TestW04ReadAsWhatItIs(t *testing.T) {
	const (
		asJSON, asEvents = "application/json", "text/event-stream"
		bad              = "502"
	)
	stream := "event: message\ndata: " + answerOne + "\n\n"
	framed := "data: " + answerOne + "\n\n"
	hides := &listfilter.Filter{View: func() (listfilter.Keep, error) {
		return func(_ listfilter.List, name string, _ []byte) bool { return name != "secret" }, nil
	}}
	list := `{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"secret"},{"name":"a"}]}}`
	kept := `{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"a"}]}}`
	for _, tc := range []struct {
		name   string
		said   said
		filter *listfilter.Filter
		want   string // the label, or bad
		text   string
	}{
		{"JSON", said{label: asJSON, text: answerOne}, nil, asJSON, answerOne},
		{"JSON labelled as a stream", said{label: asEvents, text: answerOne}, nil, asEvents, framed},
		{"JSON labelled as a stream, blanks and a byte order mark before", said{label: asEvents, text: "\ufeff\r\n " + answerOne + "\n"}, nil, asEvents, "data: " + answerOne},
		{"JSON of several lines labelled as a stream", said{label: asEvents, text: "{\"jsonrpc\":\"2.0\",\n\"id\":1,\n\"result\":{}}"}, nil, asEvents, "data: {\"jsonrpc\":\"2.0\",\ndata: \"id\":1,\ndata: \"result\":{}}\n\n"},
		{"lines of JSON labelled as a stream", said{label: asEvents, text: newsOne + "\n" + answerOne + "\n"}, nil, asEvents, "data: " + newsOne + "\n\n" + framed},
		{"a list in JSON labelled as a stream is filtered", said{label: asEvents, text: list}, hides, asEvents, "data: " + kept + "\n\n"},
		{"a list in words is filtered", said{label: "text/plain", text: list}, hides, asJSON, kept},
		{"a list between the events", said{label: asEvents, text: framed + list + "\n\n"}, hides, asEvents, framed},
		{"a list on a line of its own in an event", said{label: asEvents, text: ":\n" + list + "\n" + framed}, hides, asEvents, ":\n" + framed},
		{"no label", said{text: answerOne}, nil, asJSON, answerOne},
		{"text/plain", said{label: "text/plain; charset=utf-8", text: answerOne}, nil, asJSON, answerOne},
		{"text/html, as PHP has it", said{label: "text/html; charset=UTF-8", text: answerOne}, nil, asJSON, answerOne},
		{"a charset that is not the text's", said{label: "application/json; charset=utf-7", text: answerOne}, nil, asJSON, answerOne},
		{"a suffix", said{label: "application/vnd.api+json", text: answerOne}, nil, asJSON, answerOne},
		{"UTF-16", said{label: "application/json; charset=utf-16", text: "\xff\xfe{\x00}\x00"}, nil, bad, ""},
		{"Latin-1 in a text of the result", said{label: "application/json; charset=iso-8859-1", text: "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"a\":\"\xe9\"}}"}, nil, asJSON, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"a\":\"\xe9\"}}"},
		{"half a surrogate pair in a text of the result", said{label: asJSON, text: `{"jsonrpc":"2.0","id":1,"result":{"a":"\ud83d"}}`}, nil, asJSON, `{"jsonrpc":"2.0","id":1,"result":{"a":"\ud83d"}}`},
		{"a byte order mark", said{label: asJSON, text: "\ufeff" + answerOne}, nil, asJSON, answerOne},
		{"a stream labelled JSON", said{label: asJSON, text: stream}, nil, asEvents, stream},
		{"a stream without a label", said{text: ": ok\n\n" + framed}, nil, asEvents, ": ok\n\n" + framed},
		{"a stream with a charset", said{label: "Text/Event-Stream;charset=UTF-8", text: framed}, nil, asEvents, framed},
		{"CRLF", said{label: asEvents, text: "event:message\r\ndata:" + answerOne + "\r\n\r\n"}, nil, asEvents, "event:message\r\ndata:" + answerOne + "\r\n\r\n"},
		{"CR", said{label: asEvents, text: "data:" + answerOne + "\r\r"}, nil, asEvents, "data:" + answerOne + "\r\r"},
		{"data without a blank, comments first", said{label: asEvents, text: ": ping - 2026-11-25\n\ndata:" + answerOne + "\n\n"}, nil, asEvents, ": ping - 2026-11-25\n\ndata:" + answerOne + "\n\n"},
		{"an event that is not ended", said{label: asEvents, text: "data: " + answerOne}, nil, asEvents, framed},
		{"an event that is not ended, after its line", said{label: asEvents, text: "data: " + answerOne + "\n"}, nil, asEvents, framed},
		{"a name before the answer", said{label: asEvents, text: "event: ping\ndata: {}\n\n" + framed}, nil, asEvents, framed},
		{"the end of a model's stream", said{label: asEvents, text: framed + "data: [DONE]\n\n"}, nil, asEvents, framed},
		{"nothing, chunked", said{label: asJSON}, nil, bad, ""},
		{"nothing, without a label", said{}, nil, bad, ""},
		{"a stream of nothing", said{label: asEvents}, nil, bad, ""},
		{"a stream without the answer", said{label: asEvents, text: "id: 1\ndata:\n\n"}, nil, asEvents, "id: 1\ndata:\n\n\n\nevent: message\ndata: " + refusedOne + "\n\n"},
		{"half of the JSON, labelled as a stream", said{label: asEvents, text: answerOne[:20]}, nil, bad, ""},
		{"words", said{label: "text/plain", text: "Accepted"}, nil, bad, ""},
		{"words labelled JSON", said{label: asJSON, text: "Internal error"}, nil, bad, ""},
		{"a page", said{label: "text/html", text: "<html>"}, nil, bad, ""},
		{"two texts labelled JSON", said{label: asJSON, text: answerOne + answerOne}, nil, bad, ""},
		{"a member twice", said{label: asJSON, text: `{"jsonrpc":"2.0","id":1,"result":{},"result":{"tools":[]}}`}, nil, bad, ""},
		{"a member in other case", said{label: asJSON, text: `{"jsonrpc":"2.0","id":1,"result":{},"Result":{"tools":[]}}`}, nil, bad, ""},
		{"an answer and a request in one", said{label: asJSON, text: `{"jsonrpc":"2.0","id":1,"result":{},"method":"ping"}`}, nil, bad, ""},
		{"members that are null", said{label: asJSON, text: `{"jsonrpc":"2.0","id":1,"result":{},"error":null}`}, nil, asJSON, `{"jsonrpc":"2.0","id":1,"result":{},"error":null}`},
		{"a stream of status 202", said{label: asEvents, text: framed, status: 202}, nil, asEvents, framed},
	} {
		t.Run("W04 "+tc.name, func(t *testing.T) {
			w, aborted := ask(t, asked{filter: tc.filter}, tc.said)
			switch {
			case aborted:
				t.Errorf("broken off: %d %q", w.Code, w.Body)
			case tc.want == bad:
				if w.Code != http.StatusBadGateway || !strings.Contains(w.Body.String(), `"id":1,`) {
					t.Errorf("%d %q", w.Code, w.Body)
				}
			case w.Header().Get("Content-Type") != tc.want || strings.TrimSpace(strings.TrimPrefix(w.Body.String(), "\ufeff")) != strings.TrimSpace(tc.text):
				t.Errorf("%d %v\n got %q\nwant %q", w.Code, w.Header(), w.Body, tc.text)
			}
		})
	}
}

// TestW08HeldAgainstTheRequest checks that a message that no request of this client asked for does not reach it.
func TestW08HeldAgainstTheRequest(t *testing.T) {
	events := func(messages ...string) string { return "data: " + strings.Join(messages, "\n\ndata: ") + "\n\n" }
	other := `{"jsonrpc":"2.0","id":2,"result":{"content":[]}}`
	sampling := `{"jsonrpc":"2.0","id":7,"method":"sampling/createMessage","params":{}}`
	elicitation := `{"jsonrpc":"2.0","id":7,"method":"elicitation/create","params":{}}`
	tasks := `{"jsonrpc":"2.0","id":7,"method":"tasks/get","params":{}}`
	command := `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{}}`
	nameless := `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"no"}}`
	modern := `{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{"name":"x","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`
	two := `[` + callOne + `,{"jsonrpc":"2.0","id":"b","method":"tools/call","params":{"name":"x"}}]`
	b := `{"jsonrpc":"2.0","id":"b","result":{}}`
	new := asked{body: modern, version: jsonrpc.Version20260728}
	for _, tc := range []struct {
		name  string
		asked asked
		text  string // of an event stream, or of JSON
		want  string // "": 502
	}{
		{"another id", asked{}, events(other, newsOne, answerOne), events(newsOne, answerOne)},
		{"another id in JSON", asked{}, other, ""},
		{"a second answer", asked{}, events(answerOne, answerOne), events(answerOne)},
		{"an error without an id", asked{}, events(nameless, answerOne), events(nameless, answerOne)},
		{"an error without an id in JSON", asked{}, nameless, strings.Replace(nameless, "null", "1", 1)},
		{"an error without the member id in JSON", asked{}, strings.Replace(nameless, `"id":null,`, "", 1), ""},
		{"0 for every id", asked{}, `{"jsonrpc":"2.0","id":0,"result":{"tools":[]}}`, ""},
		{"an id that is a fraction of the same value", asked{}, `{"jsonrpc":"2.0","id":1.0,"result":{}}`, `{"jsonrpc":"2.0","id":1.0,"result":{}}`},
		{"an id that was rounded", asked{body: strings.Replace(callOne, `"id":1`, `"id":9007199254740993`, 1)}, `{"jsonrpc":"2.0","id":9007199254740992,"result":{}}`, ""},
		{"an id of a text that has become a number", asked{body: strings.Replace(callOne, `"id":1`, `"id":"1"`, 1)}, `{"jsonrpc":"2.0","id":1,"result":{}}`, `{"jsonrpc":"2.0","id":1,"result":{}}`},
		{"an id that has become a text", asked{}, `{"jsonrpc":"2.0","id":"1","result":{}}`, `{"jsonrpc":"2.0","id":"1","result":{}}`},
		{"a question before its revision", asked{version: "2025-03-26"}, events(elicitation, sampling, answerOne), events(sampling, answerOne)},
		{"a question", asked{version: "2025-06-18"}, events(elicitation, answerOne), events(elicitation, answerOne)},
		{"tasks before their revision", asked{version: "2025-06-18"}, events(tasks, answerOne), events(answerOne)},
		{"tasks", asked{version: "2025-11-25"}, events(tasks, answerOne), events(tasks, answerOne)},
		{"questions where the revision is not known", asked{}, events(elicitation, tasks, sampling, answerOne), events(elicitation, tasks, sampling, answerOne)},
		{"a command to the client", asked{}, events(command, answerOne), events(answerOne)},
		{"a question in JSON", asked{}, command, ""},
		{"2026-07-28: a question", new, events(sampling, elicitation, answerOne), events(answerOne)},
		{"2026-07-28: a ping", new, events(`{"jsonrpc":"2.0","id":7,"method":"ping"}`, answerOne), events(answerOne)},
		{"an endpoint", asked{}, "event: endpoint\ndata: /mcp/other\n\n" + events(answerOne), events(answerOne)},
		{"an endpoint keeps its id alone", asked{}, "id: 4\nevent: endpoint\ndata: /mcp/other\n\n" + events(answerOne), "id: 4\n\n" + events(answerOne)},
		{"no JSON", asked{}, events("hello", answerOne), events(answerOne)},
		{"JSON that is no message", asked{}, events(`{"status":"ok"}`, `"x"`, `3`, answerOne), events(answerOne)},
		{"a notification of another name", asked{}, events(`{"jsonrpc":"2.0","method":"tools/call"}`, answerOne), events(answerOne)},
		{"a batch that nobody's revision has", asked{version: "2025-06-18"}, events("["+newsOne+"]", answerOne), events(answerOne)},
		{"a batch", asked{body: two}, `[` + answerOne + `,` + b + `]`, `[` + answerOne + `,` + b + `]`},
		{"a batch with others among it", asked{body: two}, `[` + other + `,` + answerOne + `, ` + command + `,` + b + `,` + b + `]`, `[` + answerOne + `,` + b + `]`},
		{"a batch of nothing that was asked for", asked{body: two}, `[` + other + `]`, ""},
		{"a part of a batch", asked{body: two}, `[` + b + "]\n", `[` + b + `,` + refusedOne + `]`},
		{"one answer to a batch", asked{body: two}, b, `[` + b + `,` + refusedOne + `]`},
		{"an error without an id to a batch", asked{body: two}, nameless, ""},
		{"a batch as events", asked{body: two}, events(`[`+newsOne+`,`+other+`,`+answerOne+`]`, b), events(`[`+newsOne+`,`+answerOne+`]`, b)},
		{"answers on a stream of GET", asked{method: "GET", session: true}, events(answerOne, newsOne, sampling), events(newsOne, sampling)},
		{"answers on a stream that is resumed", asked{method: "GET", session: true, event: "e1"}, events(answerOne, other), events(answerOne, other)},
		{"a stream that can be resumed", asked{session: true}, "id: 1\ndata:\n\n", "id: 1\ndata:\n\n"},
		{"a stream that ends too early", asked{}, events(newsOne), events(newsOne) + "\n\nevent: message\ndata: " + refusedOne + "\n\n"},
	} {
		t.Run("W08 "+tc.name, func(t *testing.T) {
			label := "text/event-stream"
			if strings.HasPrefix(tc.text, "{") || strings.HasPrefix(tc.text, "[") {
				label = "application/json"
			}
			w, aborted := ask(t, tc.asked, said{label: label, text: tc.text})
			if tc.want == "" {
				if w.Code != http.StatusBadGateway || aborted {
					t.Errorf("%d %q", w.Code, w.Body)
				}
				return
			}
			if got := unmarked(t, w.Body.String()); w.Code != http.StatusOK || aborted || got != tc.want {
				t.Errorf("%d, aborted %v\n got %q\nwant %q", w.Code, aborted, got, tc.want)
			}
		})
	}
}

// TestW30NotificationInPlaceOfTheAnswer checks that a client whose server answers a request with a notification alone
// gets an error with the request's id at once, in JSON and on a stream, because clients wait for what bears it.
func TestW30NotificationInPlaceOfTheAnswer(t *testing.T) {
	const asJSON, asEvents = "application/json", "text/event-stream"
	nullID := strings.Replace(newsOne, `"jsonrpc"`, `"id":null,"jsonrpc"`, 1)
	event := "data: " + newsOne + "\n\n"
	instead := "\n\nevent: message\ndata: " + refusedOne + "\n\n"
	hides := &listfilter.Filter{View: func() (listfilter.Keep, error) {
		return func(listfilter.List, string, []byte) bool { return false }, nil
	}}
	old := asked{body: callOne, version: "2025-03-26"}
	modern := asked{body: `{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{"name":"x","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`, version: jsonrpc.Version20260728}
	for _, tc := range []struct {
		name  string
		asked asked
		said  said
		want  string // "": 502 with the request's id
	}{
		{"in JSON", asked{}, said{label: asJSON, text: newsOne}, ""},
		{"in JSON, under a filter", asked{filter: hides}, said{label: asJSON, text: newsOne}, ""},
		{"in JSON, in a session", asked{session: true}, said{label: asJSON, text: newsOne}, ""},
		{"in JSON, 2026-07-28", modern, said{label: asJSON, text: newsOne}, ""},
		{"in JSON whose id is null", asked{}, said{label: asJSON, text: nullID}, ""},
		{"in an array", old, said{label: asJSON, text: "[" + newsOne + "]"}, ""},
		{"in an array with an error without an id", old, said{label: asJSON, text: "[" + newsOne + `,{"jsonrpc":"2.0","id":null,"error":{"code":-1,"message":"no"}}]`}, ""},
		{"with status 202", asked{}, said{label: asJSON, text: newsOne, status: 202}, ""},
		{"nothing but the request's id", asked{}, said{label: asJSON, text: `{"id":1,"jsonrpc":"2.0"}`}, ""},
		{"on a stream", asked{}, said{label: asEvents, text: event}, event + instead},
		{"on a stream, in a session", asked{session: true}, said{label: asEvents, text: event}, event + instead},
		{"on a stream, 2026-07-28", modern, said{label: asEvents, text: event}, event + instead},
		{"on a stream, JSON labelled so", asked{}, said{label: asEvents, text: newsOne}, event + instead},
		{"on a stream, nothing but the request's id", asked{}, said{label: asEvents, text: event + "data: {\"id\":1,\"jsonrpc\":\"2.0\"}\n\n"}, event + instead},
		{"on a stream that can be resumed", asked{session: true}, said{label: asEvents, text: "id: 1\n" + event}, "id: 1\n" + event},
	} {
		t.Run("W30 "+tc.name, func(t *testing.T) {
			w, aborted := ask(t, tc.asked, tc.said)
			want, status := tc.want, http.StatusOK
			if tc.want == "" {
				want, status = refusedOne, http.StatusBadGateway
			}
			if w.Code != status || aborted || w.Body.String() != want {
				t.Errorf("%d, aborted %v\n got %q\nwant %q", w.Code, aborted, w.Body, want)
			}
		})
	}
}

// plainMACs makes digests for tests that nobody attacks.
type plainMACs struct{}

func (plainMACs) AppendMAC(to, _ []byte) []byte { return append(to, "MAC"...) }

func (plainMACs) CheckMAC(_, tag []byte) bool { return string(tag) == "MAC" }

var markedID = regexp.MustCompile(`"durward-q-([\w-]+)"`)

// unmarked puts the server's own ids in the place of marked ones. Every question has one.
func unmarked(t *testing.T, text string) string {
	t.Helper()
	for _, line := range strings.Split(text, "\n") {
		if strings.Contains(line, `"method":"sampling`) || strings.Contains(line, `"method":"elicitation`) {
			if !markedID.MatchString(line) {
				t.Errorf("asked under the server's own id: %s", line)
			}
		}
	}
	return markedID.ReplaceAllStringFunc(text, func(id string) string {
		raw, err := base64.RawURLEncoding.DecodeString(markedID.FindStringSubmatch(id)[1])
		if err != nil {
			t.Error(err)
		}
		return strings.TrimPrefix(string(raw), "MAC")
	})
}

// TestW08Refusals checks that the body of an error status is the error of this request, or words.
func TestW08Refusals(t *testing.T) {
	python := `{"jsonrpc":"2.0","id":"server-error","error":{"code":-32600,"message":"Bad Request: Missing session ID"}}`
	for _, tc := range []struct {
		name   string
		said   said
		status int
		label  string
		text   string
	}{
		{"an error whose id was made up", said{"application/json", python, 400, nil}, 400, "application/json", python},
		{"an error labelled as a page", said{"text/html", python, 400, nil}, 400, "application/json", python},
		{"an error labelled as a stream", said{"text/event-stream", python, 400, nil}, 400, "application/json", python},
		{"words", said{"text/plain; charset=utf-16", "no session", 404, nil}, 404, "text/plain; charset=utf-8", "no session"},
		{"another error in JSON", said{"application/json", `{"detail":"no"}`, 422, nil}, 422, "application/json", `{"detail":"no"}`},
		{"an answer to another request", said{"application/json", `{"jsonrpc":"2.0","id":2,"result":{}}`, 400, nil}, 502, "application/json", ""},
		{"a request", said{"application/json", `{"jsonrpc":"2.0","id":2,"method":"sampling/createMessage"}`, 400, nil}, 502, "application/json", ""},
		{"a request in an array", said{"application/json", `[{"jsonrpc":"2.0","id":9,"method":"sampling/createMessage"}]`, 400, nil}, 502, "application/json", ""},
		{"a request that has two methods", said{"application/json", `{"id":9,"method":"x","method":"sampling/createMessage"}`, 400, nil}, 502, "application/json", ""},
		{"a request to readers that ignore case", said{"application/json", `{"id":9,"Method":"sampling/createMessage"}`, 400, nil}, 502, "application/json", ""},
		{"a result beside an error", said{"application/json", `{"id":1,"result":{},"error":{"code":1,"message":""}}`, 400, nil}, 502, "application/json", ""},
		{"an error of OAuth", said{"application/json", `{"error":"invalid_request","error_description":"no"}`, 400, nil}, 400, "application/json", `{"error":"invalid_request","error_description":"no"}`},
		{"words that begin like an array", said{"text/plain", `[error] no session`, 400, nil}, 400, "text/plain; charset=utf-8", `[error] no session`},
		{"half a text", said{"application/json", `{"error":`, 400, nil}, 502, "application/json", ""},
		{"a page", said{"text/html", "<html>", 403, nil}, 502, "application/json", ""},
		{"a stream", said{"text/event-stream", "data: " + python + "\n\n", 400, nil}, 502, "application/json", ""},
		{"nothing", said{"", "", 404, nil}, 404, "", ""},
		{"nothing, and the server is at fault", said{"", "", 500, nil}, 502, "application/json", ""},
	} {
		t.Run("W08 "+tc.name, func(t *testing.T) {
			w, _ := ask(t, asked{}, tc.said)
			if w.Code != tc.status || w.Header().Get("Content-Type") != tc.label || tc.status != 502 && w.Body.String() != tc.text {
				t.Errorf("%d %v %q", w.Code, w.Header(), w.Body)
			}
		})
	}
}

// TestStreamWithoutBeginning checks that a stream that breaks off before its first event is a 502, as long as nothing
// was written, and afterwards an error for each request without an answer.
func TestStreamWithoutBeginning(t *testing.T) {
	w, aborted := ask(t, asked{}, said{label: "text/event-stream", broken: io.ErrUnexpectedEOF})
	if w.Code != http.StatusBadGateway || aborted || w.Body.String() != refusedOne {
		t.Errorf("%d %q, aborted %v", w.Code, w.Body, aborted)
	}
	w, aborted = ask(t, asked{}, said{label: "text/event-stream", text: "data: " + newsOne + "\n\ndata: {", broken: io.ErrUnexpectedEOF})
	if w.Code != http.StatusOK || aborted || w.Body.String() != "data: "+newsOne+"\n\n\n\nevent: message\ndata: "+refusedOne+"\n\n" {
		t.Errorf("%d %q, aborted %v", w.Code, w.Body, aborted)
	}
	w, aborted = ask(t, asked{session: true}, said{label: "text/event-stream"})
	if w.Code != http.StatusOK || aborted || w.Body.Len() > 0 {
		t.Errorf("%d %q: a server with sessions may close a stream to be asked again, aborted %v", w.Code, w.Body, aborted)
	}
	w, aborted = ask(t, asked{session: true}, said{label: "text/event-stream", text: "id: 1\ndata:\n\n", broken: io.ErrUnexpectedEOF})
	if w.Code != http.StatusOK || !aborted {
		t.Errorf("%d %q: a client that can resume the stream is told nothing, aborted %v", w.Code, w.Body, aborted)
	}
}

// TestAccept checks that a client's Accept is passed on, except for "anything", which servers do not understand.
func TestAccept(t *testing.T) {
	const both, events = "application/json, text/event-stream", "text/event-stream"
	for _, tc := range []struct {
		name, method string
		accept       []string
		want         string
	}{
		{"both", http.MethodPost, []string{both}, both},
		{"anything", http.MethodPost, []string{"*/*"}, both},
		{"nothing", http.MethodPost, nil, both},
		{"JSON alone", http.MethodPost, []string{"application/json"}, "application/json"},
		{"events alone", http.MethodPost, []string{events}, events},
		{"anything, but rather JSON", http.MethodPost, []string{"application/json, */*;q=0.1"}, "application/json, */*;q=0.1"},
		{"anything on a stream", http.MethodGet, []string{"*/*"}, events},
		{"anything at the end of a session", http.MethodDelete, []string{"*/*"}, "*/*"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var sent []string
			l := newLegacy(forward.Limits{}, func(r *http.Request) *http.Response {
				sent = r.Header["Accept"]
				return &http.Response{StatusCode: http.StatusMethodNotAllowed, Header: http.Header{}, Body: http.NoBody}
			})
			body := ""
			if tc.method == http.MethodPost {
				body = listTools
			}
			var lines []string
			for _, value := range tc.accept {
				lines = append(lines, "Accept", value)
			}
			l.send(t, tc.method, "/mcp/demo", body, lines...)
			if got := strings.Join(sent, ";"); got != tc.want {
				t.Errorf("sent %q", got)
			}
		})
	}
}

// TestNoStream checks that when a server answers a GET with anything but a stream, its client learns that there is
// none, and whether it should ask for another transport.
func TestNoStream(t *testing.T) {
	for _, tc := range []struct {
		name string
		said said
		want int
	}{
		{"a page", said{label: "text/html; charset=utf-8", text: "<html>welcome"}, 405},
		{"a description", said{label: "application/json", text: `{"name":"arif","endpoints":["/mcp"]}`}, 405},
		{"an error of JSON-RPC", said{label: "application/json", text: `{"jsonrpc":"2.0","id":null,"error":{"code":-32601,"message":"Method not found"}}`}, 405},
		{"nothing", said{}, 405},
		{"a page that says 404", said{label: "text/html", text: "<html>Cannot GET /mcp", status: 404}, 404},
		{"words that say 405", said{label: "text/plain", text: "Method Not Allowed", status: 405}, 405},
		{"400", said{label: "application/json", text: `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Bad Request"}}`, status: 400}, 400},
		{"not acceptable", said{label: "application/json", text: `{"jsonrpc":"2.0","id":"server-error","error":{"code":-32600,"message":"Not Acceptable"}}`, status: 406}, 406},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if w, aborted := ask(t, asked{method: http.MethodGet, session: true}, tc.said); w.Code != tc.want || aborted {
				t.Errorf("%d %s", w.Code, w.Body)
			}
		})
	}
}
