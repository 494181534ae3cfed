package http1

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is the bound of waits that end at once when all is well.
const patience = 20 * time.Second

func wait[T any](t *testing.T, c <-chan T, what string) (got T) {
	t.Helper()
	select {
	case got = <-c:
	case <-time.After(patience):
		t.Fatal("timed out waiting for: " + what)
	}
	return got
}

// upstream is a scripted raw server: every accepted connection runs script.
type upstream struct {
	t      testing.TB
	l      net.Listener
	script func(c *peer)
	wg     sync.WaitGroup
	mu     sync.Mutex
	open   map[*peer]bool
	conns  atomic.Int32
	asked  atomic.Int32 // requests read whole
}

// peer is the upstream's side of a connection.
type peer struct {
	net.Conn
	r   *bufio.Reader
	nth int32
	up  *upstream
}

func newUpstream(t testing.TB, script func(c *peer)) *upstream {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	u := &upstream{t: t, l: l, script: script, open: map[*peer]bool{}}
	u.wg.Go(func() {
		for {
			raw, err := l.Accept()
			if err != nil {
				return
			}
			c := &peer{Conn: raw, r: bufio.NewReader(raw), nth: u.conns.Add(1), up: u}
			u.mu.Lock()
			u.open[c] = true
			u.mu.Unlock()
			u.wg.Go(func() { defer raw.Close(); script(c) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		u.mu.Lock()
		for c := range u.open {
			_ = c.Close()
		}
		u.mu.Unlock()
		u.wg.Wait()
	})
	return u
}

// request reads one request, body included; nil when the client hung up.
func (c *peer) request() *http.Request {
	req, err := http.ReadRequest(c.r)
	if err != nil {
		return nil
	}
	b, err := io.ReadAll(req.Body)
	if err != nil {
		return nil
	}
	req.Body = io.NopCloser(bytes.NewReader(b))
	c.up.asked.Add(1)
	return req
}

func (c *peer) say(s string) { _, _ = io.WriteString(c, s) }

// untilGone waits until the client closes.
func (c *peer) untilGone() { _, _ = io.Copy(io.Discard, c.Conn) }

// reset makes the coming close a reset.
func (c *peer) reset() { _ = c.Conn.(*net.TCPConn).SetLinger(0) }

// freely dials without any rule.
type freely struct{ plain, tls atomic.Int32 }

func (d *freely) DialContext(ctx context.Context, network, addr string) (net.Conn, error) {
	d.tls.Add(1)
	return (&net.Dialer{}).DialContext(ctx, network, addr)
}

func (d *freely) DialPlain(ctx context.Context, network, addr string) (net.Conn, error) {
	d.plain.Add(1)
	return (&net.Dialer{}).DialContext(ctx, network, addr)
}

func newClient(t testing.TB, o Options) *Client {
	c := New(&freely{}, o)
	t.Cleanup(c.CloseIdleConnections)
	return c
}

func (u *upstream) request(ctx context.Context, method, body string) *http.Request {
	var r io.Reader
	if body != "" {
		r = strings.NewReader(body)
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://"+u.l.Addr().String()+"/mcp?k=v", r)
	if err != nil {
		u.t.Fatal(err)
	}
	return req
}

// soon is the bound of whole exchanges, so that one that waits for ever is an error of its test.
const soon = 10 * time.Second

// do sends a request and reads the answer whole.
func do(c *Client, r *http.Request) (status int, body string, err error) {
	ctx, cancel := context.WithTimeout(r.Context(), soon)
	defer cancel()
	res, err := c.RoundTrip(r.WithContext(ctx))
	if err != nil {
		return 0, "", err
	}
	b, err := io.ReadAll(progress{res.Body})
	return res.StatusCode, string(b), errors.Join(err, res.Body.Close())
}

// progress makes an error of a read that says nothing: io.ReadAll would ask again for ever.
type progress struct{ io.Reader }

func (p progress) Read(b []byte) (int, error) {
	n, err := p.Reader.Read(b)
	if n == 0 && err == nil {
		err = io.ErrNoProgress
	}
	return n, err
}

const ok = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
