package forward

import (
	"context"
	"net"
	"slices"

	"github.com/durward-gateway/durward/internal/proxy/http1"
)

// Sender sends requests to the network: one request, one answer, no redirects, and no retries of a request that may
// have been executed. It must return when the context ends. It must close the connection when the context ends or the
// body is closed before its end. When Send has returned it keeps nothing of r but the bytes of its body.
type Sender interface {
	Send(ctx context.Context, r *http1.Request) (*http1.Answer, error)
}

// Upstreams is a [Sender] that keeps connections.
type Upstreams interface {
	Sender
	// CloseIdleConnections closes connections without a request; connections in use close when their request ends.
	CloseIdleConnections()
}

// NewUpstreams makes the Sender of one forwarder: internal/proxy/http1's client, or [Transports] when o asks for net/http or
// for HTTP/2, which http1 does not speak. It fails on an unknown HTTP version.
func NewUpstreams(d Dialer, o Options) (Upstreams, error) {
	if o.NetHTTP || slices.Contains(o.Versions, "2") {
		return NewTransports(d, o)
	}
	if _, err := protocols(o.Versions); err != nil {
		return nil, err
	}
	return http1.New(marking{d}, http1.Options{
		DialTimeout: o.DialTimeout, TLSHandshakeTimeout: o.TLSHandshakeTimeout, MaxResponseHeader: o.MaxResponseHeader, KeepAlive: o.KeepAlive,
		IdleConns: o.IdleConns, IdleConnsPerHost: o.IdleConnsPerHost, MaxConnsPerHost: o.MaxConnsPerHost, TLS: o.TLS,
	}), nil
}

// marking marks errors from before there was a connection, to tell them from errors on a connection.
type marking struct{ dialer Dialer }

func (m marking) DialContext(ctx context.Context, network, addr string) (net.Conn, error) {
	return marked(m.dialer.DialContext(ctx, network, addr))
}

func (m marking) DialPlain(ctx context.Context, network, addr string) (net.Conn, error) {
	return marked(m.dialer.DialPlain(ctx, network, addr))
}

func marked(c net.Conn, err error) (net.Conn, error) {
	if err != nil {
		return nil, &dialError{err}
	}
	return c, nil
}
