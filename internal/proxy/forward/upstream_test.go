package forward

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/durward-gateway/durward/internal/proxy/http1"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience bounds waits that end at once when there is no failure.
const patience = 20 * time.Second

// upstream is a scripted raw server: every accepted connection runs script, and every received byte is kept.
type upstream struct {
	t      *testing.T
	l      net.Listener
	script func(c *conn)
	wg     sync.WaitGroup
	mu     sync.Mutex
	open   map[*conn]bool
	conns  atomic.Int32
}

type conn struct {
	net.Conn
	r    *bufio.Reader
	got  *bytes.Buffer
	nth  int32
	up   *upstream
	gone chan struct{}
}

func newUpstream(t *testing.T, script func(c *conn)) *upstream {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	u := &upstream{t: t, l: l, script: script, open: map[*conn]bool{}}
	u.wg.Go(func() {
		for {
			raw, err := l.Accept()
			if err != nil {
				return
			}
			got := &bytes.Buffer{}
			c := &conn{Conn: raw, r: bufio.NewReader(io.TeeReader(raw, got)), got: got, nth: u.conns.Add(1), up: u, gone: make(chan struct{})}
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

func (u *upstream) url(rest string) *url.URL {
	parsed, err := url.Parse("http://" + u.l.Addr().String() + rest)
	if err != nil {
		u.t.Fatal(err)
	}
	return parsed
}

// request reads one request, body included, and returns it with its exact bytes; nil when the peer hung up.
func (c *conn) request() (*http.Request, string) {
	c.got.Reset()
	req, err := http.ReadRequest(c.r)
	if err != nil {
		return nil, ""
	}
	if _, err := io.Copy(io.Discard, req.Body); err != nil {
		return nil, ""
	}
	return req, c.got.String()
}

func (c *conn) say(s string) { _, _ = io.WriteString(c, s) }

// untilGone waits until the peer closes.
func (c *conn) untilGone() { _, _ = io.Copy(io.Discard, c.Conn) }

// dialer dials freely and counts writes.
type dialer struct {
	writes, plain, tls atomic.Int32
}

func (d *dialer) DialContext(ctx context.Context, network, addr string) (net.Conn, error) {
	d.tls.Add(1)
	return d.dial(ctx, network, addr)
}

func (d *dialer) DialPlain(ctx context.Context, network, addr string) (net.Conn, error) {
	d.plain.Add(1)
	return d.dial(ctx, network, addr)
}

func (d *dialer) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	c, err := (&net.Dialer{}).DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return &countedConn{c, &d.writes}, nil
}

type countedConn struct {
	net.Conn
	writes *atomic.Int32
}

func (c *countedConn) Write(p []byte) (int, error) {
	c.writes.Add(1)
	return c.Conn.Write(p)
}

// client is one of the two implementations of Sender.
type client struct {
	name    string
	netHTTP bool
}

var (
	overNetHTTP = client{"net/http", true}
	overHTTP1   = client{"http1", false}
)

func (c client) build(d Dialer, o Options) (Upstreams, error) {
	o.NetHTTP = c.netHTTP
	return NewUpstreams(d, o)
}

// onBoth runs a test with each of them.
func onBoth(t *testing.T, test func(t *testing.T, via client)) {
	for _, c := range []client{overNetHTTP, overHTTP1} {
		t.Run(c.name, func(t *testing.T) { test(t, c) })
	}
}

func (c client) forwarder(t testing.TB, o Options, l Limits) (*Forwarder, *dialer) {
	t.Helper()
	d := &dialer{}
	rt, err := c.build(d, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(rt.CloseIdleConnections)
	return New(rt, l), d
}

func bearer(token string) Credential {
	return CredentialFunc(func(r *http1.Request) error {
		r.Set("Authorization", "Bearer "+token)
		return nil
	})
}

func mustURL(s string) *url.URL {
	u, err := url.Parse(s)
	if err != nil {
		panic(err)
	}
	return u
}
