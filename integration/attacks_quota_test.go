package integration

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// silent is an upstream whose streams send nothing until they are left.
func silent(t *testing.T) *upstream {
	t.Helper()
	return newUpstream(t, func(w http.ResponseWriter, r *http.Request, body []byte) {
		if len(body) > 0 {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":1,"result":{}}`)
			return
		}
		beginEvents(w)
		<-r.Context().Done()
	})
}

// join opens a stream, reads up to its beginning, and returns the status; it is open until leave is called.
func (g *gateway) join(path, token string) (a answer, leave context.CancelFunc, err error) {
	ctx, cancel := context.WithCancel(g.t.Context())
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, g.url+path, nil)
	if err != nil {
		cancel()
		return a, nil, err
	}
	request.Header.Set("Authorization", "Bearer "+token)
	request.Header.Set("Accept", bothKinds)
	client := &http.Client{Transport: g.client.Transport} // a stream outlives every time-out of a call
	response, err := client.Do(request)
	if err != nil {
		cancel()
		return a, nil, err
	}
	a = answer{status: response.StatusCode, header: response.Header}
	if a.status == http.StatusOK {
		return a, func() { cancel(); _ = response.Body.Close() }, nil
	}
	defer cancel()
	defer response.Body.Close()
	a.body, err = io.ReadAll(response.Body)
	return a, nil, err
}

// TestAttackStreamQuota checks that a user who opens 120 streams at once gets 100, on /sse and /mcp together (W06).
// Others are not affected, a stream that is left makes room for another, and a reload changes the bounds for what is
// open.
func TestAttackStreamQuota(t *testing.T) {
	t.Parallel()
	g := startGateway(t, settings{})
	upstream := silent(t)
	s := g.createServer(upstream.url, upstream.eventsEntry())
	token, other := g.token(alice), g.token(bob)
	type opened struct {
		answer
		leave context.CancelFunc
		mcp   bool
	}
	results := make(chan opened, 120)
	var openers sync.WaitGroup
	for i := range cap(results) {
		path := "/sse/" + s.Slug
		if i%2 == 1 {
			path = s.path
		}
		openers.Go(func() {
			a, leave, err := g.join(path, token)
			if err != nil {
				t.Error(err)
			}
			results <- opened{a, leave, i%2 == 1}
		})
	}
	openers.Wait()
	close(results)
	var open []context.CancelFunc
	refusals := 0
	for r := range results {
		if r.status == http.StatusOK {
			open = append(open, r.leave)
			continue
		}
		refusals++
		if r.header.Get("Retry-After") == "" {
			t.Error("no Retry-After")
		}
		if r.mcp {
			r.wantRPC(t, http.StatusTooManyRequests, -31429, "<nil>", "RateLimitExceeded")
		} else {
			r.wantError(t, http.StatusTooManyRequests, "RateLimitExceeded")
		}
	}
	if len(open) != 100 || refusals != 20 {
		t.Fatalf("%d streams are open, %d were refused", len(open), refusals)
	}
	status := func(path, token string) int {
		a, leave, err := g.join(path, token)
		if err != nil {
			t.Fatal(err)
		}
		if leave != nil {
			open = append(open, leave)
		}
		return a.status
	}
	// A call is no stream, and another user has places of their own.
	g.send(http.MethodPost, s.path, token, pingMessage, "Accept", bothKinds).want(t, http.StatusOK)
	if got := status("/sse/"+s.Slug, other); got != http.StatusOK {
		t.Errorf("another user's stream: %d", got)
	}
	open[0]()
	g.eventually("the stream that was left makes room", func() bool { return status("/sse/"+s.Slug, token) == http.StatusOK })
	if got := status(s.path, token); got != http.StatusTooManyRequests {
		t.Errorf("a stream more: %d", got)
	}

	bounded := func(words string) string {
		return strings.Replace(g.written(), "egress {", "streams {\n\t\t\t"+words+"\n\t\t}\n\t\tegress {", 1)
	}
	if output, err := g.reload(strings.Replace(bounded("max 1"), "{env.DURWARD_TEST_KEY}", "{env.DURWARD_NO_KEY}", 1)); err == nil {
		t.Fatalf("a configuration without its key was loaded: %s", output)
	}
	if got := status("/sse/"+s.Slug, other); got != http.StatusOK {
		t.Errorf("another user's stream after a reload that failed: %d", got)
	}
	g.mustReload(bounded("max_per_user 101"))
	if got := []int{status("/sse/"+s.Slug, token), status("/sse/"+s.Slug, token)}; got[0] != 200 || got[1] != 429 {
		t.Errorf("with one place more: %v", got)
	}
	g.mustReload(bounded("max_per_user 200\n\t\t\tmax 104"))
	// 101 of one user and two of another are open.
	if got := status(s.path, other); got != http.StatusOK {
		t.Errorf("the last place of all: %d", got)
	}
	for _, token := range []string{token, other} {
		a, _, err := g.join("/sse/"+s.Slug, token)
		if err != nil {
			t.Fatal(err)
		}
		a.wantError(t, http.StatusServiceUnavailable, "Unavailable")
		if a.header.Get("Retry-After") == "" {
			t.Error("no Retry-After")
		}
	}
	for _, leave := range open {
		leave()
	}
	g.eventually("all places are free", func() bool {
		return g.metric(`durward_open_streams{family="sse"}`) == "0" && g.metric(`durward_open_streams{family="mcp"}`) == "0"
	})
}

// TestShedding checks that a gateway that has no memory left refuses new calls and says so to load balancers; what runs
// goes on, and with memory everything is as before.
func TestShedding(t *testing.T) {
	t.Parallel()
	r := startRunning(t, settings{})
	config := r.written()
	// Less than the process uses at rest.
	r.mustReload(strings.Replace(config, "egress {", "memory_limit 1MiB\n\t\tegress {", 1))
	for path, method := range map[string]string{"/sse/" + r.oauth.Slug: http.MethodGet, r.oauth.path: http.MethodPost} {
		a := r.send(method, path, r.user, toolCall("echo"), mcpHeader(r.session)...)
		a.wantError(t, http.StatusServiceUnavailable, "Unavailable")
		if a.header.Get("Retry-After") == "" {
			t.Errorf("%s: no Retry-After", path)
		}
	}
	r.send(http.MethodGet, "/readyz", "", nil).wantError(t, http.StatusServiceUnavailable, "Unavailable")
	r.send(http.MethodGet, "/healthz", "", nil).want(t, http.StatusOK)
	r.deliver("short of memory")
	r.mustReload(config)
	r.send(http.MethodGet, "/readyz", "", nil).want(t, http.StatusOK)
	r.call()
	r.deliver("after")
	if !strings.Contains(r.output.String(), "refusing every new call") {
		t.Error("the log does not say why")
	}
}

// TestMCPHeartbeat checks that a quiet stream of /mcp shows that it lives, and so does a long call that is answered as
// one (W7).
func TestMCPHeartbeat(t *testing.T) {
	t.Parallel()
	g := startGateway(t, settings{option: "streams {\n heartbeat 1s\n }"})
	shown := make(chan struct{})
	upstream := newUpstream(t, func(w http.ResponseWriter, r *http.Request, body []byte) {
		beginEvents(w)
		if len(body) == 0 {
			<-r.Context().Done()
			return
		}
		select {
		case <-shown:
			_, _ = io.WriteString(w, `data: {"jsonrpc":"2.0","id":1,"result":{"content":[]}}`+"\n\n")
		case <-r.Context().Done():
		}
	})
	s := g.createServer(upstream.url, nil)
	comment := func(method string, body any) (rest *bufio.Reader) {
		t.Helper()
		ctx, cancel := context.WithCancel(t.Context())
		t.Cleanup(cancel)
		response := g.open(ctx, method, s.path, g.token(alice), body, "Accept", bothKinds)
		t.Cleanup(func() { _ = response.Body.Close() })
		rest = bufio.NewReader(response.Body)
		for {
			switch line, err := rest.ReadString('\n'); {
			case err != nil:
				t.Fatalf("%s: it ends without a comment: %v", method, err)
			case strings.HasPrefix(line, ":"):
				return rest
			}
		}
	}
	comment(http.MethodGet, nil)
	rest := comment(http.MethodPost, echoCall)
	close(shown)
	if text, err := io.ReadAll(rest); err != nil || !strings.Contains(string(text), `"content":[]`) {
		t.Errorf("the answer after it: %q, %v", text, err)
	}
}

// TestStreamTimes checks the operator's words for a quiet stream, for an upstream's silence and for calls at the exit.
func TestStreamTimes(t *testing.T) {
	t.Parallel()
	g := startGateway(t, settings{option: "streams {\n idle 3s\n drain 1s\n heartbeat 1s\n }"})
	release, arrived := make(chan struct{}), make(chan struct{}, 1)
	defer close(release)
	upstream := newUpstream(t, func(w http.ResponseWriter, r *http.Request, body []byte) {
		if len(body) > 0 {
			arrived <- struct{}{}
			<-release
			return
		}
		beginEvents(w)
		<-r.Context().Done()
	})
	s := g.createServer(upstream.url, upstream.eventsEntry())
	token := g.token(alice)
	response := g.open(t.Context(), http.MethodGet, "/sse/"+s.Slug, token, nil)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	const end = "event: status_change\ndata: {\"reason\":\"timeout\",\"status\":\"disconnected\"}\n\n"
	if comments := strings.Count("\n"+string(text), "\n:"); comments < 1 || comments > 3 || !strings.HasSuffix(string(text), end) {
		t.Errorf("%d heartbeats in %q", comments, text)
	}

	cut := make(chan answer, 1)
	go func() {
		a, err := g.try(http.MethodPost, s.path, token, pingMessage)
		if err != nil {
			t.Error(err)
		}
		cut <- a
	}()
	receive(t, arrived, "the call at the upstream")
	if err := g.command.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	receive(t, cut, "the end of the call").wantError(t, http.StatusServiceUnavailable, "Unavailable")
	receive(t, g.exited, "the end of the gateway")
}
