package integration

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/durward-gateway/durward/integration/rig"
)

// TestReloadUnderLoad checks streams, counters and calls across reloads while calls come at a rate (Z-G01). At most one
// call is lost in all, and none that ran. RELOAD_STREAMS, RELOAD_RATE and RELOAD_COUNT make it longer.
// RELOAD_LISTENER=inherited hands the gateway an open socket, as systemd does, instead of an address: Caddy shuts those
// down by itself, and loses calls over HTTP/1.1.
func TestReloadUnderLoad(t *testing.T) {
	t.Parallel()
	streams, rate, reloads := rig.Number(t, "RELOAD_STREAMS", 60), rig.Number(t, "RELOAD_RATE", 100), rig.Number(t, "RELOAD_COUNT", 4)
	// Without TLS, HTTP/2 has to be switched on.
	g := startGateway(t, settings{global: "servers {\nprotocols h1 h2 h2c\n}", inherited: os.Getenv("RELOAD_LISTENER") == "inherited"})
	up := newNumbered(t)
	s := g.createServer(up.server.URL+"/mcp", map[string]any{"events_url": up.server.URL + "/events"})

	const ofOneUser = 50 // the cap is 100
	ctx, leave := context.WithCancel(t.Context())
	listeners := make([]*listener, streams)
	var opening, reading sync.WaitGroup
	atOnce := make(chan struct{}, 32)
	token := ""
	for i := range streams {
		if i%ofOneUser == 0 {
			token = g.token(alice.with(claims{"sub": fmt.Sprintf("0190cccc-0000-7000-8000-%012d", i), "email": fmt.Sprintf("user%d@acme.test", i)}))
		}
		path, bearer := "/sse/"+s.Slug, token
		if i%2 == 1 {
			path = s.path
		}
		atOnce <- struct{}{}
		opening.Go(func() {
			defer func() { <-atOnce }()
			if listeners[i] = g.follow(ctx, path, bearer); listeners[i] != nil {
				reading.Go(listeners[i].read)
			}
		})
	}
	opening.Wait()
	defer g.client.CloseIdleConnections() // the exit waits five seconds for those that were never used
	defer reading.Wait()
	defer leave()
	if slices.Contains(listeners, nil) {
		return
	}
	g.eventually("every stream has reached the upstream", func() bool { return up.open() == streams })
	up.publish()
	heard := func() bool {
		for _, l := range listeners {
			if l.heard.Load() != up.published.Load() && l.problem.Load() == nil {
				return false
			}
		}
		return true
	}
	g.eventually("every stream delivers", heard)

	c := newCallers(g.url+s.path, g.token(alice), rate, nil)
	g.eventually("calls are answered", func() bool { return c.answered.Load() > 0 })
	before := g.counters()
	began, first := time.Now(), c.serial.Load()
	for range reloads {
		published := make(chan struct{})
		go func() { defer close(published); up.publish() }() // while the configurations change
		g.load(g.written())
		<-published
		up.publish()
		answered := c.answered.Load()
		g.eventually("calls go on", func() bool { return c.answered.Load() >= answered+int64(max(rate/5, 1)) })
		after := g.counters()
		for series, was := range before {
			if now, ok := after[series]; !ok || now < was {
				t.Errorf("%s went from %v to %v (there: %v)", series, was, now, ok)
			}
		}
		before = after
	}
	perSecond := float64(c.serial.Load()-first) / time.Since(began).Seconds()
	c.stop()
	g.eventually("every stream has every event", heard)
	for i, l := range listeners {
		if p := l.problem.Load(); p != nil {
			t.Errorf("stream %d, after event %d: %s", i, l.heard.Load(), *p)
		}
	}
	if n := up.opened.Load(); n != int64(streams) {
		t.Errorf("%d streams were opened at the upstream for %d", n, streams)
	}
	for family, want := range map[string]int{"sse": (streams + 1) / 2, "mcp": streams / 2} {
		if got := g.metric(`durward_open_streams{family="` + family + `"}`); got != strconv.Itoa(want) {
			t.Errorf("%s streams open: %s instead of %d", family, got, want)
		}
	}
	if got := g.metric(`durward_calls_total{family="mcp",result="ok"}`); got != strconv.FormatInt(c.answered.Load(), 10) {
		t.Errorf("%s calls are counted, %d were answered", got, c.answered.Load())
	}
	lost := c.judge(t, up)
	if shared := os.Getenv("RELOAD_LISTENER") == ""; shared && lost.total() > 1 || lost.http2 > 1 {
		t.Errorf("%s", lost)
	}
	slices.Sort(c.took)
	t.Logf("%d streams, %d reloads, %d events each, %d calls (%.0f/s, half within %v, all within %v): %s", streams, reloads, up.published.Load(),
		c.serial.Load(), perSecond, c.took[len(c.took)/2], c.took[len(c.took)-1], lost)
}

// load replaces the configuration through the admin socket, without a process of its own for it.
func (g *gateway) load(caddyfile string) {
	g.t.Helper()
	transport := &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", g.adminSocket())
	}}
	request, err := http.NewRequestWithContext(g.t.Context(), http.MethodPost, "http://127.0.0.1/load", strings.NewReader(caddyfile))
	if err != nil {
		g.t.Fatal(err)
	}
	request.Header.Set("Content-Type", "text/caddyfile")
	request.Header.Set("Cache-Control", "must-revalidate") // also when nothing has changed
	response, err := (&http.Client{Transport: transport, Timeout: callTimeout}).Do(request)
	if err != nil {
		g.t.Fatal(err)
	}
	defer response.Body.Close()
	if content, err := io.ReadAll(response.Body); err != nil || response.StatusCode != http.StatusOK {
		g.t.Fatalf("loading: %s %s, %v", response.Status, content, err)
	}
}

// counters returns the gateway's own series that only ever grow.
func (g *gateway) counters() map[string]float64 {
	g.t.Helper()
	all := map[string]float64{}
	for line := range strings.Lines(g.admin("/metrics")) {
		series, text, _ := strings.Cut(strings.TrimSpace(line), " ")
		name, _, _ := strings.Cut(series, "{")
		if !strings.HasPrefix(name, "durward_") || !strings.HasSuffix(name, "_total") && !strings.HasSuffix(name, "_count") && !strings.HasSuffix(name, "_sum") {
			continue
		}
		value, err := strconv.ParseFloat(text, 64)
		if err != nil {
			g.t.Fatalf("%s: %v", line, err)
		}
		all[series] = value
	}
	if len(all) == 0 {
		g.t.Fatal("there are no counters")
	}
	return all
}

// numbered is an upstream whose events carry numbers from 1 on, and which keeps a journal of the calls that ran.
type numbered struct {
	server    *httptest.Server
	opened    atomic.Int64 // streams, ever
	published atomic.Int64

	mu      sync.Mutex
	streams map[chan int64]bool
	journal map[int64]int // how often a call ran, by its serial number
}

func newNumbered(t *testing.T) *numbered {
	t.Helper()
	u := &numbered{streams: map[chan int64]bool{}, journal: map[int64]int{}}
	u.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			u.serveEvents(w, r)
			return
		}
		var message struct {
			Params struct {
				Arguments struct {
					Serial int64 `json:"serial"`
				} `json:"arguments"`
			} `json:"params"`
		}
		if err := json.NewDecoder(r.Body).Decode(&message); err != nil {
			t.Errorf("the upstream got a call that it cannot read: %v", err)
		}
		u.mu.Lock()
		u.journal[message.Params.Arguments.Serial]++
		u.mu.Unlock()
		writeJSON(w, http.StatusOK, map[string]any{"jsonrpc": "2.0", "id": message.Params.Arguments.Serial, "result": map[string]any{"content": []any{}}})
	}))
	t.Cleanup(func() {
		u.server.CloseClientConnections()
		u.server.Close()
	})
	return u
}

func (u *numbered) serveEvents(w http.ResponseWriter, r *http.Request) {
	numbers := make(chan int64, 1024)
	u.mu.Lock()
	u.streams[numbers] = true
	u.mu.Unlock()
	u.opened.Add(1)
	defer func() {
		u.mu.Lock()
		delete(u.streams, numbers)
		u.mu.Unlock()
	}()
	format := "event: message\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{\"level\":\"info\",\"data\":\"#%d#\"}}\n\n"
	if r.URL.Path == "/events" {
		format = "event: data_update\ndata: {\"type\":\"issue\",\"id\":\"#%d#\",\"changes\":{}}\n\n"
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
	out := http.NewResponseController(w)
	for out.Flush() == nil {
		select {
		case n := <-numbers:
			_, _ = fmt.Fprintf(w, format, n)
		case <-r.Context().Done():
			return
		}
	}
}

func (u *numbered) open() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return len(u.streams)
}

// publish sends the next number on every stream.
func (u *numbered) publish() {
	u.mu.Lock()
	defer u.mu.Unlock()
	n := u.published.Add(1)
	for numbers := range u.streams {
		numbers <- n
	}
}

// ran returns the number of runs of a call.
func (u *numbered) ran(serial int64) int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.journal[serial]
}

// listener reads a stream of numbered events.
type listener struct {
	ctx     context.Context
	body    io.ReadCloser
	heard   atomic.Int64
	problem atomic.Pointer[string] // a gap, or an end that the test did not ask for
}

// follow opens a stream on a connection of its own. A nil listener has failed the test.
func (g *gateway) follow(ctx context.Context, path, token string) *listener {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, g.url+path, nil)
	if err != nil {
		g.t.Error(err)
		return nil
	}
	request.Header.Set("Authorization", "Bearer "+token)
	request.Header.Set("Accept", "application/json, text/event-stream")
	response, err := (&http.Client{Transport: g.client.Transport}).Do(request) // a stream outlives every time-out of a call
	if err != nil {
		g.t.Error(err)
		return nil
	}
	if response.StatusCode != http.StatusOK {
		_ = response.Body.Close()
		g.t.Errorf("%s: status %d", path, response.StatusCode)
		return nil
	}
	return &listener{ctx: ctx, body: response.Body}
}

func (l *listener) read() {
	defer l.body.Close()
	lines := bufio.NewScanner(l.body)
	for lines.Scan() {
		parts := strings.Split(lines.Text(), "#")
		if len(parts) != 3 {
			continue // another line of the event, or a sign of life
		}
		n, err := strconv.ParseInt(parts[1], 10, 64)
		if last := l.heard.Load(); err != nil || n != last+1 {
			l.fail(fmt.Sprintf("after event %d came %q", last, lines.Text()))
			return
		}
		l.heard.Store(n)
	}
	if l.ctx.Err() == nil {
		l.fail(fmt.Sprintf("the stream ended: %v", lines.Err()))
	}
}

func (l *listener) fail(text string) { l.problem.Store(&text) }

// callers call a tool at a rate: half of the calls over HTTP/2, a quarter on kept connections of HTTP/1.1, a quarter on
// new ones.
type callers struct {
	address, token   string
	clients          [4]*http.Client // taken in turn
	serial, answered atomic.Int64
	finish           func()

	mu     sync.Mutex
	failed []failure
	took   []time.Duration // of answered calls
}

// failure is a call without an answer of the tool.
type failure struct {
	serial int64
	reused bool // on a connection that had served a call before
	http2  bool
	err    error
}

// newCallers begins to call. With over, the calls go over TLS.
func newCallers(address, token string, rate int, over *tls.Config) *callers {
	one, two := new(http.Protocols), new(http.Protocols)
	one.SetHTTP1(true)
	two.SetUnencryptedHTTP2(over == nil)
	two.SetHTTP2(over != nil)
	client := func(transport *http.Transport) *http.Client {
		transport.TLSClientConfig = over.Clone()
		return &http.Client{Timeout: callTimeout, Transport: transport}
	}
	multiplexed := client(&http.Transport{Protocols: two})
	kept := client(&http.Transport{Protocols: one, MaxIdleConnsPerHost: 32})
	fresh := client(&http.Transport{Protocols: one, DisableKeepAlives: true})
	c := &callers{address: address, token: token, clients: [4]*http.Client{fresh, multiplexed, kept, multiplexed}}
	halt := atRate(rate, &c.serial, c.call)
	c.finish = func() {
		halt()
		for _, client := range c.clients {
			client.CloseIdleConnections()
		}
	}
	return c
}

// atRate begins to call with numbers from 1 on, so many in a second, whether those before have returned or not. serial is the
// last one. The function that it returns ends that and waits for those that have not returned.
func atRate(rate int, serial *atomic.Int64, call func(serial int64)) (halt func()) {
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		var all sync.WaitGroup
		defer all.Wait()
		ticker := time.NewTicker(2 * time.Millisecond)
		defer ticker.Stop()
		begun := time.Now()
		for {
			select {
			case <-ticker.C:
			case <-stop:
				return
			}
			for due := int64(time.Since(begun).Seconds() * float64(rate)); serial.Load() < due; {
				n := serial.Add(1)
				all.Go(func() { call(n) })
			}
		}
	}()
	return func() {
		close(stop)
		<-done
	}
}

// stop ends the calls and waits for the last answers.
func (c *callers) stop() { c.finish() }

func (c *callers) call(serial int64) {
	client, reused := c.clients[serial%4], false
	ctx := httptrace.WithClientTrace(context.Background(), &httptrace.ClientTrace{GotConn: func(i httptrace.GotConnInfo) { reused = i.Reused }})
	message := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"count","arguments":{"serial":%d}}}`, serial, serial)
	begun := time.Now()
	err := post(ctx, client, c.address, c.token, message)
	took := time.Since(begun)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err == nil {
		c.took = append(c.took, took)
		c.answered.Add(1)
		return
	}
	c.failed = append(c.failed, failure{serial, reused, serial%2 == 1, err})
}

// losses holds calls that failed with their connection.
type losses struct {
	queued int // new connections that were reset: they waited for a socket that was closed
	read   int // new connections that ended: net/http drops a request that it reads after its shutdown began
	kept   int // connections of HTTP/1.1 that were kept after a call, and closed as idle
	http2  int
}

func (l losses) total() int { return l.queued + l.read + l.kept + l.http2 }

func (l losses) String() string {
	return fmt.Sprintf("%d failed with their connection: %d in the queue of a socket, %d on another new connection, %d on a kept one of HTTP/1.1, %d over HTTP/2",
		l.total(), l.queued, l.read, l.kept, l.http2)
}

// judge compares the callers' answers with the journal of the upstream: an answered call ran once, any other never.
func (c *callers) judge(t *testing.T, up *numbered) (l losses) {
	t.Helper()
	failed := map[int64]bool{}
	for _, f := range c.failed {
		failed[f.serial] = true
		var refused *refusedError
		if errors.As(f.err, &refused) {
			t.Errorf("call %d was refused: %v", f.serial, f.err)
			continue
		}
		if os.IsTimeout(f.err) {
			t.Errorf("call %d has no answer: %v", f.serial, f.err)
		}
		if n := up.ran(f.serial); n != 0 {
			t.Errorf("call %d ran and failed (connection used before: %v): %v", f.serial, f.reused, f.err)
		}
		switch {
		case f.http2:
			l.http2++
			t.Logf("call %d over HTTP/2: %v", f.serial, f.err)
		case f.reused:
			l.kept++
		case errors.Is(f.err, io.EOF):
			l.read++
		default:
			l.queued++
		}
	}
	for serial := int64(1); serial <= c.serial.Load(); serial++ {
		if n := up.ran(serial); !failed[serial] && n != 1 {
			t.Errorf("call %d was answered and ran %d times", serial, n)
		}
	}
	return l
}
