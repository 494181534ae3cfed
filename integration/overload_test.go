package integration

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/durward-gateway/durward/integration/rig"
)

// hammer calls a tool over so many connections, each as fast as it is answered, and says how many calls were answered in a
// second of the gateway's processor, which it shares with these callers here, and how many were not answered.
func (g *gateway) hammer(s server, token string, connections int, during time.Duration) (perSecond float64, failed int64) {
	g.t.Helper()
	used := func() float64 {
		seconds, err := strconv.ParseFloat(g.metric("process_cpu_seconds_total"), 64)
		if err != nil {
			g.t.Fatal(err)
		}
		return seconds
	}
	before := used()
	client := &http.Client{Timeout: callTimeout, Transport: &http.Transport{MaxIdleConnsPerHost: connections}}
	defer client.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(g.t.Context(), during)
	defer cancel()
	var answered, lost atomic.Int64
	var callers sync.WaitGroup
	for range connections {
		callers.Go(func() {
			for ctx.Err() == nil {
				if err := call(client, g.url+s.path, token); err != nil {
					lost.Add(1)
				} else {
					answered.Add(1)
				}
			}
		})
	}
	callers.Wait()
	return float64(answered.Load()) / (used() - before), lost.Load()
}

// TestOverload checks that five times as many callers as keep the gateway busy get as much done together, thirty times
// as many are all answered, and leave the administrator a way in; after them everything is as quick as before (Z-O01).
// OVERLOAD_SECONDS makes it longer.
func TestOverload(t *testing.T) {
	t.Parallel()
	g := startGateway(t, settings{env: []string{"GOMAXPROCS=1"}})
	s := g.createServer(newThirdParty(t).url()+"/open", nil)
	token, boss := g.token(alice), g.token(admin)
	during := time.Duration(rig.Number(t, "OVERLOAD_SECONDS", 1)) * time.Second
	asking, asked := make(chan struct{}), make(chan struct{})
	var took []time.Duration
	go func() {
		defer close(asked)
		client := &http.Client{Timeout: callTimeout, Transport: &http.Transport{DisableKeepAlives: true}}
		often := time.NewTicker(50 * time.Millisecond) // more often it would be a load of its own
		defer often.Stop()
		for {
			select {
			case <-asking:
				return
			case <-often.C:
			}
			begun := time.Now()
			request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, g.url+"/api/servers", nil)
			if err != nil {
				t.Error(err)
				return
			}
			request.Header.Set("Authorization", "Bearer "+boss)
			response, err := client.Do(request)
			if err != nil || response.StatusCode != http.StatusOK {
				t.Errorf("the administrator gets %v, %v", response, err)
				return
			}
			_, _ = io.Copy(io.Discard, response.Body)
			_ = response.Body.Close()
			took = append(took, time.Since(begun))
		}
	}()
	// The runs take turns, because other load of the machine changes the cost of a call.
	var peak, crowd, flood float64
	const rounds = 3
	for range rounds {
		for callers, best := range map[int]*float64{16: &peak, 80: &crowd, 480: &flood} {
			answered, failed := g.hammer(s, token, callers, during/rounds)
			if failed > 0 || answered == 0 {
				t.Errorf("%d callers: %.0f calls a second of the processor, %d failed", callers, answered, failed)
			}
			*best = max(*best, answered)
		}
	}
	close(asking)
	<-asked
	// Within a second a slow machine has hardly opened the connections.
	if crowd < 0.8*peak && figures() {
		t.Errorf("80 callers: %.0f calls a second of the processor; 16 callers: %.0f", crowd, peak)
	}
	if slow := percentile(took, 99); slow > allowed(time.Second) {
		t.Errorf("99 of 100 requests of the administrator took %v", slow)
	}
	stopped := time.Now()
	g.eventually("calls are quick again", func() bool {
		begun := time.Now()
		g.callTool(token, s, "", "echo").want(t, http.StatusOK)
		return time.Since(begun) < 50*time.Millisecond
	})
	if recovery := time.Since(stopped); recovery > allowed(5*time.Second) {
		t.Errorf("it took %v to recover", recovery)
	}
	t.Logf("16 callers: %.0f calls a second of the processor, 80 callers: %.0f, 480 callers: %.0f; administrator %v (99 %%) of %d; recovered after %v", peak, crowd, flood, percentile(took, 99), len(took), time.Since(stopped))
}

// TestOneUpstreamDead checks the case that of a hundred servers one takes requests and never answers; calls to the
// others do not wait for those that hang there (Z-U03).
func TestOneUpstreamDead(t *testing.T) {
	t.Parallel()
	g := startGateway(t, settings{})
	servers, hanging := many(100), many(200)
	var waiting atomic.Int64
	release := make(chan struct{})
	dead := newUpstream(t, func(http.ResponseWriter, *http.Request, []byte) {
		waiting.Add(1)
		<-release
	})
	party, token := newThirdParty(t), g.token(alice)
	victim := g.createServer(dead.url, nil)
	all := make([]server, servers-1)
	for i := range all {
		all[i] = g.createServer(party.url()+"/open", nil)
	}
	calls := func() []time.Duration {
		var took []time.Duration
		for range 5 {
			for _, s := range all {
				begun := time.Now()
				g.callTool(token, s, "", "echo").want(t, http.StatusOK)
				took = append(took, time.Since(begun))
			}
		}
		return took
	}
	calls() // caches
	before := percentile(calls(), 99)
	ctx, cancel := context.WithCancel(t.Context())
	var callers sync.WaitGroup
	for range hanging {
		callers.Go(func() {
			client := &http.Client{Transport: g.client.Transport}
			if err := post(ctx, client, g.url+victim.path, token, toolCall("echo")); err == nil || !errors.Is(err, context.Canceled) {
				t.Errorf("a call to the dead server: %v", err)
			}
		})
	}
	g.eventually("all calls hang", func() bool { return waiting.Load() == int64(hanging) })
	during := percentile(calls(), 99)
	// A few milliseconds are no figure.
	if during > max(before+before/20, allowed(20*time.Millisecond)) {
		t.Errorf("99 of 100 calls to other servers took %v, %v before", during, before)
	}
	t.Logf("99 of 100 calls to other servers took %v, %v before", during, before)
	cancel()
	callers.Wait()
	close(release)
}

// TestMemoryPressure checks that clients that together begin more large bodies than there is memory for, and stop
// before the end, are refused in time: the process stays near its limit, streams go on, small calls are answered, and
// when the clients are gone large bodies are taken again (Z-O02).
func TestMemoryPressure(t *testing.T) {
	t.Parallel()
	const limit, size, clients = 256 << 20, 15 << 20, 30
	r := startRunning(t, settings{
		env: []string{"GOMEMLIMIT=" + strconv.Itoa(limit)}, option: "sizes {\n mcp 16MiB\n }",
		global: "servers {\n timeouts {\n read_body_idle 10m\n }\n }", // a busy machine takes longer than a minute to send all
	})
	var uploads []*upload
	for range clients {
		uploads = append(uploads, r.beginUpload(size))
	}
	held := 0
	for _, u := range uploads {
		if !u.refused(t) {
			held++
		}
	}
	resident, err := strconv.ParseFloat(r.metric("process_resident_memory_bytes"), 64)
	t.Logf("%d of %d bodies are held, %.0f MiB resident, %v", held, clients, resident/(1<<20), err)
	// The limit does not count the program's own pages, nor memory that the system has not got back yet.
	if err != nil || !rig.RaceDetector && resident > limit*3/2 {
		t.Error("that is too much")
	}
	if held < 3 || held > limit/size/2 {
		t.Error("too few, or too many")
	}
	r.deliver("under pressure")
	// Until the next collection, the memory that the last one found alive includes the buffers that the bodies outgrew.
	r.eventually("small calls pass", func() bool { return r.callTool(r.user, r.oauth, r.session, "echo").status == http.StatusOK })
	for _, u := range uploads {
		u.leave()
	}
	r.eventually("large bodies are taken again", func() bool {
		u := r.beginUpload(size)
		defer u.leave()
		return !u.refused(t)
	})
	r.deliver("after")
}

// upload is a call whose body stops before its end.
type upload struct {
	body     *io.PipeWriter
	sent     chan struct{}       // closed when there is nothing to send, or no reader
	answered chan *http.Response // closed when none comes any more
	err      error               // why none came; readable once answered is closed
	response *http.Response
}

// beginUpload sends all but a little of a body of so many bytes.
func (r *running) beginUpload(size int) *upload {
	r.t.Helper()
	reader, writer := io.Pipe()
	u := &upload{body: writer, sent: make(chan struct{}), answered: make(chan *http.Response, 1)}
	request, err := http.NewRequestWithContext(r.t.Context(), http.MethodPost, r.url+r.oauth.path, reader)
	if err != nil {
		r.t.Fatal(err)
	}
	request.ContentLength = int64(size)
	request.Header.Set("Authorization", "Bearer "+r.user)
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", bothKinds)
	request.Header.Set("Mcp-Session-Id", r.session)
	go func() {
		var response *http.Response
		response, u.err = (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(request)
		if u.err == nil {
			u.answered <- response
		}
		close(u.answered)
		_ = reader.Close()
	}()
	go func() {
		defer close(u.sent)
		_, _ = fmt.Fprintf(writer, `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"echo","arguments":{"x":"%s`, strings.Repeat("x", size-1000))
	}()
	return u
}

// refused waits until the body is sent or the call is answered, which must be with 503.
func (u *upload) refused(t *testing.T) bool {
	t.Helper()
	select {
	case <-u.sent:
		select { // both, when the answer ended the sending
		case u.response = <-u.answered:
		default:
			return false
		}
	case u.response = <-u.answered:
	}
	if u.response == nil {
		t.Errorf("a body was cut off without an answer: %v", u.err)
	} else if u.response.StatusCode != http.StatusServiceUnavailable || u.response.Header.Get("Retry-After") == "" {
		t.Errorf("%s %v", u.response.Status, u.response.Header)
	}
	return true
}

func (u *upload) leave() {
	_ = u.body.CloseWithError(io.ErrUnexpectedEOF)
	<-u.sent
	if u.response == nil {
		u.response = <-u.answered
	}
	if u.response != nil {
		_ = u.response.Body.Close()
	}
}
