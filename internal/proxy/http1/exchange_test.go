package http1

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestCancelled checks W05: the context's end closes the connection whatever the exchange is doing, and is the error.
func TestCancelled(t *testing.T) {
	for _, tc := range []struct {
		name, answer string
		body         int
		silent       bool // the answer is not being read at that moment
	}{
		{"W05 before the answer", "", 2, false},
		{"W05 in the headers", "HTTP/1.1 200 OK\r\nX:", 2, false},
		{"W05 in a stream", "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\ndata: 1\n\n", 0, false},
		{"W05 in chunks", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n7\r\ndata: 1", 0, false},
		{"W05 in a body with a length", "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{", 2, false},
		{"W05 while the answer waits to be read", "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{", 2, true},
		{"W05 while a large body is written", "", 8 << 20, false},
		{"W05 while a large body is written and the answer is read", "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{", 8 << 20, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			asked, freed := make(chan bool), make(chan bool)
			done := make(chan bool)
			defer close(done)
			up := newUpstream(t, func(c *peer) {
				if tc.body < 1<<20 {
					c.request()
				} else if _, err := c.r.ReadString('\n'); err != nil {
					return
				}
				c.say(tc.answer)
				close(asked)
				if tc.body < 1<<20 {
					c.untilGone()
				}
				close(freed)
				<-done
			})
			c := newClient(t, Options{})
			ctx, cancel := context.WithCancelCause(t.Context())
			revoked := errors.New("revoked")
			failed := make(chan error, 1)
			got := make(chan *http.Response, 1)
			go func() {
				res, err := c.RoundTrip(up.request(ctx, map[bool]string{true: "POST", false: "GET"}[tc.body > 0], strings.Repeat("x", tc.body)))
				if err != nil {
					failed <- err
					return
				}
				defer res.Body.Close()
				if got <- res; tc.silent {
					<-freed
				}
				_, err = io.Copy(io.Discard, res.Body)
				failed <- err
			}()
			wait(t, asked, "the request")
			if strings.Contains(tc.answer, "\r\n\r\n") {
				wait(t, got, "the answer's headers")
			}
			cancel(revoked)
			wait(t, freed, "the connection to close")
			if err := wait(t, failed, "the exchange to fail"); !errors.Is(err, revoked) {
				t.Errorf("got %v", err)
			}
			if len(c.pool.hosts) != 0 {
				t.Error("something is left in the pool")
			}
		})
	}
}

// TestCancelledLate checks that a context that ends after the answer does not touch the connection that serves others
// by then.
func TestCancelledLate(t *testing.T) {
	up := newUpstream(t, func(c *peer) {
		for c.request() != nil {
			c.say(ok)
		}
	})
	c := newClient(t, Options{})
	for range 200 {
		ctx, cancel := context.WithCancel(t.Context())
		res, err := c.RoundTrip(up.request(ctx, "POST", "{}"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadAll(res.Body); err != nil {
			t.Fatal(err)
		}
		cancel()
		_ = res.Body.Close()
	}
	if up.conns.Load() != 1 {
		t.Errorf("%d connections", up.conns.Load())
	}
}

func TestCancelledBefore(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("gone")
	cancel(gone)
	c := New(pipes{func(net.Conn) { t.Error("dialled") }}, Options{})
	if _, err := c.RoundTrip(get(ctx, "a.test")); !errors.Is(err, gone) {
		t.Errorf("got %v", err)
	}
}

func TestDialBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New(stuck{}, Options{DialTimeout: 7 * time.Second})
		start := time.Now()
		if _, err := c.RoundTrip(get(t.Context(), "a.test")); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != 7*time.Second {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		if len(c.pool.hosts) != 0 {
			t.Error("the host is not forgotten")
		}
	})
}

type stuck struct{}

func (stuck) DialContext(ctx context.Context, _, _ string) (net.Conn, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func (s stuck) DialPlain(ctx context.Context, n, a string) (net.Conn, error) {
	return s.DialContext(ctx, n, a)
}

// TestClose checks that the answer may be closed at any time, by any goroutine.
func TestClose(t *testing.T) {
	const stream = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\ndata: 1\n\n\r\n"
	begin := func(t *testing.T, answer string) (*http.Response, *Client, chan bool) {
		freed := make(chan bool, 1)
		up := newUpstream(t, func(c *peer) {
			c.request()
			c.say(answer)
			c.untilGone()
			freed <- true
		})
		c := newClient(t, Options{})
		res, err := c.RoundTrip(up.request(t.Context(), "GET", ""))
		if err != nil {
			t.Fatal(err)
		}
		return res, c, freed
	}
	t.Run("while it is read", func(t *testing.T) {
		res, c, freed := begin(t, stream)
		read, failed := make(chan bool), make(chan error, 1)
		go func() {
			p := make([]byte, 1<<10)
			_, err := res.Body.Read(p)
			for close(read); err == nil; {
				_, err = res.Body.Read(p)
			}
			failed <- err
		}()
		wait(t, read, "the first event")
		for range 3 {
			if err := res.Body.Close(); err != nil {
				t.Error(err)
			}
		}
		if err := wait(t, failed, "the read to end"); !errors.Is(err, http.ErrBodyReadAfterClose) {
			t.Errorf("got %v", err)
		}
		wait(t, freed, "the connection to close")
		if len(c.pool.hosts) != 0 {
			t.Error("something is left in the pool")
		}
	})
	t.Run("before it is read", func(t *testing.T) {
		res, _, freed := begin(t, ok)
		_ = res.Body.Close()
		wait(t, freed, "the connection to close")
		if n, err := res.Body.Read(make([]byte, 9)); n != 0 || !errors.Is(err, http.ErrBodyReadAfterClose) {
			t.Errorf("read %d, %v after Close", n, err)
		}
	})
	t.Run("after its end", func(t *testing.T) {
		res, c, _ := begin(t, ok)
		if b, err := io.ReadAll(res.Body); err != nil || string(b) != "{}" {
			t.Fatal(b, err)
		}
		if n, err := res.Body.Read(make([]byte, 9)); n != 0 || err != io.EOF {
			t.Errorf("read %d, %v after the end", n, err)
		}
		_ = res.Body.Close()
		if c.pool.idle != 1 || !c.pool.newest.alive() {
			t.Error("Close took a connection that is not its own any more")
		}
		if n, err := res.Body.Read(make([]byte, 9)); n != 0 || !errors.Is(err, http.ErrBodyReadAfterClose) {
			t.Errorf("read %d, %v after Close", n, err)
		}
	})
}

// TestHoldsNoBuffer checks that a stream that waits holds only its connection.
func TestHoldsNoBuffer(t *testing.T) {
	for _, tc := range []struct {
		name   string
		pieces []string // the later ones are said once the one before was read
	}{
		{"an event that came with the headers", []string{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\ndata: 1\n\n\r\n"}},
		{"an event that came later", []string{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "9\r\ndata: 1\n\n\r\n"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			on := make(chan bool, 1)
			up := newUpstream(t, func(c *peer) {
				c.request()
				for n, piece := range tc.pieces {
					if n > 0 {
						<-on
					}
					c.say(piece)
				}
				c.untilGone()
			})
			res, err := newClient(t, Options{}).RoundTrip(up.request(t.Context(), "GET", ""))
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			x := res.Body.(*exchange)
			if len(tc.pieces) > 1 && x.conn.buf != nil {
				t.Error("the stream holds on to something before its first event")
			}
			on <- true
			if n, err := res.Body.Read(nil); n != 0 || err != nil || len(tc.pieces) > 1 && x.conn.buf != nil {
				t.Errorf("a read of nothing: %d, %v, and the stream may hold on to something", n, err)
			}
			p := make([]byte, 512)
			if n, err := res.Body.Read(p); err != nil || string(p[:n]) != "data: 1\n\n" {
				t.Fatalf("%q %v", p[:n], err)
			}
			if x.conn.buf != nil || x.conn.pooled != nil {
				t.Error("the stream holds on to something")
			}
		})
	}
}

// TestReadSizes checks that a reader gets the same bytes, however little room it gives.
func TestReadSizes(t *testing.T) {
	want := strings.Repeat("0123456789", 1000)
	chunked := "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
	for i := 0; i < len(want); {
		n := min(1+i%700, len(want)-i)
		chunked += fmt.Sprintf("%x\r\n%s\r\n", n, want[i:i+n])
		i += n
	}
	for _, answer := range []string{chunked + "0\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 10000\r\n\r\n" + want, "HTTP/1.1 200 OK\r\n\r\n" + want} {
		for _, room := range []int{1, 3, 255, 256, 700, 1 << 20} {
			for _, step := range []int{1, 5, 300, 1 << 20} {
				res, err := New(&inMemory{conns: []*memory{newMemory(step, false, []byte(answer))}}, Options{KeepAlive: -1}).RoundTrip(get(t.Context(), "a.test"))
				if err != nil {
					t.Fatal(err)
				}
				var got []byte
				for p := make([]byte, room); err == nil; {
					var n int
					n, err = res.Body.Read(p)
					got = append(got, p[:n]...)
					if n == 0 && err == nil {
						t.Fatalf("room of %d, steps of %d: a read of nothing", room, step)
					}
				}
				if err != io.EOF || string(got) != want {
					t.Errorf("room of %d, steps of %d: %d bytes, %v", room, step, len(got), err)
				}
			}
		}
	}
}

// TestLargeBodies checks bodies beyond the first write, and upstreams that answer before they have read them.
func TestLargeBodies(t *testing.T) {
	body := strings.Repeat("0123456789abcdef", 1<<20/16)
	huge := strings.Repeat(body, 32) // more than the kernel takes
	t.Run("read, then answered", func(t *testing.T) {
		up := newUpstream(t, func(c *peer) {
			for r := c.request(); r != nil; r = c.request() {
				b, _ := io.ReadAll(r.Body)
				c.say(fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n%5v", string(b) == body))
			}
		})
		c := newClient(t, Options{})
		for range 3 {
			if _, got, err := do(c, up.request(t.Context(), "POST", body)); err != nil || got != " true" {
				t.Errorf("%q %v", got, err)
			}
		}
	})
	t.Run("answered, never read", func(t *testing.T) {
		done := make(chan bool)
		defer close(done)
		up := newUpstream(t, func(c *peer) {
			if _, err := c.r.ReadString('\n'); err != nil {
				return
			}
			c.say("HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\n{}")
			<-done
		})
		c := newClient(t, Options{})
		for range 3 {
			if status, got, err := do(c, up.request(t.Context(), "POST", huge)); err != nil || got != "{}" || status != 413 {
				t.Errorf("%d %q %v", status, got, err)
			}
		}
		if up.conns.Load() != 3 {
			t.Error("a connection with half a request on it was kept")
		}
	})
	t.Run("answered and closed, never read", func(t *testing.T) {
		up := newUpstream(t, func(c *peer) {
			if _, err := c.r.ReadString('\n'); err != nil {
				return
			}
			c.say("HTTP/1.1 413 Too Large\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}")
			_ = c.Conn.(*net.TCPConn).CloseWrite()
			c.untilGone()
		})
		if status, got, err := do(newClient(t, Options{}), up.request(t.Context(), "POST", body)); err != nil || got != "{}" || status != 413 {
			t.Errorf("%d %q %v", status, got, err)
		}
	})
	t.Run("begun to answer, then read", func(t *testing.T) {
		up := newUpstream(t, func(c *peer) {
			if _, err := c.r.Peek(1); err != nil {
				return
			}
			c.say("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n: hi\n\n")
			r := c.request()
			b, _ := io.ReadAll(r.Body)
			c.say(fmt.Sprintf("data: %v\n\n", string(b) == body))
		})
		if _, got, err := do(newClient(t, Options{}), up.request(t.Context(), "POST", body)); err != nil || got != ": hi\n\ndata: true\n\n" {
			t.Errorf("%q %v", got, err)
		}
	})
	t.Run("hung up", func(t *testing.T) {
		up := newUpstream(t, func(c *peer) { c.reset() })
		if _, _, err := do(newClient(t, Options{}), up.request(t.Context(), "POST", body)); err == nil {
			t.Error("no error")
		}
	})
}

// TestHalfWritten checks that a write that fails half-way is not repeated, and that an answer that is already there
// is read.
func TestHalfWritten(t *testing.T) {
	for _, tc := range []struct {
		name, answer string
		err          error
	}{
		{"W11 nothing answered", "", errSource},
		{"answered", "HTTP/1.1 401 Unauthorized\r\nContent-Length: 2\r\n\r\n{}", nil},
		{"answered with something else", "SSH-2.0-OpenSSH_9\r\n", errStatusLine},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d := &halves{memory: newMemory(1<<20, false, []byte(tc.answer))}
			c := New(d, Options{})
			r, _ := http.NewRequestWithContext(t.Context(), "POST", "http://up.test/", strings.NewReader("{}"))
			got := run(c, r)
			if !errors.Is(got.Err, tc.err) {
				t.Errorf("got %+v", got)
			}
			if d.dials != 1 || !d.closed || len(c.pool.hosts) != 0 {
				t.Error("sent again, or kept")
			}
		})
	}
}

// halves is a connection that takes the headers of a request and then breaks.
type halves struct {
	*memory
	dials int
}

func (d *halves) DialPlain(context.Context, string, string) (net.Conn, error) {
	d.dials++
	return d, nil
}
func (d *halves) DialContext(context.Context, string, string) (net.Conn, error) {
	return nil, errSource
}

func (d *halves) Write(p []byte) (int, error) {
	n, _ := d.memory.Write(p[:len(p)-2])
	return n, errSource
}

var errSource = errors.New("no more")

// TestRefused checks which requests are refused, and that no connection is used for them.
func TestRefused(t *testing.T) {
	at := &url.URL{Scheme: "http", Host: "up.test", Path: "/mcp"}
	for _, tc := range []struct {
		name string
		r    http.Request
	}{
		{"H08 CR LF in a value", http.Request{URL: at, Header: http.Header{"X": {"s3cret\r\nY: z"}}}},
		{"H08 LF in a value", http.Request{URL: at, Header: http.Header{"X": {"s3cret\n"}}}},
		{"H08 NUL in a value", http.Request{URL: at, Header: http.Header{"User-Agent": {"s3cret\x00"}}}},
		{"H08 name", http.Request{URL: at, Header: http.Header{"X: y\r\nZ": {"s3cret"}}}},
		{"H08 empty name", http.Request{URL: at, Header: http.Header{"": {"s3cret"}}}},
		{"H08 method", http.Request{URL: at, Method: "GET / HTTP/1.1\r\nX:"}},
		{"H08 host", http.Request{URL: at, Host: "a\r\nX: y"}},
		{"H08 blank in the query", http.Request{URL: &url.URL{Scheme: "http", Host: "h", RawQuery: "a b"}}},
		{"H08 DEL in the query", http.Request{URL: &url.URL{Scheme: "http", Host: "h", RawQuery: "a\x7f"}}},
		{"H08 CR LF in the query", http.Request{URL: &url.URL{Scheme: "http", Host: "h", RawQuery: "a\r\nX: y"}}},
		{"H07 another length", http.Request{URL: at, Header: http.Header{"content-length": {"5"}}}},
		{"H07 another host", http.Request{URL: at, Header: http.Header{"HOST": {"evil"}}}},
		{"H07 encoding", http.Request{URL: at, Header: http.Header{"transfer-Encoding": {"chunked"}}}},
		{"H07 Expect", http.Request{URL: at, Header: http.Header{"Expect": {"100-continue"}}}},
		{"H12 Upgrade", http.Request{URL: at, Header: http.Header{"Upgrade": {"websocket"}}}},
		{"H12 Connection", http.Request{URL: at, Header: http.Header{"connection": {"upgrade"}}}},
		{"H12 CONNECT", http.Request{URL: at, Method: "CONNECT"}},
		{"TE", http.Request{URL: at, Header: http.Header{"Te": {"trailers"}}}},
		{"no URL", http.Request{}},
		{"no host", http.Request{URL: &url.URL{Scheme: "http", Path: "/"}}},
		{"scheme", http.Request{URL: &url.URL{Scheme: "ftp", Host: "h", Path: "/"}}},
		{"opaque", http.Request{URL: &url.URL{Scheme: "http", Host: "h", Opaque: "//evil/"}}},
		{"relative path", http.Request{URL: &url.URL{Scheme: "http", Host: "h", Path: "*"}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d := &inMemory{}
			_, err := New(d, Options{}).RoundTrip(&tc.r)
			if bad := (*RequestError)(nil); !errors.As(err, &bad) || d.dials > 0 {
				t.Errorf("got %v after %d dials", err, d.dials)
			} else if strings.Contains(err.Error(), "s3cret") {
				t.Errorf("the error tells a value: %v", err)
			}
		})
	}
}
