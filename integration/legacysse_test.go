package integration

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// legacyServer is a go-sdk server of the HTTP+SSE transport of revision 2024-11-05.
type legacyServer struct {
	url string // of its event stream

	mu     sync.Mutex
	tokens []string // of the messages that were posted
}

func newLegacyServer(t testing.TB) *legacyServer {
	s := mcp.NewServer(&mcp.Implementation{Name: "legacy", Version: "1"}, nil)
	mcp.AddTool(s, &mcp.Tool{Name: "echo"}, func(_ context.Context, _ *mcp.CallToolRequest, in echoArguments) (*mcp.CallToolResult, any, error) {
		return text(in.Text), nil, nil
	})
	mcp.AddTool(s, &mcp.Tool{Name: "steps"}, func(ctx context.Context, r *mcp.CallToolRequest, _ nothing) (*mcp.CallToolResult, any, error) {
		for i, message := range []string{"one", "two"} {
			err := r.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{
				ProgressToken: r.Params.GetProgressToken(), Progress: float64(i + 1), Total: 2, Message: message,
			})
			if err != nil {
				return nil, nil, err
			}
		}
		// Clients forget about a call's progress when its answer comes with it in one read.
		if err := r.Session.Ping(ctx, nil); err != nil {
			return nil, nil, err
		}
		return text("done"), nil, nil
	})
	mcp.AddTool(s, &mcp.Tool{Name: "ask"}, func(ctx context.Context, r *mcp.CallToolRequest, in echoArguments) (*mcp.CallToolResult, any, error) {
		answer, err := r.Session.Elicit(ctx, &mcp.ElicitParams{Message: in.Text, RequestedSchema: map[string]any{
			"type": "object", "properties": map[string]any{"answer": map[string]any{"type": "string"}},
		}})
		if err != nil {
			return nil, nil, err
		}
		return text(fmt.Sprint(answer.Action, " ", answer.Content["answer"])), nil, nil
	})
	handler := mcp.NewSSEHandler(func(*http.Request) *mcp.Server { return s }, nil)
	l := new(legacyServer)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			l.mu.Lock()
			l.tokens = append(l.tokens, r.Header.Get("Authorization"))
			l.mu.Unlock()
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	l.url = server.URL + "/sse"
	return l
}

// posted lists the credentials that messages came with, each once.
func (l *legacyServer) posted() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Compact(slices.Clone(l.tokens))
}

// connectLegacy connects go-sdk's client of 2024-11-05.
func connectLegacy(t testing.TB, address, token string, options *mcp.ClientOptions) *mcp.ClientSession {
	t.Helper()
	base := &http.Transport{}
	t.Cleanup(base.CloseIdleConnections)
	// The context ends the stream, too.
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	session, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, options).Connect(ctx, &mcp.SSEClientTransport{
		Endpoint: address, HTTPClient: &http.Client{Transport: &withToken{token: token, base: base}},
	}, nil)
	if err != nil {
		t.Fatalf("connecting to %s: %v", address, err)
	}
	t.Cleanup(func() { _ = session.Close() })
	return session
}

// TestLegacySSE checks that the official clients of the transport of 2024-11-05 work through the gateway as they are:
// lists, calls, progress, requests of the server's, two sessions at once. The upstream sees the user's credential, on
// every message.
func TestLegacySSE(t *testing.T) {
	t.Parallel()
	g := startGateway(t, settings{})
	upstream := newLegacyServer(t)
	s := g.createServer(upstream.url, map[string]any{"requires_auth": true, "provider": "bearer_token"})
	for _, user := range []claims{alice, bob} {
		g.connectBearer(g.token(user), s, "third-party-"+user["email"].(string))
	}
	const credential = "Bearer third-party-"

	t.Run("go-sdk", func(t *testing.T) {
		type client struct {
			name     string
			session  *mcp.ClientSession
			progress chan string
		}
		var clients []client
		for _, user := range []claims{alice, alice, bob} {
			c := client{name: fmt.Sprint(user["email"], len(clients)), progress: make(chan string, 8)}
			c.session = connectLegacy(t, g.url+s.path, g.token(user), &mcp.ClientOptions{
				ProgressNotificationHandler: clientProgress(c.progress),
				ElicitationHandler: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
					return &mcp.ElicitResult{Action: "accept", Content: map[string]any{"answer": c.name + r.Params.Message}}, nil
				},
			})
			clients = append(clients, c)
		}
		for range 3 {
			for _, c := range clients {
				tools, err := c.session.ListTools(within(t, callTimeout), nil)
				if err != nil || len(tools.Tools) != 3 {
					t.Fatalf("%s: %v, %v", c.name, tools, err)
				}
				params := &mcp.CallToolParams{Name: "steps"}
				params.SetProgressToken(c.name)
				if _, err := c.session.CallTool(within(t, callTimeout), params); err != nil {
					t.Fatal(err)
				}
				// Notifications are handled beside each other.
				steps := []string{receive(t, c.progress, "progress"), receive(t, c.progress, "progress")}
				if slices.Sort(steps); !slices.Equal(steps, []string{"one", "two"}) {
					t.Errorf("%s: progress %v", c.name, steps)
				}
				for tool, want := range map[string]string{"echo": c.name, "ask": "accept " + c.name + c.name} {
					result, err := c.session.CallTool(within(t, callTimeout), &mcp.CallToolParams{Name: tool, Arguments: map[string]any{"text": c.name}})
					if err != nil || textOf(result) != want {
						t.Errorf("%s, %s: %v, %v", c.name, tool, result, err)
					}
				}
			}
		}
		got := upstream.posted()
		slices.Sort(got)
		if want := []string{credential + "alice@acme.test", credential + "bob@acme.test"}; !slices.Equal(slices.Compact(got), want) {
			t.Errorf("the upstream was given %q, want %q", got, want)
		}
	})

	t.Run("TypeScript", func(t *testing.T) {
		output := runNode(t, conformanceTools(t), "clients/legacysse.mjs", g.url+s.path, g.token(alice), officialClients(t))
		var got map[string]any
		if err := json.Unmarshal([]byte(output), &got); err != nil {
			t.Fatalf("%s: %v", output, err)
		}
		want := map[string]any{
			"tools": []any{"ask", "echo", "steps"}, "echo": "grüezi", "steps": "done", "progress": []any{"one", "two"}, "ask": "accept really?",
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})

	t.Run("disconnect", func(t *testing.T) {
		session := connectLegacy(t, g.url+s.path, g.token(bob), nil)
		ended := make(chan error, 1)
		go func() { ended <- session.Wait() }()
		g.send(http.MethodDelete, "/api/servers/"+s.ID+"/connection", g.token(bob), nil)
		_ = receive(t, ended, "the end of the session")
		g.send(http.MethodGet, s.path, g.token(bob), nil, "Accept", "text/event-stream").want(t, http.StatusForbidden)
	})
}

// scriptedLegacy is an upstream whose stream begins with the given text, and stays open. Each write is a read; <up>
// stands for the upstream's origin.
func scriptedLegacy(t testing.TB, writes ...string) *upstream {
	return newUpstream(t, func(w http.ResponseWriter, r *http.Request, _ []byte) {
		if r.Method == http.MethodPost {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		control := http.NewResponseController(w)
		_ = control.Flush()
		for _, write := range writes {
			_, _ = io.WriteString(w, strings.ReplaceAll(write, "<up>", "http://"+r.Host))
			_ = control.Flush()
		}
		<-r.Context().Done()
	})
}

// TestLegacyEndpoint checks that the address for messages is replaced whatever it looks like, and only one at the
// server itself is taken. A client is never told another.
func TestLegacyEndpoint(t *testing.T) {
	t.Parallel()
	g := startGateway(t, settings{})
	for _, tc := range []struct {
		name   string
		writes []string
		posted string // where a message goes then
	}{
		{"path", []string{"event: endpoint\ndata: /messages?sessionId=1\n\n"}, "/messages?sessionId=1"},
		{"relative, dots", []string{"event: endpoint\ndata: ../m?x=%20\n\n"}, "/m?x=%20"},
		{"absolute, in pieces", []string{"event: endpo", "int\r\nda", "ta: <up>/messages\r", "\n\r\n"}, "/messages"},
		{"comments first", []string{": hello\n\n", ": again\n\nevent: endpoint\ndata: /m\n\n"}, "/m"},
		{"data first", []string{"data: /m\nid: 4\nevent: endpoint\n\n"}, "/m"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			upstream := scriptedLegacy(t, tc.writes...)
			s := g.createServer(upstream.url, nil)
			stream := g.listen(http.MethodGet, s.path, g.token(alice), nil, "Accept", "text/event-stream")
			defer stream.close()
			e := stream.next()
			if e.name != "endpoint" || !strings.HasPrefix(e.data, s.path+"?sessionId=") {
				t.Fatalf("%+v", e)
			}
			g.send(http.MethodPost, e.data, g.token(alice), ping).want(t, http.StatusAccepted)
			if got := upstream.last(t); got.method != http.MethodPost || got.uri != tc.posted || got.body != ping {
				t.Errorf("the upstream got %s %s %s", got.method, got.uri, got.body)
			}

			// W12: the address is this user's, with this agent, at this server, in this organization.
			before, other := len(upstream.all()), g.createServer(upstream.url, nil)
			for name, foreign := range map[string]struct {
				path   string
				caller claims
			}{
				"another user": {e.data, bob}, "an administrator": {e.data, admin}, "another organization": {e.data, eve},
				"another agent":  {e.data, alice.with(claims{"azp": "other-client", "client_id": "other-client"})},
				"another server": {strings.Replace(e.data, s.path, other.path, 1), alice},
				"altered":        {e.data[:len(e.data)-9] + "AAAAAAAAA", alice}, "not sealed": {s.path + "?sessionId=1", alice},
			} {
				if a := g.send(http.MethodPost, foreign.path, g.token(foreign.caller), ping); a.status != http.StatusNotFound {
					t.Errorf("%s: status %d: %s", name, a.status, a.body)
				}
			}
			g.send(http.MethodPost, e.data, g.token(alice), ping, "Mcp-Session-Id", "x").want(t, http.StatusBadRequest)
			g.send(http.MethodPost, e.data, "", ping).want(t, http.StatusUnauthorized)
			if after := len(upstream.all()); after != before {
				t.Errorf("%d foreign messages reached the upstream", after-before)
			}
		})
	}
}

// TestLegacyHostileEndpoint checks that an upstream that wants messages elsewhere gives no usable answer.
func TestLegacyHostileEndpoint(t *testing.T) {
	t.Parallel()
	g := startGateway(t, settings{})
	for _, tc := range []struct{ name, stream string }{
		{"another origin", "event: endpoint\ndata: https://evil.example/messages\n\n"},
		{"another origin without scheme", "event: endpoint\ndata: //evil.example/messages\n\n"},
		{"another port", "event: endpoint\ndata: http://127.0.0.1:1/evil\n\n"},
		{"script", "event: endpoint\ndata: javascript:evil()\n\n"},
		{"userinfo", "event: endpoint\ndata: http://evil@127.0.0.1/messages\n\n"},
		{"10 KB", "event: endpoint\ndata: /evil" + strings.Repeat("x", 10_000) + "\n\n"},
		{"two lines", "event: endpoint\ndata: /evil\r\ndata: /evil\r\n\r\n"},
		{"no data", "event: endpoint\n\n"},
		{"names that only some clients take", "event:  endpoint \ndata: //evil\n\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := g.createServer(scriptedLegacy(t, tc.stream).url, nil)
			response := g.open(t.Context(), http.MethodGet, s.path, g.token(alice), nil, "Accept", "text/event-stream")
			defer response.Body.Close()
			body, err := io.ReadAll(response.Body)
			// A loaded machine may be too late for the status; the stream then breaks.
			if response.StatusCode != http.StatusBadGateway && err == nil || strings.Contains(string(body), "evil") || strings.Contains(string(body), "endpoint\n") {
				t.Errorf("status %d, %v: %s", response.StatusCode, err, tail(string(body), 500))
			}
		})
	}
	t.Run("an endpoint after the first event", func(t *testing.T) {
		s := g.createServer(scriptedLegacy(t, "event: endpoint\ndata: /messages\n\n", "event: endpoint\ndata: /mcp/evil\n\n").url, nil)
		response := g.open(t.Context(), http.MethodGet, s.path, g.token(alice), nil, "Accept", "text/event-stream")
		defer response.Body.Close()
		if body, err := io.ReadAll(response.Body); err == nil || strings.Contains(string(body), "evil") {
			t.Errorf("%v: %s", err, body)
		}
	})
	t.Run("no event", func(t *testing.T) {
		// Streams of later revisions may be silent: their headers come without an event.
		s := g.createServer(scriptedLegacy(t).url, nil)
		response := g.open(t.Context(), http.MethodGet, s.path, g.token(alice), nil, "Accept", "text/event-stream")
		defer response.Body.Close()
		if response.StatusCode != http.StatusOK {
			t.Errorf("status %d", response.StatusCode)
		}
	})
}

// TestLegacyStreamEnds checks that the stream ends with the token it was opened with, and at the upstream when the
// client leaves.
func TestLegacyStreamEnds(t *testing.T) {
	t.Parallel()
	g := startGateway(t, settings{})
	left := make(chan struct{}, 2)
	upstream := newUpstream(t, func(w http.ResponseWriter, r *http.Request, _ []byte) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "event: endpoint\ndata: /messages\n\n")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
		left <- struct{}{}
	})
	s := g.createServer(upstream.url, nil)
	short := g.token(alice.with(claims{"iat": time.Now().Add(-time.Hour).Unix(), "exp": time.Now().Add(-15 * time.Second).Unix()})) // good for a quarter of a minute more
	stream := g.listen(http.MethodGet, s.path, short, nil, "Accept", "text/event-stream")
	if e := stream.next(); e.name != "endpoint" {
		t.Fatalf("%+v", e)
	}
	if rest := stream.ended(); len(rest) > 0 {
		t.Errorf("%v", rest)
	}
	receive(t, left, "the end at the upstream")

	ctx, leave := cancellable(t)
	response := g.open(ctx, http.MethodGet, s.path, g.token(alice), nil, "Accept", "text/event-stream")
	defer response.Body.Close()
	if line, err := bufio.NewReader(response.Body).ReadString('\n'); err != nil || line != "event: endpoint\n" {
		t.Fatalf("%q, %v", line, err)
	}
	leave()
	receive(t, left, "the end at the upstream")
}

// TestLegacyPageThatRefuses checks that the page with which a web framework around a server of 2024 refuses unknown
// requests is not passed on, but its status is: the status tells a client to fall back to that server's transport.
func TestLegacyPageThatRefuses(t *testing.T) {
	t.Parallel()
	g := startGateway(t, settings{})
	var status atomic.Int64
	u := newUpstream(t, func(w http.ResponseWriter, _ *http.Request, _ []byte) {
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(int(status.Load()))
		_, _ = io.WriteString(w, "<html>Cannot POST /sse</html>")
	})
	s := g.createServer(u.url, nil)
	for code, name := range map[int]string{404: "NotFound", 405: "MethodNotAllowed", 403: "UpstreamError", 500: "UpstreamError"} {
		status.Store(int64(code))
		answered := g.send(http.MethodPost, s.path, g.token(alice), echoCall, "Accept", bothKinds)
		if name == "UpstreamError" {
			answered.wantRPC(t, http.StatusBadGateway, -32603, "1", name)
			continue
		}
		answered.wantError(t, code, name)
	}
}
