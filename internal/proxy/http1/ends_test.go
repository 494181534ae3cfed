package http1

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// watched is a context that counts the waiters for its end, and those that have stopped waiting.
type watched struct {
	context.Context
	began, stopped int
	late           bool // its end has come before the waiter could stop
}

func (w *watched) AfterFunc(func()) (stop func() bool) {
	w.began++
	return func() bool {
		w.stopped++
		return !w.late
	}
}

// TestWatchEnds checks that nothing waits for the end of a context any more once its request has ended in any way,
// and that a connection that the context's end has reached serves no other request.
func TestWatchEnds(t *testing.T) {
	const part = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n12"
	for name, tc := range map[string]struct {
		answer      string
		dead, early bool // takes nothing; closed before the answer's end
		late, kept  bool
	}{
		"kept":                      {answer: ok, kept: true},
		"kept, without a body":      {answer: "HTTP/1.1 204 No Content\r\n\r\n", kept: true},
		"not kept":                  {answer: "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}"},
		"the context's end is near": {answer: ok, late: true},
		"broken off":                {answer: part},
		"closed early":              {answer: part, early: true},
		"no answer":                 {answer: "SSH-2.0-OpenSSH_9\r\n"},
		"nothing written":           {dead: true},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMemory(1<<20, false, []byte(tc.answer))
			d := &several{}
			c := New(over1{m, d, tc.dead}, Options{})
			ctx := &watched{Context: context.Background(), late: tc.late}
			answer, err := c.Send(ctx, &Request{URL: &url.URL{Scheme: "http", Host: "a.test"}})
			if err == nil {
				if !tc.early {
					_, _ = io.Copy(io.Discard, answer.Body)
				}
				_ = answer.Body.Close()
			}
			if once := ctx.stopped == 1 || tc.late && ctx.stopped > 1; ctx.began != 1 || !once {
				t.Errorf("waited for %d times, stopped %d times", ctx.began, ctx.stopped)
			}
			if closed := d.made[0].closed.Load(); closed == tc.kept || c.pool.idle != map[bool]int{true: 1}[tc.kept] {
				t.Errorf("closed is %v, %d idle connections", closed, c.pool.idle)
			}
			c.CloseIdleConnections()
		})
	}
}

// TestContextWithoutEnd checks that a connection is kept after a request whose context never ends.
func TestContextWithoutEnd(t *testing.T) {
	c := New(&inMemory{conns: []*memory{newMemory(1<<20, false, []byte(ok))}}, Options{})
	answer, err := c.Send(context.Background(), &Request{URL: &url.URL{Scheme: "http", Host: "a.test"}}) //nolint:usetesting // a test's context ends
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, answer.Body)
	if c.pool.idle != 1 {
		t.Errorf("%d idle connections", c.pool.idle)
	}
	c.CloseIdleConnections()
}

// over1 dials one connection.
type over1 struct {
	of   net.Conn
	made *several
	dead bool
}

func (d over1) DialContext(context.Context, string, string) (net.Conn, error) { return nil, errSource }

func (d over1) DialPlain(context.Context, string, string) (net.Conn, error) {
	made := &mortal{Conn: d.of}
	made.dead.Store(d.dead)
	d.made.made = append(d.made.made, made)
	return made, nil
}

// TestReady checks that an answer is ready when its body can be read without waiting.
func TestReady(t *testing.T) {
	for name, tc := range map[string]struct {
		answer      string
		ready, then bool // after the head, after one byte of the body
	}{
		"all there":       {ok, true, true},
		"a byte missing":  {"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n{}", false, false},
		"nothing there":   {"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n", false, true}, // nor will it come
		"without a body":  {"HTTP/1.1 204 No Content\r\n\r\n", true, true},
		"of one byte":     {"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n{", true, true},
		"in chunks":       {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", false, false},
		"until the close": {"HTTP/1.1 200 OK\r\n\r\n{}", false, false},
	} {
		c := New(&inMemory{conns: []*memory{newMemory(1<<20, false, []byte(tc.answer))}}, Options{})
		answer, err := c.Send(t.Context(), &Request{URL: &url.URL{Scheme: "http", Host: "a.test"}})
		if err != nil {
			t.Fatal(err)
		}
		if answer.Ready() != tc.ready {
			t.Errorf("%s: ready is %v", name, !tc.ready)
		}
		n, err := answer.Body.Read(make([]byte, 1))
		if answer.Ready() != tc.then {
			t.Errorf("%s: ready is %v after %d bytes, %v", name, !tc.then, n, err)
		}
		if tc.answer == ok && (n != 1 || err != nil) || name == "without a body" && (n != 0 || !errors.Is(err, io.EOF)) {
			t.Errorf("%s: %d bytes, %v", name, n, err)
		}
		_ = answer.Body.Close()
		if !answer.Ready() { // a closed answer says so at once
			t.Errorf("%s: not ready after Close", name)
		}
	}
	if other := (&Answer{Body: http.NoBody}); other.Ready() {
		t.Error("the body of somebody else is ready")
	}
}

// TestLinger checks that an upstream that has answered early may read the rest of the request, but not for long.
func TestLinger(t *testing.T) {
	const rest = 64 << 10
	for _, tc := range []struct {
		name string
		late time.Duration // what the upstream does before it reads on
		read int
		took time.Duration
	}{
		{"soon", 10 * time.Millisecond, rest, 10 * time.Millisecond},
		{"never", time.Hour, 0, notice + linger},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				read := make(chan int, 1)
				c := New(pipes{func(c net.Conn) {
					if _, err := io.ReadFull(c, make([]byte, largeRequest)); err != nil {
						t.Error(err)
					}
					_, _ = io.WriteString(c, ok)
					time.Sleep(tc.late)
					n, _ := io.Copy(io.Discard, c)
					read <- int(n)
				}}, Options{})
				r := &Request{Method: "POST", URL: &url.URL{Scheme: "http", Host: "a.test"}, Body: make([]byte, rest+largeRequest)}
				start := time.Now()
				answer, err := c.Send(t.Context(), r)
				if err != nil {
					t.Fatal(err)
				}
				if b, err := io.ReadAll(answer.Body); err != nil || string(b) != "{}" {
					t.Errorf("%q %v", b, err)
				}
				if took := time.Since(start); took != tc.took {
					t.Errorf("took %v, want %v", took, tc.took)
				}
				// The first write had only the headers in addition to the body.
				if n := <-read; n < tc.read || n >= tc.read+1<<10 || c.pool.idle != 0 {
					t.Errorf("the upstream read %d bytes more, want %d; %d idle connections", n, tc.read, c.pool.idle)
				}
			})
		})
	}
}

// stubborn is a connection whose second write ends when it is told to, not when the connection is closed.
type stubborn struct {
	net.Conn
	answer  io.Reader
	writes  int
	closed  chan struct{}
	release chan struct{}
}

func (s *stubborn) Write(p []byte) (int, error) {
	if s.writes++; s.writes > 1 {
		<-s.release
	}
	return len(p), nil
}

func (s *stubborn) Read(p []byte) (int, error) {
	if n, _ := s.answer.Read(p); n > 0 {
		return n, nil
	}
	<-s.closed
	return 0, net.ErrClosed
}

func (s *stubborn) Close() error {
	close(s.closed)
	return nil
}

// TestCloseWaits checks that nothing reads the request's body any more when Close returns.
func TestCloseWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := &stubborn{answer: strings.NewReader("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n12"), closed: make(chan struct{}), release: make(chan struct{})}
		c := New(over1{of: conn, made: &several{}}, Options{})
		answer, err := c.Send(t.Context(), &Request{Method: "POST", URL: &url.URL{Scheme: "http", Host: "a.test"}, Body: make([]byte, 2*largeRequest)})
		if err != nil {
			t.Fatal(err)
		}
		var closed atomic.Bool
		go func() {
			_ = answer.Body.Close()
			closed.Store(true)
		}()
		synctest.Wait()
		if closed.Load() {
			t.Error("Close returned while the body is written")
		}
		close(conn.release)
		synctest.Wait()
		if !closed.Load() {
			t.Error("Close does not return")
		}
	})
}

// TestIdleOrder checks that the list of idle connections stays in order when one is taken out of its middle.
func TestIdleOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var open atomic.Int32
		c := New(answering(&open), Options{})
		hold(t, c, 1, "a.test", "b.test", "c.test")
		hold(t, c, 1, "b.test")
		hold(t, c, 1, "a.test")
		order := ""
		for at := c.pool.oldest; at != nil && len(order) < 20; at = at.newer {
			order += at.host.key.host
		}
		back := ""
		for at := c.pool.newest; at != nil && len(back) < 20; at = at.older {
			back = at.host.key.host + back
		}
		if want := "c.testb.testa.test"; order != want || back != want {
			t.Errorf("forwards %s, backwards %s", order, back)
		}
		c.CloseIdleConnections()
		synctest.Wait()
		if open.Load() != 0 || c.pool.newest != nil || c.pool.idle != 0 || len(c.pool.hosts) != 0 {
			t.Errorf("%d connections are open", open.Load())
		}
	})
}
