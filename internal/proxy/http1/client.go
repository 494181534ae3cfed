package http1

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"golang.org/x/net/http/httpguts"

	"github.com/durward-gateway/durward/internal/proxy/nonblock"
)

// Dialer opens connections to checked addresses.
type Dialer interface {
	// DialContext opens a connection for TLS.
	DialContext(ctx context.Context, network, addr string) (net.Conn, error)
	// DialPlain opens a connection for plain HTTP.
	DialPlain(ctx context.Context, network, addr string) (net.Conn, error)
}

// Options tunes a [Client]. The zero value gives the defaults.
type Options struct {
	DialTimeout         time.Duration    // name resolution and connect; 0: 10 s
	TLSHandshakeTimeout time.Duration    // 0: 10 s
	MaxResponseHeader   int64            // bytes of all headers of one answer, 1xx included; 0: 64 KiB
	KeepAlive           time.Duration    // how long an idle connection is kept; 0: 90 s, negative: no keep-alive
	IdleConns           int              // idle connections in all; 0: 8192
	IdleConnsPerHost    int              // 0: 512
	MaxConnsPerHost     int              // connections to one host, busy and idle; requests wait. 0: no limit
	TLS                 *tls.Config      // cloned; nil: Go's defaults. ServerName is left to the URL's host, NextProtos is "http/1.1"
	Now                 func() time.Time // nil: time.Now
}

// Client sends requests over HTTP/1.1. It is safe for concurrent use.
type Client struct {
	dialer           Dialer
	dialTimeout      time.Duration
	handshakeTimeout time.Duration
	maxHead          int
	tls              *tls.Config
	pool             pool
}

// New makes a client that connects through d.
func New(d Dialer, o Options) *Client {
	c := &Client{
		dialer: d, dialTimeout: positive(o.DialTimeout, 10*time.Second), handshakeTimeout: positive(o.TLSHandshakeTimeout, 10*time.Second),
		maxHead: int(min(positive(o.MaxResponseHeader, 64<<10), 1<<30)), tls: o.TLS.Clone(),
	}
	if c.tls == nil {
		c.tls = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	c.tls.NextProtos = []string{"http/1.1"}
	if o.Now == nil {
		o.Now = time.Now
	}
	c.pool = pool{
		now: o.Now, timeout: o.KeepAlive, perHost: positive(o.IdleConnsPerHost, 512), inAll: positive(o.IdleConns, 8192),
		active: max(o.MaxConnsPerHost, 0), hosts: map[key]*host{},
	}
	if o.KeepAlive == 0 {
		c.pool.timeout = 90 * time.Second
	}
	return c
}

// Answer is an upstream's response, whose head has been read.
type Answer struct {
	Status int
	Length int64 // of the body in bytes; -1 when the upstream did not say, 0 when there is none
	// Fields holds the headers as they came, names in canonical form.
	Fields []Field
	// Body must be closed. It may be closed while another goroutine reads it, and more than once. Closing it before
	// its end closes the connection too.
	Body io.ReadCloser
}

// Ready reports whether the rest of the body can be read without waiting for the upstream. False does not mean that
// it cannot.
func (a *Answer) Ready() bool {
	x, ok := a.Body.(*exchange)
	return ok && x.ready()
}

// Send sends r and returns the answer as soon as its headers are there. The package's documentation says which
// requests it refuses, and where answers differ from net/http's. The context's end closes the connection, also while
// the answer's body is read; the error is then its cause. Errors are *[RequestError], the dialer's error or
// *[HandshakeError] (in these cases nothing was sent), *[ProtocolError], or the connection's error.
func (c *Client) Send(ctx context.Context, r *Request) (*Answer, error) {
	out, err := prepare(r, c.pool.timeout < 0)
	if err != nil {
		return nil, err
	}
	defer out.release()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	h, err := c.pool.enter(ctx, key{r.URL.Scheme == "https", r.URL.Host})
	if err != nil {
		return nil, err
	}
	x := &exchange{client: c, host: h, ctx: ctx, isHead: r.Method == http.MethodHead}
	x.reuse = c.pool.timeout >= 0
	repeatable := len(r.Body) == 0 && (r.Method == "" || r.Method == http.MethodGet || x.isHead)
	for {
		if x.conn, err = c.connect(ctx, h, r.URL); err != nil {
			break
		}
		var sent bool
		if sent, err = x.begin(&out); err == nil {
			return &x.answer, nil
		}
		// A kept connection may have died since the liveness check. An upstream that saw no byte of the request has
		// not executed it.
		if again := x.conn.used && !x.heard && ctx.Err() == nil && (!sent || repeatable); !again {
			c.pool.leave(h, nil)
			return nil, err
		}
		repeatable = repeatable && !sent
		if out.first == nil {
			if out, err = prepare(r, c.pool.timeout < 0); err != nil {
				break
			}
		}
	}
	c.pool.leave(h, nil)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return nil, err
}

// CloseIdleConnections closes idle connections. Connections in use close when their request ends, unless another
// request has begun by then.
func (c *Client) CloseIdleConnections() { c.pool.closeIdle() }

// connect takes an idle connection or makes one.
func (c *Client) connect(ctx context.Context, h *host, u *url.URL) (*conn, error) {
	if kept := c.pool.take(h); kept != nil {
		return kept, nil
	}
	addr, err := httpguts.PunycodeHostPort(u.Host)
	if err != nil {
		return nil, &RequestError{"not a host name"}
	}
	parsed := url.URL{Host: addr}
	name, port := parsed.Hostname(), parsed.Port()
	dial := c.dialer.DialPlain
	if h.key.tls {
		dial = c.dialer.DialContext
	}
	if port == "" {
		if port = "80"; h.key.tls {
			port = "443"
		}
	}
	dialCtx, cancel := context.WithTimeout(ctx, c.dialTimeout)
	raw, err := dial(dialCtx, "tcp", net.JoinHostPort(name, port))
	cancel()
	if err != nil {
		return nil, err
	}
	raw = nonblock.Wrap(raw)
	if !h.key.tls {
		return newConn(raw, raw), nil
	}
	config := c.tls
	if config.ServerName == "" {
		config = config.Clone()
		config.ServerName = name
	}
	secured := tls.Client(raw, config)
	shakeCtx, cancel := context.WithTimeout(ctx, c.handshakeTimeout)
	defer cancel()
	if err := secured.HandshakeContext(shakeCtx); err != nil {
		_ = raw.Close()
		return nil, &HandshakeError{err}
	}
	made := newConn(raw, secured)
	state := secured.ConnectionState()
	made.tls = &state
	return made, nil
}

func positive[T int | int64 | time.Duration](v, or T) T {
	if v > 0 {
		return v
	}
	return or
}
