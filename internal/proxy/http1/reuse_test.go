package http1

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

func TestKept(t *testing.T) {
	up := newUpstream(t, func(c *peer) {
		for c.request() != nil {
			c.say(ok)
		}
	})
	c := newClient(t, Options{})
	for _, method := range []string{"POST", "GET", "DELETE", "POST"} {
		body := ""
		if method == "POST" {
			body = "{}"
		}
		if _, got, err := do(c, up.request(t.Context(), method, body)); err != nil || got != "{}" {
			t.Fatalf("%s: %q %v", method, got, err)
		}
	}
	if n := up.conns.Load(); n != 1 {
		t.Errorf("%d connections", n)
	}
	once := newClient(t, Options{KeepAlive: -1})
	if _, _, err := do(once, up.request(t.Context(), "GET", "")); err != nil {
		t.Fatal(err)
	}
	if len(once.pool.hosts) != 0 || once.pool.idle != 0 {
		t.Error("something is left of a client that keeps nothing")
	}
}

// TestStale checks that the state of a connection after idling is found out before anything is written to it.
func TestStale(t *testing.T) {
	for _, tc := range []struct {
		name string
		end  func(c *peer)
	}{
		{"closed", func(c *peer) { _ = c.Close() }},
		{"reset", func(c *peer) { c.reset(); _ = c.Close() }},
		{"half closed", func(c *peer) { _ = c.Conn.(*net.TCPConn).CloseWrite() }},
		{"O12 an answer that nobody asked for", func(c *peer) { c.say(strings.Replace(ok, "{}", "--", 1)) }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			first := make(chan *peer, 1)
			up := newUpstream(t, func(c *peer) {
				for c.request() != nil {
					c.say(ok)
					if c.nth == 1 {
						first <- c
					}
				}
			})
			c := newClient(t, Options{})
			if _, _, err := do(c, up.request(t.Context(), "POST", "{}")); err != nil {
				t.Fatal(err)
			}
			tc.end(wait(t, first, "the first connection"))
			readable(t, c.pool.newest)
			for range 2 {
				if _, got, err := do(c, up.request(t.Context(), "POST", "{}")); err != nil || got != "{}" {
					t.Errorf("%q %v", got, err)
				}
			}
			if n := up.conns.Load(); n != 2 {
				t.Errorf("%d connections, want 2", n)
			}
		})
	}
}

// readable waits until the kernel has something for c, and leaves it there.
func readable(t *testing.T, c *conn) {
	t.Helper()
	sys, err := c.raw.(syscall.Conn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	if err := sys.Read(func(fd uintptr) bool {
		_, _, err := syscall.Recvfrom(int(fd), make([]byte, 1), syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		return !errors.Is(err, syscall.EAGAIN)
	}); err != nil {
		t.Fatal(err)
	}
}

// TestSentTwice checks W11: which requests are sent again when the connection dies after the request and before the
// answer.
func TestSentTwice(t *testing.T) {
	half := func(c *peer) { c.say("HTTP/1.1 200 O") }
	for _, tc := range []struct {
		name, method string
		kept         bool
		die          func(c *peer)
		asked        int32
	}{
		{"W11 POST on a new connection", "POST", false, func(*peer) {}, 1},
		{"W11 POST on a kept connection", "POST", true, func(*peer) {}, 1},
		{"W11 POST on a kept connection, reset", "POST", true, (*peer).reset, 1},
		{"W11 POST on a kept connection, half an answer", "POST", true, half, 1},
		{"W11 DELETE on a kept connection", "DELETE", true, func(*peer) {}, 1},
		{"GET on a new connection", "GET", false, func(*peer) {}, 1},
		{"GET on a kept connection, half an answer", "GET", true, half, 1},
		{"GET on a kept connection", "GET", true, func(*peer) {}, 2},
		{"GET on a kept connection, reset", "GET", true, (*peer).reset, 2},
		{"HEAD on a kept connection", "HEAD", true, func(*peer) {}, 2},
		{"no method on a kept connection", "", true, func(*peer) {}, 2},
		{"W11 GET on a kept connection, with a body", "GET", true, func(*peer) {}, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var calls atomic.Int32
			up := newUpstream(t, func(c *peer) {
				for {
					r := c.request()
					if r == nil {
						return
					}
					if r.Header.Get("Warm") != "" {
						c.say(ok)
						continue
					}
					calls.Add(1)
					tc.die(c)
					return
				}
			})
			c := newClient(t, Options{})
			if tc.kept {
				r := up.request(t.Context(), "POST", "{}")
				r.Header.Set("Warm", "1")
				if _, _, err := do(c, r); err != nil {
					t.Fatal(err)
				}
			}
			body := ""
			if tc.method == "POST" || strings.HasSuffix(tc.name, "with a body") {
				body = "{}"
			}
			r := up.request(t.Context(), tc.method, body)
			r.Method = tc.method
			r.Header.Set("Idempotency-Key", "k")
			if _, _, err := do(c, r); err == nil {
				t.Error("no error")
			}
			if got := calls.Load(); got != tc.asked {
				t.Errorf("asked %d times, want %d", got, tc.asked)
			}
			if len(c.pool.hosts) != 0 {
				t.Error("the host is not forgotten")
			}
		})
	}
}

// TestNothingWritten checks that a kept connection that fails before it takes a byte costs only that connection.
func TestNothingWritten(t *testing.T) {
	up := newUpstream(t, func(c *peer) {
		for c.request() != nil {
			c.say(ok)
		}
	})
	d := &dying{}
	c := New(d, Options{})
	defer c.CloseIdleConnections()
	for range 3 {
		if _, got, err := do(c, up.request(t.Context(), "POST", "{}")); err != nil || got != "{}" {
			t.Fatalf("%q %v", got, err)
		}
		d.last.dead.Store(true)
	}
	if up.conns.Load() != 3 || up.asked.Load() != 3 {
		t.Errorf("%d requests over %d connections", up.asked.Load(), up.conns.Load())
	}
}

// TestEndWithAnswer checks that a connection is not used again when its end came together with the last bytes of an
// answer: the next request would be lost with it.
func TestEndWithAnswer(t *testing.T) {
	for name, reads := range map[string][]string{
		"with all of it":      {ok},
		"with the body":       {strings.TrimSuffix(ok, "{}"), "{}"},
		"with the last chunk": {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "2\r\n{}\r\n0\r\n\r\n"},
		"without a body":      {"HTTP/1.1 204 No Content\r\n\r\n"},
	} {
		t.Run(name, func(t *testing.T) {
			d := &ending{reads: reads}
			c := New(d, Options{})
			defer c.CloseIdleConnections()
			for n := range 2 {
				r, _ := http.NewRequestWithContext(t.Context(), "POST", "http://a.test/", strings.NewReader("{}"))
				if _, got, err := do(c, r); err != nil || got != "{}" && name != "without a body" {
					t.Errorf("request %d: %q %v", n+1, got, err)
				}
				if c.pool.idle != 0 {
					t.Errorf("request %d: the connection is kept", n+1)
				}
			}
			if d.dialled != 2 || d.closed != 2 {
				t.Errorf("%d connections, %d closed", d.dialled, d.closed)
			}
		})
	}
}

// ending dials connections that return reads, and their end together with the last of them.
type ending struct {
	reads           []string
	dialled, closed int
}

type lastWords struct {
	net.Conn
	of    *ending
	reads []string
}

func (d *ending) DialContext(context.Context, string, string) (net.Conn, error) {
	d.dialled++
	return &lastWords{of: d, reads: slices.Clone(d.reads)}, nil
}

func (d *ending) DialPlain(ctx context.Context, network, addr string) (net.Conn, error) {
	return d.DialContext(ctx, network, addr)
}

func (c *lastWords) Write(p []byte) (int, error) { return len(p), nil }

func (c *lastWords) Close() error {
	c.of.closed++
	return nil
}

func (c *lastWords) Read(p []byte) (n int, err error) {
	if len(c.reads) > 0 {
		n = copy(p, c.reads[0])
		if c.reads[0] = c.reads[0][n:]; c.reads[0] == "" {
			c.reads = c.reads[1:]
		}
	}
	if len(c.reads) == 0 {
		err = io.EOF
	}
	return n, err
}

type dying struct {
	freely
	last *mortal
}

type mortal struct {
	net.Conn
	dead, closed atomic.Bool
}

func (m *mortal) Close() error {
	m.closed.Store(true)
	return m.Conn.Close()
}

func (d *dying) DialPlain(ctx context.Context, n, a string) (net.Conn, error) {
	c, err := d.freely.DialPlain(ctx, n, a)
	d.last = &mortal{Conn: c}
	return d.last, err
}

func (d *dying) DialContext(ctx context.Context, n, a string) (net.Conn, error) {
	c, err := d.freely.DialContext(ctx, n, a)
	d.last = &mortal{Conn: c}
	return d.last, err
}

func (m *mortal) Read(p []byte) (int, error) {
	if m.dead.Load() {
		return 0, net.ErrClosed
	}
	return m.Conn.Read(p)
}

func (m *mortal) Write(p []byte) (int, error) {
	if m.dead.Load() {
		return 0, net.ErrClosed
	}
	return m.Conn.Write(p)
}

// pipes dials net.Pipe, so that a test can run on a fake clock.
type pipes struct{ serve func(net.Conn) }

func (d pipes) DialContext(context.Context, string, string) (net.Conn, error) {
	a, b := net.Pipe()
	go func() { defer b.Close(); d.serve(b) }()
	return a, nil
}

func (d pipes) DialPlain(ctx context.Context, network, addr string) (net.Conn, error) {
	return d.DialContext(ctx, network, addr)
}

func answering(open *atomic.Int32) pipes {
	return pipes{func(c net.Conn) {
		open.Add(1)
		defer open.Add(-1)
		p := make([]byte, 4096)
		for {
			if _, err := c.Read(p); err != nil {
				return
			}
			_, _ = io.WriteString(c, ok)
		}
	}}
}

func get(ctx context.Context, host string) *http.Request {
	r, err := http.NewRequestWithContext(ctx, "GET", "http://"+host+"/", nil)
	if err != nil {
		panic(err)
	}
	return r
}

// hold begins n exchanges with each host and ends them in order, which leaves their connections idle.
func hold(t *testing.T, c *Client, n int, hosts ...string) {
	t.Helper()
	var bodies []io.Closer
	for _, host := range hosts {
		for range n {
			res, err := c.RoundTrip(get(t.Context(), host))
			if err != nil {
				t.Fatal(err)
			}
			bodies = append(bodies, closing{res.Body})
		}
	}
	for _, b := range bodies {
		_ = b.Close()
	}
}

// closing reads its body to the end before it closes it.
type closing struct{ io.ReadCloser }

func (c closing) Close() error {
	_, err := io.Copy(io.Discard, c.ReadCloser)
	return errors.Join(err, c.ReadCloser.Close())
}

func TestIdleTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var open atomic.Int32
		c := New(answering(&open), Options{KeepAlive: time.Minute})
		expect := func(n int32, what string) {
			t.Helper()
			synctest.Wait()
			if open.Load() != n {
				t.Errorf("%s: %d connections, want %d", what, open.Load(), n)
			}
		}
		hold(t, c, 3, "a.test")
		expect(3, "after three at once")
		time.Sleep(40 * time.Second)
		hold(t, c, 1, "a.test")
		hold(t, c, 1, "b.test")
		expect(4, "the last used one serves again")
		time.Sleep(19 * time.Second)
		expect(4, "before the first are too old")
		time.Sleep(time.Second)
		expect(2, "after the first are too old")
		time.Sleep(40 * time.Second)
		expect(0, "after all are too old")
		if c.pool.timer != nil || len(c.pool.hosts) != 0 || c.pool.oldest != nil || c.pool.newest != nil {
			t.Error("the pool is not empty")
		}
		hold(t, c, 1, "a.test")
		expect(1, "and again")
		c.CloseIdleConnections()
		expect(0, "after CloseIdleConnections")
		if c.pool.timer != nil {
			t.Error("there is a timer and nothing to sweep")
		}
	})
}

func TestIdleLimits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var open atomic.Int32
		c := New(answering(&open), Options{IdleConns: 5, IdleConnsPerHost: 2})
		hold(t, c, 4, "a.test")
		synctest.Wait()
		if open.Load() != 2 || len(c.pool.hosts[key{false, "a.test"}].idle) != 2 {
			t.Errorf("%d connections to one host, want 2", open.Load())
		}
		hold(t, c, 2, "b.test", "c.test", "d.test")
		synctest.Wait()
		if open.Load() != 5 || c.pool.idle != 5 || len(c.pool.hosts) != 3 {
			t.Errorf("%d connections to %d hosts, want 5 to 3", open.Load(), len(c.pool.hosts))
		}
		if c.pool.hosts[key{false, "a.test"}] != nil {
			t.Error("not the oldest ones had to go")
		}
		c.CloseIdleConnections()
	})
}

// TestClosingIdle checks that a connection in use outlives CloseIdleConnections, but is not kept after it.
func TestClosingIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var open atomic.Int32
		c := New(answering(&open), Options{})
		res, err := c.RoundTrip(get(t.Context(), "a.test"))
		if err != nil {
			t.Fatal(err)
		}
		c.CloseIdleConnections()
		if b, err := io.ReadAll(res.Body); err != nil || string(b) != "{}" {
			t.Errorf("%q %v", b, err)
		}
		_ = res.Body.Close()
		synctest.Wait()
		if open.Load() != 0 {
			t.Error("connection was kept")
		}
		hold(t, c, 1, "a.test")
		if c.pool.idle != 1 {
			t.Error("connections of later requests are not kept")
		}
		c.CloseIdleConnections()
	})
}

func TestNoKeepAlive(t *testing.T) {
	up := newUpstream(t, func(c *peer) {
		if r := c.request(); r == nil || r.Header.Get("Connection") != "close" && !r.Close {
			t.Error("upstream was not told")
		}
		c.say(ok)
		c.untilGone()
	})
	c := New(&freely{}, Options{KeepAlive: -1})
	for range 2 {
		if _, _, err := do(c, up.request(t.Context(), "GET", "")); err != nil {
			t.Fatal(err)
		}
	}
	if up.conns.Load() != 2 {
		t.Error("connection was kept")
	}
}

// TestMaxConns checks that busy and idle connections together stay within the limit, and that a waiting request can
// give up.
func TestMaxConns(t *testing.T) {
	var open, most atomic.Int32
	up := newUpstream(t, func(c *peer) {
		if n := open.Add(1); n > most.Load() {
			most.Store(n)
		}
		defer open.Add(-1)
		for r := c.request(); r != nil; r = c.request() {
			c.say(ok)
		}
	})
	c := newClient(t, Options{MaxConnsPerHost: 3})
	var wg sync.WaitGroup
	for range 12 {
		wg.Go(func() {
			for range 50 {
				if _, got, err := do(c, up.request(t.Context(), "POST", "{}")); err != nil || got != "{}" {
					t.Errorf("%q %v", got, err)
				}
			}
		})
	}
	wg.Wait()
	if most.Load() > 3 {
		t.Errorf("%d connections at once", most.Load())
	}
	var held []*http.Response
	for range 3 {
		res, err := c.RoundTrip(up.request(t.Context(), "GET", ""))
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, res)
	}
	gone := errors.New("gone")
	ctx, cancel := context.WithCancelCause(t.Context())
	failed := make(chan error, 1)
	go func() {
		_, _, err := do(c, up.request(ctx, "GET", ""))
		failed <- err
	}()
	cancel(gone)
	if err := wait(t, failed, "the request that gave up"); !errors.Is(err, gone) {
		t.Errorf("got %v", err)
	}
	for _, res := range held {
		_ = res.Body.Close()
	}
	if len(c.pool.hosts) != 0 {
		t.Error("the host is not forgotten")
	}
}

// TestGivesUpWaiting checks that a request that gave up waiting for a slot is not counted any more.
func TestGivesUpWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var open atomic.Int32
		c := New(answering(&open), Options{MaxConnsPerHost: 1, KeepAlive: -1})
		res, err := c.RoundTrip(get(t.Context(), "a.test"))
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		gone := errors.New("gone")
		failed := make(chan error, 1)
		go func() {
			_, err := c.RoundTrip(get(ctx, "a.test"))
			failed <- err
		}()
		synctest.Wait()
		if users := c.pool.hosts[key{false, "a.test"}].users; users != 2 {
			t.Errorf("%d requests, want one under way and one that waits", users)
		}
		cancel(gone)
		if err := <-failed; !errors.Is(err, gone) {
			t.Errorf("got %v", err)
		}
		_ = res.Body.Close()
		if len(c.pool.hosts) != 0 {
			t.Error("the host is not forgotten")
		}
	})
}

// TestNoBleed checks O12: over few connections, with answers delayed, cancelled, cut and longer than announced, no
// request gets another's answer or header.
func TestNoBleed(t *testing.T) {
	rounds := 4000
	if testing.Short() {
		rounds = 400
	}
	up := newUpstream(t, func(c *peer) {
		for {
			r := c.request()
			if r == nil {
				return
			}
			b, _ := io.ReadAll(r.Body)
			answer := string(b) + "|" + r.Header.Get("Authorization")
			head := "HTTP/1.1 200 OK\r\nEtag: " + r.Header.Get("Authorization") + "\r\n"
			if len(b)%2 == 0 {
				head += fmt.Sprintf("Content-Length: %d\r\n\r\n", len(answer))
			} else {
				head += "Transfer-Encoding: chunked\r\n\r\n"
				answer = fmt.Sprintf("3\r\n%s\r\n%x\r\n%s\r\n0\r\n\r\n", answer[:3], len(answer)-3, answer[3:])
			}
			switch {
			case strings.HasPrefix(string(b), "cut"):
				c.say(head + answer[:2])
				return
			case strings.HasPrefix(string(b), "more"):
				c.say(head + answer + "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil")
			default:
				c.say(head + answer[:3])
				c.say(answer[3:])
			}
		}
	})
	c := newClient(t, Options{MaxConnsPerHost: 4})
	var wg sync.WaitGroup
	work := make(chan int)
	for range 16 {
		wg.Go(func() {
			for i := range work {
				kind := [...]string{"whole", "gone", "early", "cut", "more"}[i%5]
				if i%7 != 0 {
					kind = "whole"
				}
				ctx, cancel := context.WithCancel(t.Context())
				if kind == "gone" {
					go cancel()
				}
				body, token := fmt.Sprintf("%s-%d", kind, i), fmt.Sprintf("t%d", i)
				r := up.request(ctx, "POST", body)
				r.Header.Set("Authorization", token)
				res, err := c.RoundTrip(r)
				if err == nil {
					if res.Header.Get("Etag") != token {
						t.Errorf("header %q for %q", res.Header.Get("Etag"), token)
					}
					if kind == "early" {
						_, _ = res.Body.Read(make([]byte, 2))
					} else if b, err := io.ReadAll(res.Body); err == nil && string(b) != body+"|"+token {
						t.Errorf("got %q for %q", b, body)
					} else if err != nil && kind == "whole" {
						t.Errorf("reading: %v", err)
					}
					_ = res.Body.Close()
				} else if kind == "whole" {
					t.Errorf("sending: %v", err)
				}
				cancel()
			}
		})
	}
	for i := range rounds {
		work <- i
	}
	close(work)
	wg.Wait()
}
