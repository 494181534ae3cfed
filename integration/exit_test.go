package integration

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/durward-gateway/durward/integration/rig"
)

// TestExit checks that SIGTERM ends streams with a word and lets calls run to their answer; the next start finds
// everything.
func TestExit(t *testing.T) {
	t.Parallel()
	r := startRunning(t, settings{})
	answered := make(chan answer, 1)
	go func() { answered <- r.callTool(r.user, r.oauth, r.session, "wait") }()
	receive(t, r.party.waiting, "the call at the third party")

	if err := r.command.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	r.events.want("status_change", `{"reason":"shutdown","status":"disconnected"}`)
	if rest := append(r.events.ended(), r.get.ended()...); len(rest) > 0 {
		t.Errorf("after the last event came %v", rest)
	}
	// A call that streams its answer is no stream: it ends by itself.
	const result = `{"jsonrpc":"2.0","id":7,"result":{"content":[]}}`
	r.party.publish("post", "message", result)
	r.post.want("message", result)
	r.post.close()
	select {
	case <-r.exited:
		t.Fatal("the gateway did not wait for a call")
	case a := <-answered:
		t.Fatalf("the call was answered %d %s before the tool was done", a.status, a.body)
	default:
	}
	close(r.party.release)
	if a := receive(t, answered, "the answer of the call"); a.status != http.StatusOK || !strings.Contains(string(a.body), "done") {
		t.Errorf("the call was answered %d %s", a.status, a.body)
	}
	select {
	case <-r.exited:
	case <-time.After(stopTimeout):
		t.Fatal("the gateway does not end")
	}
	if code := exitCode(r.Err); code != 0 {
		t.Errorf("the gateway ended with status %d", code)
	}
	if left, err := filepath.Glob(filepath.Join(r.directory, "durward.db-*")); err != nil || len(left) > 0 {
		t.Errorf("the store was not closed: %v %v", left, err)
	}

	r.restart()
	if r.connection(r.user, r.oauth) != "connected" {
		t.Error("the connection is lost")
	}
	r.call() // in the session from before
}

// TestExitCancelled checks that a call that its client has taken back, and that its server never answers, does not hold
// the exit: neither one of a revision with sessions, whose stream stays open, nor one of 2026-07-28, whose client
// closes its stream.
func TestExitCancelled(t *testing.T) {
	t.Parallel()
	g := startGateway(t, settings{option: "streams {\n\t\t\tdrain 1h\n\t\t}"})
	token, calls := g.token(alice), make(chan struct{}, 8)
	upstream := newUpstream(t, func(w http.ResponseWriter, r *http.Request, body []byte) {
		switch text := string(body); {
		case strings.Contains(text, `"initialize"`):
			w.Header().Set("Mcp-Session-Id", "first")
			answerTo(w, body, `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"silent","version":"1"}}`)
		case strings.Contains(text, "notifications/"):
			w.WriteHeader(http.StatusAccepted)
		case strings.Contains(text, `"begun"`):
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, ": begun\n\n")
			_ = http.NewResponseController(w).Flush()
			fallthrough
		default:
			calls <- struct{}{}
			<-r.Context().Done()
		}
	})
	s := g.createServer(upstream.url, nil)
	session := g.initialize(token, s)
	call := func(id, tool string) string {
		return `{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"` + tool + `","arguments":{}}}`
	}
	cancel := func(id string) string {
		return `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + id + `}}`
	}
	answers := make(chan answer, 2)
	for id, tool := range map[string]string{"1": "silent", "2": "begun"} {
		go func() { answers <- g.mcp(token, s, session, call(id, tool)) }()
		receive(t, calls, "the call at the server")
	}
	ctx, leave := cancellable(t)
	left := make(chan struct{})
	go func() {
		defer close(left)
		request, err := rig.NewRequest(ctx, http.MethodPost, g.url+s.path, token, json.RawMessage(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"silent","arguments":{},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`))
		if err != nil {
			t.Error(err)
			return
		}
		request.Header.Set("Accept", acceptBoth)
		request.Header.Set("MCP-Protocol-Version", "2026-07-28")
		request.Header.Set("Mcp-Method", "tools/call")
		request.Header.Set("Mcp-Name", "silent")
		if response, err := g.client.Do(request); err == nil {
			t.Errorf("answered %s", response.Status)
			_ = response.Body.Close()
		}
	}()
	receive(t, calls, "the call of 2026-07-28 at the server")

	leave()
	receive(t, left, "the client to leave")
	for _, id := range []string{"1", "2"} {
		g.mcp(token, s, session, cancel(id)).want(t, http.StatusAccepted)
		if a := receive(t, answers, "the end of the call"); a.status != http.StatusOK || strings.Contains(string(a.body), "jsonrpc") || a.header.Get("Content-Type") != "text/event-stream" {
			t.Errorf("%d %q %s", a.status, a.header.Get("Content-Type"), a.body)
		}
	}
	go func() { answers <- g.mcp(token, s, session, call("7", "silent")) }()
	receive(t, calls, "the last call at the server")
	g.mcp(token, s, session, cancel("7")).want(t, http.StatusAccepted)
	if err := g.command.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	select {
	case <-g.exited:
	case <-time.After(stopTimeout):
		t.Fatal("the exit is held")
	}
	receive(t, answers, "the end of the last call")
}

// TestExitAfterReload checks that the exit ends the streams of every configuration that still has some, and lets its
// calls run.
func TestExitAfterReload(t *testing.T) {
	t.Parallel()
	r := startRunning(t, settings{})
	answered := make(chan answer, 1)
	go func() { answered <- r.callTool(r.user, r.oauth, r.session, "wait") }()
	receive(t, r.party.waiting, "the call at the third party")
	r.post.close()
	r.mustReload(strings.Replace(r.written(), "durward.db", "other.db", 1))
	s := r.createServer(r.party.url()+"/open", map[string]any{"events_url": r.party.url() + "/open/events"})
	late := r.listen(http.MethodGet, "/sse/"+s.Slug, r.user, nil)
	late.next() // connected

	if err := r.command.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	for _, events := range []*eventStream{r.events, late} {
		events.want("status_change", `{"reason":"shutdown","status":"disconnected"}`)
	}
	if rest := append(append(r.events.ended(), late.ended()...), r.get.ended()...); len(rest) > 0 {
		t.Errorf("after the last event came %v", rest)
	}
	close(r.party.release)
	receive(t, answered, "the answer of the call").want(t, http.StatusOK)
	select {
	case <-r.exited:
	case <-time.After(stopTimeout):
		t.Fatal("the gateway does not end")
	}
	if left, err := filepath.Glob(filepath.Join(r.directory, "*.db-*")); err != nil || len(left) > 0 {
		t.Errorf("a store was not closed: %v %v", left, err)
	}
}

// TestExitDelay checks that a process that is to exit reports it on /readyz, and accepts new connections as before
// until load balancers have noticed.
func TestExitDelay(t *testing.T) {
	t.Parallel()
	const delay = 10 * time.Second
	g := startGateway(t, settings{option: "streams {\n\t\t\texit_delay 10s\n\t\t}"})
	token := g.token(alice)
	told := time.Now()
	if err := g.command.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	g.eventually("/readyz to say that the gateway exits", func() bool {
		return g.send(http.MethodGet, "/readyz", "", nil).status == http.StatusServiceUnavailable
	})
	connection, err := net.Dial("tcp", strings.TrimPrefix(g.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	_ = connection.Close()
	g.send(http.MethodGet, "/api/servers", token, nil).want(t, http.StatusOK)
	select {
	case <-g.exited:
	case <-time.After(stopTimeout):
		t.Fatal("the gateway does not end")
	}
	if took := time.Since(told); took < delay {
		t.Errorf("it ended after %v", took)
	}
}

// restart starts the gateway anew, with the files of the first time.
func (g *gateway) restart() {
	g.t.Helper()
	g.stop(g.t)
	g.process = startProcess(g.t, g.directory, g.command.Env, durward(g.t), g.command.Args[1:]...)
	g.waitFor(g.t, g.url+"/readyz")
}
