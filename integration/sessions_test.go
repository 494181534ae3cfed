package integration

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	acceptBoth  = "application/json, text/event-stream"
	initialize  = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}`
	initialized = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
	ping        = `{"jsonrpc":"2.0","id":2,"method":"ping"}`
)

// upstreamSession is the id that sessionUpstream gives.
const upstreamSession = "upstream-session-1"

// sessionUpstream keeps one session and speaks JSON.
func sessionUpstream(t testing.TB) *upstream {
	return newUpstream(t, func(w http.ResponseWriter, r *http.Request, body []byte) {
		w.Header().Set("Mcp-Session-Id", upstreamSession)
		switch {
		case strings.Contains(string(body), `"initialize"`):
			writeRPC(w, `{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"scripted","version":"1"}}}`)
		case r.Header.Get("Mcp-Session-Id") != upstreamSession:
			w.WriteHeader(http.StatusNotFound)
		case r.Method == http.MethodDelete:
			w.WriteHeader(http.StatusNoContent)
		case strings.Contains(string(body), `"id"`):
			writeRPC(w, `{"jsonrpc":"2.0","id":2,"result":{}}`)
		default:
			w.WriteHeader(http.StatusAccepted)
		}
	})
}

func writeRPC(w http.ResponseWriter, message string) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write([]byte(message))
}

// TestSessionsBelongToTheirCaller checks that the id that a client holds is the gateway's, and good for this user,
// agent and server only. Whoever else sends it is told what everybody is told of a session that has ended.
func TestSessionsBelongToTheirCaller(t *testing.T) {
	t.Parallel()
	g := startGateway(t, settings{})
	upstream := sessionUpstream(t)
	s, other := g.createServer(upstream.url, nil), g.createServer(upstream.url, nil)
	post := func(path string, caller claims, body, session string) answer {
		header := []string{"Accept", acceptBoth}
		if session != "" {
			header = append(header, "Mcp-Session-Id", session)
		}
		return g.send(http.MethodPost, path, g.token(caller), body, header...)
	}
	session := post(s.path, alice, initialize, "").want(t, http.StatusOK).header.Get("Mcp-Session-Id")
	if session == "" || strings.Contains(session, upstreamSession) || len(session) > 1024 {
		t.Fatalf("the client's session id is %q", session)
	}
	post(s.path, alice, initialized, session).want(t, http.StatusAccepted)
	post(s.path, alice, ping, session).want(t, http.StatusOK)
	if got := upstream.last(t).header.Get("Mcp-Session-Id"); got != upstreamSession {
		t.Errorf("the upstream got session %q", got)
	}
	// A token that was made anew is the same caller.
	post(s.path, alice.with(claims{"jti": "another"}), ping, session).want(t, http.StatusOK)

	before := len(upstream.all())
	for _, foreign := range []struct {
		name, path string
		caller     claims
		session    string
	}{
		{"another user", s.path, bob, session},
		{"another agent", s.path, alice.with(claims{"azp": "other-client", "client_id": "other-client"}), session},
		{"an administrator", s.path, admin, session},
		{"another organization", s.path, eve, session},
		{"another server", other.path, alice, session},
		{"the upstream's own id", s.path, alice, upstreamSession},
		{"an altered id", s.path, alice, session[:len(session)-1] + string(session[len(session)-1]^1)},
		{"a shortened id", s.path, alice, session[:20]},
	} {
		t.Run(foreign.name, func(t *testing.T) {
			post(foreign.path, foreign.caller, ping, foreign.session).want(t, http.StatusNotFound)
			for _, method := range []string{http.MethodGet, http.MethodDelete} {
				g.send(method, foreign.path, g.token(foreign.caller), nil, "Accept", "text/event-stream", "Mcp-Session-Id", foreign.session).
					want(t, http.StatusNotFound)
			}
		})
	}
	if after := len(upstream.all()); after != before {
		t.Errorf("%d requests with foreign sessions reached the upstream", after-before)
	}

	g.send(http.MethodDelete, s.path, g.token(alice), nil, "Mcp-Session-Id", session).want(t, http.StatusNoContent)
	if last := upstream.last(t); last.method != http.MethodDelete || last.header.Get("Mcp-Session-Id") != upstreamSession {
		t.Errorf("the upstream got %s for session %q", last.method, last.header.Get("Mcp-Session-Id"))
	}
}

// TestDeleteEndsTheSession checks that a session that was ended at the upstream stays ended for the client.
func TestDeleteEndsTheSession(t *testing.T) {
	t.Parallel()
	g := startGateway(t, settings{})
	s := g.createServer(newMCPServer(t, nil).url, nil)
	session := g.send(http.MethodPost, s.path, g.token(alice), initialize, "Accept", acceptBoth).want(t, http.StatusOK).header.Get("Mcp-Session-Id")
	with := []string{"Accept", acceptBoth, "Mcp-Session-Id", session, "MCP-Protocol-Version", "2025-11-25"}
	g.send(http.MethodPost, s.path, g.token(alice), initialized, with...).want(t, http.StatusAccepted)
	g.send(http.MethodPost, s.path, g.token(alice), ping, with...).want(t, http.StatusOK)
	g.send(http.MethodDelete, s.path, g.token(alice), nil, with...).want(t, http.StatusNoContent)
	g.send(http.MethodPost, s.path, g.token(alice), ping, with...).want(t, http.StatusNotFound)
}

// TestClientGone checks that a call that nobody waits for any more is ended at the upstream.
func TestClientGone(t *testing.T) {
	t.Parallel()
	g := startGateway(t, settings{})
	for _, method := range []string{http.MethodPost, http.MethodGet} {
		for _, begun := range []string{"before the answer", "in the stream"} {
			t.Run(method+" "+begun, func(t *testing.T) {
				arrived, gone := make(chan struct{}, 1), make(chan struct{}, 1)
				upstream := newUpstream(t, func(w http.ResponseWriter, r *http.Request, _ []byte) {
					if begun == "in the stream" {
						w.Header().Set("Content-Type", "text/event-stream")
						_, _ = w.Write([]byte(": here\n\n"))
						_ = http.NewResponseController(w).Flush()
					}
					arrived <- struct{}{}
					<-r.Context().Done()
					gone <- struct{}{}
				})
				s := g.createServer(upstream.url, nil)
				leave := g.begin(t, method, s.path, g.token(alice), begun == "in the stream")
				receive(t, arrived, "the request at the upstream")
				leave()
				receive(t, gone, "the end of the request at the upstream")
			})
		}
	}
}

// begin sends a request in the background and returns a function that takes the client away. On request it first waits
// until the answer has begun.
func (g *gateway) begin(t *testing.T, method, path, token string, answered bool) (leave func()) {
	t.Helper()
	request, err := http.NewRequest(method, g.url+path, strings.NewReader(map[string]string{http.MethodPost: ping}[method]))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer "+token)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", acceptBoth)
	transport := &http.Transport{}
	began, ended := make(chan struct{}), make(chan struct{})
	ctx, cancel := cancellable(t)
	go func() {
		defer close(ended)
		response, err := transport.RoundTrip(request.WithContext(ctx))
		if err != nil {
			return
		}
		close(began)
		<-ctx.Done()
		response.Body.Close()
	}()
	if answered {
		receive(t, began, "the beginning of the answer")
	}
	return func() {
		cancel()
		<-ended
	}
}

// TestBytesPassUnchanged checks that messages are carried, not read and written again, and of the headers only those of
// the protocol pass.
func TestBytesPassUnchanged(t *testing.T) {
	t.Parallel()
	const (
		odd    = "  { \"jsonrpc\":\"2.0\" ,\"id\" : 2, \"params\":{\"b\":1.0e+02,\"a\":9007199254740993, \"a\\u0062c\":\"\\u00fc\\/\"},\n\t\"method\":\"p\\u0069ng\"}\n"
		events = ": priming\n\nid: 1\ndata:\n\nretry: 100\nevent: message\r\ndata: {\"jsonrpc\":\"2.0\",\r\ndata:  \"id\":2,\"result\":{ \"n\":1.50}}\n\nevent: other\nid: 3\ndata: x\n\n"
	)
	upstream := newUpstream(t, func(w http.ResponseWriter, _ *http.Request, _ []byte) {
		w.Header().Set("Content-Type", "text/event-stream")
		w.Header().Set("Set-Cookie", "a=b")
		w.Header().Set("WWW-Authenticate", "Bearer realm=elsewhere")
		_, _ = w.Write([]byte(events))
	})
	g := startGateway(t, settings{})
	s := g.createServer(upstream.url+"?fixed=1", nil)
	token := g.token(alice)
	a := g.send(http.MethodPost, s.path+"?secret=in-the-query", token, odd, "Accept", acceptBoth, "Cookie", "c=secret-cookie", "X-Forwarded-For", "198.51.100.7",
		"X-Custom", "custom", "X-Mcp-Session-Id", "tracking-tag", "Traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
		"Mcp-Param-City", "Bern", "User-Agent", "test/1").want(t, http.StatusOK)
	// An event of another name is no message, and the client's place in the stream is kept.
	if diff := cmp.Diff(strings.Replace(events, "event: other\nid: 3\ndata: x\n", "id: 3\n", 1), string(a.body)); diff != "" {
		t.Errorf("answer (-sent +got):\n%s", diff)
	}
	if a.header.Get("Set-Cookie")+a.header.Get("WWW-Authenticate") != "" {
		t.Errorf("the upstream's cookies or challenges came: %v", a.header)
	}
	got := upstream.last(t)
	if loop := got.header.Get("Cdn-Loop"); !strings.HasPrefix(loop, "durward-") {
		t.Errorf("CDN-Loop %q", loop)
	}
	got.header.Del("Cdn-Loop")
	if diff := cmp.Diff(odd, got.body); diff != "" {
		t.Errorf("request (-sent +got):\n%s", diff)
	}
	if got.uri != "/mcp?fixed=1" {
		t.Errorf("the upstream was asked for %s", got.uri)
	}
	want := http.Header{
		"Accept": {acceptBoth}, "Accept-Encoding": {"identity"}, "Content-Type": {"application/json"}, "Content-Length": got.header["Content-Length"],
		"Traceparent": {"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}, "User-Agent": {"test/1"},
	}
	if diff := cmp.Diff(want, got.header); diff != "" {
		t.Errorf("headers at the upstream (-want +got):\n%s", diff)
	}
	for _, secret := range []string{token, "secret-cookie", "in-the-query", "198.51.100.7", "tracking-tag"} {
		if strings.Contains(upstream.bytes(), secret) {
			t.Errorf("the upstream received %q", tail(secret, 30))
		}
	}
}

// TestStreamThatEndsAtOnce checks that an event stream that ends before its first event cannot be resumed, and its
// client would wait for ever; one that gave an id before is asked for again (SEP-1699).
func TestStreamThatEndsAtOnce(t *testing.T) {
	t.Parallel()
	g := startGateway(t, settings{})
	s := g.createServer(newUpstream(t, func(w http.ResponseWriter, _ *http.Request, _ []byte) {
		w.Header().Set("Content-Type", "text/event-stream")
	}).url, nil)
	g.send(http.MethodPost, s.path, g.token(alice), ping, "Accept", acceptBoth).wantRPC(t, http.StatusBadGateway, -32603, "2", "UpstreamError")
}

// TestCancelledCall checks that a modern client that gives up a call closes its stream, and the tool is cancelled.
func TestCancelledCall(t *testing.T) {
	t.Parallel()
	g := startGateway(t, settings{})
	upstream := newMCPServer(t, &mcp.StreamableHTTPOptions{Stateless: true, PropagateRequestCancellation: true})
	progress := make(chan string, 1)
	client := connectMCP(t, g.url+g.createServer(upstream.url, nil).path, g.token(alice), "2026-07-28", &mcp.ClientOptions{
		ProgressNotificationHandler: clientProgress(progress),
	})
	ctx, cancel := cancellable(t)
	answered := make(chan error, 1)
	go func() {
		params := &mcp.CallToolParams{Name: "wait"}
		params.SetProgressToken("p1")
		_, err := client.CallTool(ctx, params)
		answered <- err
	}()
	receive(t, progress, "progress")
	cancel()
	if err := receive(t, answered, "the end of the call"); err == nil {
		t.Error("a cancelled call was answered")
	}
	receive(t, upstream.cancelled, "the end of the tool")
}
