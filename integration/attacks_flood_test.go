package integration

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
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

// These are functions of the rig, under the names that tests use.
var figures, allowed = rig.Strict, rig.Within

// many returns the promised number of things, and a fifth of it when other tests run too.
func many(promised int) int {
	if figures() {
		return promised
	}
	return promised / 5
}

// percentile returns a percentile of times, which it sorts.
func percentile(times []time.Duration, percent int) time.Duration {
	slices.Sort(times)
	return times[(len(times)*percent+99)/100-1]
}

// flooding is an upstream whose streams send as fast as the client reads. sent counts bytes.
func flooding(t *testing.T, sent *atomic.Int64) *upstream {
	t.Helper()
	frame := []byte("data: " + news(strings.Repeat("x", 4<<10)) + "\n\n")
	return newUpstream(t, func(w http.ResponseWriter, _ *http.Request, _ []byte) {
		beginEvents(w)
		for {
			n, err := w.Write(frame)
			if err != nil {
				return
			}
			sent.Add(int64(n))
		}
	})
}

// stall opens a stream and reads nothing of it.
func (g *gateway) stall(path, token string) (leave func()) {
	g.t.Helper()
	host := strings.TrimPrefix(g.url, "http://")
	connection, err := net.Dial("tcp", host)
	if err != nil {
		g.t.Fatal(err)
	}
	if _, err := fmt.Fprintf(connection, "GET %s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nAccept: text/event-stream\r\n\r\n", path, host, token); err != nil {
		g.t.Fatal(err)
	}
	return func() { _ = connection.Close() }
}

// live returns the number of bytes in use right after a collection, including stacks.
func (g *gateway) live() int {
	g.t.Helper()
	total := 0
	for line := range strings.Lines(g.admin("/debug/pprof/heap?gc=1&debug=1")) {
		var n int
		if _, err := fmt.Sscanf(line, "# HeapAlloc = %d", &n); err == nil {
			total += n
		}
		if _, err := fmt.Sscanf(line, "# Stack = %d", &n); err == nil {
			total += n
		}
	}
	if total == 0 {
		g.t.Fatal("the profile does not say what is in use")
	}
	return total
}

// TestAttackFlood checks that a client that takes nothing of a stream without end costs 64 KiB at most; fifty that take
// what they can get use all of the gateway's one processor, and it answers health all the same (W01, W04, Z-U04,
// Z-O03).
func TestAttackFlood(t *testing.T) {
	t.Parallel()
	g := startGateway(t, settings{env: []string{"GOMAXPROCS=1"}})
	var sent atomic.Int64
	upstream := flooding(t, &sent)
	s := g.createServer(upstream.url, upstream.eventsEntry())
	token := g.token(alice)
	paths := []string{"/sse/" + s.Slug, s.path}
	// An upstream that is held back does not mean rest: the gateway still carries what was sent before, and its garbage would be
	// counted.
	heldBack := func() {
		last, used, since := int64(-1), 0.0, time.Now()
		g.eventually("the upstream is held back, and the gateway at rest", func() bool {
			if n := sent.Load(); n != last {
				last, since = n, time.Now()
			}
			if time.Since(since) <= time.Second/2 {
				return false
			}
			before := used
			var err error
			if used, err = strconv.ParseFloat(g.metric("process_cpu_seconds_total"), 64); err != nil {
				t.Fatal(err)
			}
			since = time.Now()
			return before > 0 && used-before < 0.1
		})
	}

	const most, stalled = 64 << 10, 80
	clients := many(50)
	leave := g.stall(paths[0], token) // what the first one takes is not its own
	defer leave()
	heldBack()
	before := g.live()
	for i := range stalled {
		leave := g.stall(paths[i%2], token)
		defer leave()
	}
	heldBack()
	if each := (g.live() - before) / stalled; each > most && !rig.RaceDetector || each > 2*most {
		t.Errorf("W01 a client that takes nothing costs %d bytes", each)
	} else {
		t.Logf("W01 a client that takes nothing costs %d bytes", each)
	}

	ctx, cancel := context.WithCancel(t.Context())
	var readers sync.WaitGroup
	var taken atomic.Int64
	other := g.token(bob) // a user may have 100
	for i := range clients {
		response := g.open(ctx, http.MethodGet, paths[i%2], other, nil, "Accept", bothKinds)
		readers.Go(func() {
			defer response.Body.Close()
			_, _ = io.Copy(counting{&taken}, response.Body)
		})
	}
	began := time.Now()
	took := g.probe()
	g.eventually("every stream flows", func() bool { return taken.Load() > int64(clients)*(4<<20) })
	rate := float64(taken.Load()) / time.Since(began).Seconds() / (1 << 20)
	if slowest := percentile(took, 100); slowest > allowed(time.Second/2) {
		t.Errorf("Z-O03 health took %v", slowest)
	} else {
		t.Logf("Z-O03 health took %v at the most, at %.0f MiB/s", slowest, rate)
	}
	if resident, err := strconv.ParseFloat(g.metric("process_resident_memory_bytes"), 64); err != nil || !rig.RaceDetector && resident > 512<<20 {
		t.Errorf("Z-U04 the gateway has %.0f MiB, %v", resident/(1<<20), err)
	} else {
		t.Logf("Z-U04 the gateway has %.0f MiB", resident/(1<<20))
	}
	cancel()
	readers.Wait()
}

// counting counts what is written to it.
type counting struct{ n *atomic.Int64 }

func (c counting) Write(p []byte) (int, error) { c.n.Add(int64(len(p))); return len(p), nil }

// TestAttackSlowRequests checks that a thousand connections that stop in the middle of a request's headers, and a
// hundred that do in that of a body, do not keep others from being served, and are closed in time (W10).
func TestAttackSlowRequests(t *testing.T) {
	t.Parallel()
	g := startGateway(t, settings{global: "servers {\n timeouts {\n read_header 3s\n read_body_idle 3s\n }\n }"})
	s := g.createServer(newThirdParty(t).url()+"/open", nil)
	token := g.token(alice)
	calls := func() []time.Duration {
		var took []time.Duration
		for range many(500) {
			begun := time.Now()
			if err := call(g.client, g.url+s.path, token); err != nil {
				t.Fatal(err)
			}
			took = append(took, time.Since(begun))
		}
		return took
	}
	calls() // caches
	quiet := percentile(calls(), 99)

	host := strings.TrimPrefix(g.url, "http://")
	var slow []net.Conn
	defer func() {
		for _, connection := range slow {
			_ = connection.Close()
		}
	}()
	for i := range many(1100) {
		connection, err := net.Dial("tcp", host)
		if err != nil {
			t.Fatal(err)
		}
		slow = append(slow, connection)
		text := "P"
		if i%11 == 0 {
			text = g.rawPost(s.path, token, "Content-Length: 1000\r\n", `{"jsonrpc"`)
		}
		if _, err := io.WriteString(connection, text); err != nil {
			t.Fatal(err)
		}
	}
	busy := percentile(calls(), 99)
	// A few milliseconds are no figure.
	if busy > max(2*quiet, allowed(20*time.Millisecond)) {
		t.Errorf("99 of 100 calls took %v, %v without slow connections", busy, quiet)
	}
	t.Logf("99 of 100 calls took %v, %v without slow connections", busy, quiet)
	for i, connection := range slow {
		if err := connection.SetReadDeadline(time.Now().Add(callTimeout)); err != nil {
			t.Fatal(err)
		}
		answers := bufio.NewReader(connection)
		for {
			if _, err := answers.ReadByte(); err == nil {
				continue // 408, or 400 for half a body
			} else if os.IsTimeout(err) {
				t.Fatalf("slow connection %d stays open", i)
			}
			break
		}
	}
	calls()
}
