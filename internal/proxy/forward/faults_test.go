package forward

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func wait(t *testing.T, c <-chan struct{}, what string) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(patience):
		t.Fatal("timed out waiting for: " + what)
	}
}

// elapse lets time pass on a bubble's fake clock.
func elapse(d time.Duration) { <-time.After(d) }

// pipeDialer hands out net.Pipe ends, so that a test can run in a synctest bubble; serve gets the other end.
type pipeDialer struct{ serve func(net.Conn) }

func (d pipeDialer) DialContext(context.Context, string, string) (net.Conn, error) {
	a, b := net.Pipe()
	go func() { defer b.Close(); d.serve(b) }()
	return a, nil
}

func (d pipeDialer) DialPlain(ctx context.Context, network, addr string) (net.Conn, error) {
	return d.DialContext(ctx, network, addr)
}

// TestHangs covers W03 on a fake clock: every place where an upstream can fall silent, with the limit that ends the
// wait.
func TestHangs(t *testing.T) { onBoth(t, testHangs) }

func testHangs(t *testing.T, via client) {
	const head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
	swallow := func(c net.Conn) { _, _ = io.Copy(io.Discard, c) }
	read := func(c net.Conn) { _, _ = c.Read(make([]byte, 1<<20)) }
	for _, tc := range []struct {
		name  string
		serve func(net.Conn)
		class error
		after time.Duration
		body  string
	}{
		{"W03 nothing is read", func(c net.Conn) { elapse(time.Hour) }, ErrTimeout, 30 * time.Second, ""},
		{"W03 nothing is answered", swallow, ErrTimeout, 30 * time.Second, ""},
		{"W03 half a header", func(c net.Conn) { read(c); _, _ = io.WriteString(c, head[:20]); swallow(c) }, ErrTimeout, 30 * time.Second, ""},
		{"W03 only 1xx, again and again", func(c net.Conn) {
			read(c)
			for {
				if _, err := io.WriteString(c, "HTTP/1.1 102 P\r\n\r\n"); err != nil {
					return
				}
				elapse(time.Second)
			}
		}, ErrTimeout, 30 * time.Second, ""},
		{"W03 headers, then nothing", func(c net.Conn) { read(c); _, _ = io.WriteString(c, head); swallow(c) }, ErrIdle, 5 * time.Minute, ""},
		{"W03 mid-event", func(c net.Conn) { read(c); _, _ = io.WriteString(c, head+"7\r\ndata: x\r\n"); swallow(c) }, ErrIdle, 5 * time.Minute, "data: x"},
		{"W03 comments keep a stream alive", func(c net.Conn) {
			read(c)
			_, _ = io.WriteString(c, head)
			for range 3 {
				elapse(4 * time.Minute)
				_, _ = io.WriteString(c, "3\r\n:\n\n\r\n")
			}
			swallow(c)
		}, ErrIdle, 17 * time.Minute, ":\n\n:\n\n:\n\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tr, err := via.build(pipeDialer{tc.serve}, Options{})
				if err != nil {
					t.Fatal(err)
				}
				f := New(tr, Limits{})
				start := time.Now()
				w := httptest.NewRecorder()
				err = func() error {
					r := &Request{Method: "POST", URL: mustURL("http://up.test/mcp"), Body: []byte(strings.Repeat("x", 1<<10))}
					res, err := f.Do(t.Context(), r)
					if err != nil {
						return err
					}
					defer res.Close()
					return res.Relay(w, 1<<20)
				}()
				if !errors.Is(err, tc.class) {
					t.Errorf("got %v, want %v", err, tc.class)
				}
				if took := time.Since(start); took != tc.after {
					t.Errorf("took %v, want %v", took, tc.after)
				}
				if w.Body.String() != tc.body {
					t.Errorf("body %q, want %q", w.Body, tc.body)
				}
				tr.CloseIdleConnections()
				elapse(2 * time.Hour) // the scripts end
			})
		})
	}
}

// TestSlowClientIsNotASilentUpstream checks that the idle clock stops while the client is slow.
func TestSlowClientIsNotASilentUpstream(t *testing.T) { onBoth(t, testSlowClientIsNotASilentUpstream) }

func testSlowClientIsNotASilentUpstream(t *testing.T, via client) {
	synctest.Test(t, func(t *testing.T) {
		tr, _ := via.build(pipeDialer{func(c net.Conn) {
			_, _ = c.Read(make([]byte, 4096))
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\ndata: 1\n\n")
			_, _ = io.WriteString(c, "data: 2\n\n")
		}}, Options{})
		res, err := New(tr, Limits{}).Do(t.Context(), &Request{Method: "GET", URL: mustURL("http://up.test/")})
		if err != nil {
			t.Fatal(err)
		}
		defer res.Close()
		var got []byte
		p := make([]byte, 9)
		for {
			n, err := res.Body.Read(p)
			got = append(got, p[:n]...)
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			elapse(time.Hour)
		}
		if string(got) != "data: 1\n\ndata: 2\n\n" {
			t.Errorf("got %q", got)
		}
	})
}

// TestDiscard covers W08: an unwanted answer is read for at most a second and 64 KiB.
func TestDiscard(t *testing.T) { onBoth(t, testDiscard) }

func testDiscard(t *testing.T, via client) {
	for _, tc := range []struct {
		name, answer string
		drip         bool
		after        time.Duration
	}{
		{"W08 short", okJSON, false, 0},
		{"W08 1 GiB announced", "HTTP/1.1 500 X\r\nContent-Length: 1073741824\r\n\r\n", true, 0},
		{"W08 endless drip", "HTTP/1.1 401 X\r\nConnection: close\r\n\r\n", true, time.Second},
		{"event stream", "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n", true, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tr, _ := via.build(pipeDialer{func(c net.Conn) {
					_, _ = c.Read(make([]byte, 4096))
					_, err := io.WriteString(c, tc.answer)
					for tc.drip && err == nil {
						elapse(300 * time.Millisecond)
						_, err = io.WriteString(c, "x")
					}
					_, _ = io.Copy(io.Discard, c)
				}}, Options{})
				res, err := New(tr, Limits{}).Do(t.Context(), &Request{Method: "POST", URL: mustURL("http://up.test/"), Body: []byte("{}")})
				if err != nil {
					t.Fatal(err)
				}
				start := time.Now()
				res.Discard()
				if took := time.Since(start); took != tc.after {
					t.Errorf("took %v, want %v", took, tc.after)
				}
				tr.CloseIdleConnections()
				elapse(time.Second)
			})
		})
	}
}

// TestDialTimeout checks that an endless dial has a bound apart from the request's.
func TestDialTimeout(t *testing.T) { onBoth(t, testDialTimeout) }

func testDialTimeout(t *testing.T, via client) {
	synctest.Test(t, func(t *testing.T) {
		tr, _ := via.build(stuckDialer{}, Options{})
		start := time.Now()
		_, err := New(tr, Limits{}).Do(t.Context(), &Request{Method: "GET", URL: mustURL("http://up.test/")})
		if !errors.Is(err, ErrConnect) || time.Since(start) != 10*time.Second {
			t.Errorf("got %v after %v", err, time.Since(start))
		}
	})
}

type stuckDialer struct{}

func (stuckDialer) DialContext(ctx context.Context, _, _ string) (net.Conn, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}
func (d stuckDialer) DialPlain(ctx context.Context, n, a string) (net.Conn, error) {
	return d.DialContext(ctx, n, a)
}

// TestConnectErrors covers S10: only the log's text tells a closed port from a refused address or a TLS failure.
func TestConnectErrors(t *testing.T) { onBoth(t, testConnectErrors) }

func testConnectErrors(t *testing.T, via client) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := l.Addr().String()
	_ = l.Close()
	untrusted := httptest.NewUnstartedServer(http.NotFoundHandler())
	untrusted.Config.ErrorLog = log.New(io.Discard, "", 0)
	untrusted.StartTLS()
	defer untrusted.Close()
	f, d := via.forwarder(t, Options{}, Limits{})
	for _, raw := range []string{"http://" + closed + "/?api_key=s3cret", "https://" + closed + "/?api_key=s3cret", untrusted.URL + "/?api_key=s3cret"} {
		_, err := f.Do(t.Context(), &Request{Method: "POST", URL: mustURL(raw), Body: []byte("{}")})
		if !errors.Is(err, ErrConnect) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: %v", raw, err)
		}
	}
	if d.tls.Load() != 2 || d.plain.Load() != 1 {
		t.Errorf("dialled %d for TLS and %d plain", d.tls.Load(), d.plain.Load())
	}
}

// TestClientGone covers W05: the upstream connection is released as soon as the client's context ends.
func TestClientGone(t *testing.T) { onBoth(t, testClientGone) }

func testClientGone(t *testing.T, via client) {
	for _, tc := range []struct{ name, answer string }{
		{"before headers", ""},
		{"in a stream", "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: 1\n\n"},
		{"in a JSON body", "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{"},
	} {
		t.Run("W05 "+tc.name, func(t *testing.T) {
			freed, asked := make(chan struct{}), make(chan struct{})
			up := newUpstream(t, func(c *conn) {
				if _, raw := c.request(); raw == "" {
					return
				}
				c.say(tc.answer)
				close(asked)
				c.untilGone()
				close(freed)
			})
			f, _ := via.forwarder(t, Options{}, Limits{})
			ctx, cancel := context.WithCancelCause(t.Context())
			revoked := errors.New("revoked")
			failed := make(chan error, 1)
			go func() {
				res, err := f.Do(ctx, &Request{Method: "POST", URL: up.url("/"), Body: []byte("{}")})
				if err == nil {
					defer res.Close()
					err = res.Relay(httptest.NewRecorder(), 1<<20)
				}
				failed <- err
			}()
			wait(t, asked, "the request")
			cancel(revoked)
			if err := <-failed; !errors.Is(err, ErrClientGone) || !errors.Is(err, revoked) {
				t.Errorf("got %v", err)
			}
			wait(t, freed, "the upstream's connection to close")
		})
	}
}

// TestClientGoneOverHTTP checks the same through a real server, whose request context is the only sign.
func TestClientGoneOverHTTP(t *testing.T) { onBoth(t, testClientGoneOverHTTP) }

func testClientGoneOverHTTP(t *testing.T, via client) {
	freed := make(chan struct{})
	up := newUpstream(t, func(c *conn) {
		if _, raw := c.request(); raw == "" {
			return
		}
		c.say("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
		c.untilGone()
		close(freed)
	})
	f, _ := via.forwarder(t, Options{}, Limits{})
	front := httptest.NewServer(gateway(f, up))
	defer front.Close()
	ctx, cancel := context.WithCancel(t.Context())
	req, _ := http.NewRequestWithContext(ctx, "POST", front.URL, strings.NewReader(`{"id":1}`))
	// The headers of a stream that starts silent must still arrive.
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	if res.Header.Get("X-Accel-Buffering") != "no" {
		t.Error("stream headers are missing")
	}
	cancel()
	wait(t, freed, "the upstream's connection to close")
	_ = res.Body.Close()
	http.DefaultClient.CloseIdleConnections()
}

// gateway returns the smallest handler over a forwarder.
func gateway(f *Forwarder, up *upstream) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		b, err := ReadBody(r, 4<<20)
		if err != nil {
			w.WriteHeader(err.(*BodyError).Status)
			return
		}
		res, err := f.Do(r.Context(), &Request{Method: r.Method, URL: up.url("/mcp"), Header: r.Header, Body: b})
		if err != nil {
			http.Error(w, "no usable answer", http.StatusBadGateway)
			return
		}
		defer res.Close()
		res.CopyHeader(w.Header())
		if err := res.Relay(w, 16<<20); err != nil {
			panic(http.ErrAbortHandler)
		}
	}
}

// TestNeverRetried covers W11: it checks a POST whose connection dies, on a new and on a kept connection.
func TestNeverRetried(t *testing.T) { onBoth(t, testNeverRetried) }

func testNeverRetried(t *testing.T, via client) {
	for _, tc := range []struct {
		name  string
		reuse bool
		die   func(c *conn)
	}{
		{"W11 reset after the request, new connection", false, func(c *conn) { c.reset() }},
		{"W11 closed after the request, new connection", false, func(c *conn) {}},
		{"W11 reset after the request, kept connection", true, func(c *conn) { c.reset() }},
		{"W11 closed after the request, kept connection", true, func(c *conn) {}},
		{"W11 half an answer, kept connection", true, func(c *conn) { c.say("HTTP/1.1 200 O") }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var mu sync.Mutex
			calls := 0
			up := newUpstream(t, func(c *conn) {
				for {
					_, raw := c.request()
					if raw == "" {
						return
					}
					if strings.HasSuffix(raw, "warm") {
						c.say(okJSON)
						continue
					}
					mu.Lock()
					calls++
					mu.Unlock()
					tc.die(c)
					return
				}
			})
			f, _ := via.forwarder(t, Options{}, Limits{})
			send := func(body string) error {
				res, err := f.Do(t.Context(), &Request{Method: "POST", URL: up.url("/"), Body: []byte(body),
					Header: http.Header{"Idempotency-Key": {"k"}, "X-Idempotency-Key": {"k"}}})
				if err == nil {
					res.Discard()
				}
				return err
			}
			if tc.reuse {
				if err := send("warm"); err != nil {
					t.Fatal(err)
				}
			}
			if err := send("call"); !errors.Is(err, ErrUpstream) {
				t.Errorf("got %v", err)
			}
			mu.Lock()
			defer mu.Unlock()
			if calls != 1 || up.conns.Load() != 1 {
				t.Errorf("executed %d times over %d connections", calls, up.conns.Load())
			}
		})
	}
}

// TestStaleConnection checks that an idle connection that the upstream closed does no harm, because nothing was written
// to it.
func TestStaleConnection(t *testing.T) { onBoth(t, testStaleConnection) }

func testStaleConnection(t *testing.T, via client) {
	first := make(chan *conn, 1)
	up := newUpstream(t, func(c *conn) {
		if c.nth == 1 {
			first <- c
		}
		for {
			if _, raw := c.request(); raw == "" {
				return
			}
			c.say(okJSON)
		}
	})
	d := &failingWrites{}
	tr, err := via.build(d, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer tr.CloseIdleConnections()
	f := New(tr, Limits{})
	for i := range 2 {
		res, err := f.Do(t.Context(), &Request{Method: "POST", URL: up.url("/"), Body: []byte("{}")})
		if err != nil {
			t.Fatalf("call %d: %v", i, err)
		}
		res.Discard()
		d.mu.Lock()
		for _, c := range d.conns {
			c.dead = true // the next write fails before a byte is out
		}
		d.mu.Unlock()
	}
	if up.conns.Load() != 2 {
		t.Errorf("%d connections, want 2", up.conns.Load())
	}
}

type failingWrites struct {
	mu    sync.Mutex
	conns []*mortal
}

type mortal struct {
	net.Conn
	d    *failingWrites
	dead bool
}

func (d *failingWrites) DialContext(ctx context.Context, n, a string) (net.Conn, error) {
	c, err := (&net.Dialer{}).DialContext(ctx, n, a)
	if err != nil {
		return nil, err
	}
	m := &mortal{Conn: c, d: d}
	d.mu.Lock()
	d.conns = append(d.conns, m)
	d.mu.Unlock()
	return m, nil
}

func (d *failingWrites) DialPlain(ctx context.Context, n, a string) (net.Conn, error) {
	return d.DialContext(ctx, n, a)
}

func (m *mortal) Write(p []byte) (int, error) {
	m.d.mu.Lock()
	defer m.d.mu.Unlock()
	if m.dead {
		return 0, net.ErrClosed
	}
	return m.Conn.Write(p)
}

func (c *conn) reset() { _ = c.Conn.(*net.TCPConn).SetLinger(0) }

// TestEarlyAnswer checks that an answer before the body was read is passed on, and that its connection is not used
// again.
func TestEarlyAnswer(t *testing.T) { onBoth(t, testEarlyAnswer) }

func testEarlyAnswer(t *testing.T, via client) {
	done := make(chan struct{})
	defer close(done)
	up := newUpstream(t, func(c *conn) {
		if _, err := c.r.ReadString('\n'); err != nil {
			return
		}
		c.say("HTTP/1.1 413 Too Large\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}")
		<-done // the rest of the body is never read
	})
	f, _ := via.forwarder(t, Options{}, Limits{})
	for range 3 {
		res, err := f.Do(t.Context(), &Request{Method: "POST", URL: up.url("/"), Body: make([]byte, 32<<20)})
		if err != nil {
			t.Fatal(err)
		}
		if b, err := res.ReadAll(10); err != nil || string(b) != "{}" || res.Status != 413 {
			t.Errorf("got %d %q %v", res.Status, b, err)
		}
		res.Close()
	}
}

// TestResetMidEvent checks that arrived data is delivered, and that the client's connection is then aborted, not ended
// normally.
func TestResetMidEvent(t *testing.T) { onBoth(t, testResetMidEvent) }

func testResetMidEvent(t *testing.T, via client) {
	seen := make(chan struct{})
	up := newUpstream(t, func(c *conn) {
		if _, raw := c.request(); raw == "" {
			return
		}
		c.say("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n7\r\ndata: 1\r\n")
		<-seen
		c.reset()
	})
	f, _ := via.forwarder(t, Options{}, Limits{})
	front := httptest.NewServer(gateway(f, up))
	defer front.Close()
	res, err := http.Post(front.URL, "application/json", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	defer http.DefaultClient.CloseIdleConnections()
	defer res.Body.Close()
	p := make([]byte, 7)
	if _, err := io.ReadFull(res.Body, p); err != nil || string(p) != "data: 1" {
		t.Fatalf("%q %v", p, err)
	}
	close(seen)
	if rest, err := io.ReadAll(res.Body); err == nil {
		t.Errorf("stream ended well with %q", rest)
	}
}

// TestNoBleed covers O12: over few kept connections, with answers delayed, cancelled and cut, no caller gets another's
// answer, header or credential.
func TestNoBleed(t *testing.T) { onBoth(t, testNoBleed) }

func testNoBleed(t *testing.T, via client) {
	rounds := 2000
	if testing.Short() {
		rounds = 200
	}
	up := newUpstream(t, func(c *conn) {
		for {
			req, raw := c.request()
			if raw == "" {
				return
			}
			_, body, _ := strings.Cut(raw, "\r\n\r\n")
			answer := fmt.Sprintf("%s|%s|%s", body, req.Header.Get("Authorization"), req.Header.Get("Mcp-Session-Id"))
			head := fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nMcp-Session-Id: %s\r\nContent-Length: %d\r\n\r\n", req.Header.Get("Mcp-Session-Id"), len(answer))
			c.say(head + answer[:3])
			if strings.HasPrefix(body, "cut") {
				return
			}
			c.say(answer[3:])
		}
	})
	f, _ := via.forwarder(t, Options{MaxConnsPerHost: 4}, Limits{})
	var wg sync.WaitGroup
	work := make(chan int)
	for range 16 {
		wg.Go(func() {
			for i := range work {
				kind := [...]string{"whole", "gone", "early", "cut"}[i%4]
				if i%7 != 0 {
					kind = "whole"
				}
				ctx, cancel := context.WithCancel(t.Context())
				if kind == "gone" {
					go cancel()
				}
				body := fmt.Sprintf("%s-%d", kind, i)
				token, sid := fmt.Sprintf("t%d", i), fmt.Sprintf("s%d", i)
				want := fmt.Sprintf("%s|Bearer %s|%s", body, token, sid)
				res, err := f.Do(ctx, &Request{Method: "POST", URL: up.url("/"), Body: []byte(body), SessionID: sid, Credential: bearer(token)})
				if err == nil {
					if res.SessionID() != sid {
						t.Errorf("session %q for %q", res.SessionID(), sid)
					}
					if kind == "early" {
						p := make([]byte, 2)
						_, _ = res.Body.Read(p)
					} else if b, err := res.ReadAll(1 << 10); err == nil && string(b) != want {
						t.Errorf("got %q, want %q", b, want)
					} else if err != nil && kind == "whole" {
						t.Errorf("reading: %v", err)
					}
					res.Close()
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

// TestManyDisconnects covers W05: nothing is left behind (goleak checks the goroutines).
func TestManyDisconnects(t *testing.T) { onBoth(t, testManyDisconnects) }

func testManyDisconnects(t *testing.T, via client) {
	var open sync.WaitGroup
	up := newUpstream(t, func(c *conn) {
		if _, raw := c.request(); raw == "" {
			return
		}
		c.say("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: 1\n\n")
		c.untilGone()
		open.Done()
	})
	f, _ := via.forwarder(t, Options{}, Limits{})
	for range 300 {
		open.Add(1)
		ctx, cancel := context.WithCancel(t.Context())
		res, err := f.Do(ctx, &Request{Method: "GET", URL: up.url("/")})
		if err != nil {
			t.Fatal(err)
		}
		cancel()
		res.Close()
	}
	done := make(chan struct{})
	go func() { open.Wait(); close(done) }()
	wait(t, done, "all upstream connections to close")
}
