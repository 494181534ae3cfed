package forward

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/durward-gateway/durward/internal/proxy/http1"
)

// Dialer opens connections to checked addresses; internal/proxy/netguard's Guard is one.
type Dialer interface {
	// DialContext opens a connection for TLS.
	DialContext(ctx context.Context, network, addr string) (net.Conn, error)
	// DialPlain opens a connection for plain HTTP.
	DialPlain(ctx context.Context, network, addr string) (net.Conn, error)
}

// Options tunes [NewUpstreams]: the options of Caddy's `transport http` that apply. The zero value is the default.
type Options struct {
	NetHTTP             bool          // send over net/http
	DialTimeout         time.Duration // name resolution and connecting; 0: 10 s
	TLSHandshakeTimeout time.Duration // 0: 10 s
	ReadBuffer          int           // of net/http, bytes per connection; 0: 4 KiB, 512 B on connections that carry GET streams
	WriteBuffer         int           // of net/http, bytes per connection; 0: 16 KiB, 512 B on connections that carry GET streams
	MaxResponseHeader   int64         // bytes of all headers of one answer; 0: 64 KiB
	KeepAlive           time.Duration // time that an idle connection is kept; 0: 90 s, negative: no keep-alive
	IdleConns           int           // idle connections in total; 0: 8192, with net/http no limit
	IdleConnsPerHost    int           // 0: 512
	MaxConnsPerHost     int           // 0: no limit
	Versions            []string      // of "1.1" and "2"; "2" needs TLS and net/http; empty: the client's versions
	TLS                 *tls.Config   // cloned; nil: Go's defaults. ServerName comes from the URL's host
}

// Transports is a [Sender] over net/http. It separates connections by scheme, because plain and TLS dials have
// different egress rules. It also separates them by purpose: connections of GET streams are many and idle, and get
// small buffers. Safe for concurrent use.
type Transports struct {
	callPlain, callTLS, streamPlain, streamTLS *http.Transport
}

// streamBuffer is the size of both buffers of a connection that carries a GET stream. Such a stream mostly waits, and
// larger events are read without the buffer.
const streamBuffer = 512

// NewTransports makes the transports of one forwarder. It fails on an unknown HTTP version.
func NewTransports(d Dialer, o Options) (*Transports, error) {
	versions, err := protocols(o.Versions)
	if err != nil {
		return nil, err
	}
	d = marking{d}
	dialTimeout := positive(o.DialTimeout, 10*time.Second)
	bounded := func(dial func(context.Context, string, string) (net.Conn, error)) func(context.Context, string, string) (net.Conn, error) {
		return func(ctx context.Context, network, addr string) (net.Conn, error) {
			// The transport's context is not the request's: a dial outlives a cancelled request, so it has its own bound.
			ctx, cancel := context.WithTimeout(ctx, dialTimeout)
			defer cancel()
			return dial(ctx, network, addr)
		}
	}
	build := func(dial func(context.Context, string, string) (net.Conn, error), readBuffer, writeBuffer int) *http.Transport {
		t := &http.Transport{
			// Proxy stays nil: the default reads HTTP_PROXY and would bypass the dialer's checks.
			Proxy:                  nil,
			DialContext:            bounded(dial),
			TLSClientConfig:        o.TLS.Clone(),
			TLSHandshakeTimeout:    positive(o.TLSHandshakeTimeout, 10*time.Second),
			DisableCompression:     true,
			DisableKeepAlives:      o.KeepAlive < 0,
			IdleConnTimeout:        positive(o.KeepAlive, 90*time.Second),
			MaxIdleConns:           o.IdleConns,
			MaxIdleConnsPerHost:    positive(o.IdleConnsPerHost, 512),
			MaxConnsPerHost:        o.MaxConnsPerHost,
			MaxResponseHeaderBytes: positive(o.MaxResponseHeader, 64<<10),
			ReadBufferSize:         positive(o.ReadBuffer, readBuffer),
			WriteBufferSize:        positive(o.WriteBuffer, writeBuffer),
		}
		p := versions
		t.Protocols = &p
		return t
	}
	return &Transports{
		callPlain:   build(d.DialPlain, 4<<10, 16<<10),
		callTLS:     build(d.DialContext, 4<<10, 16<<10),
		streamPlain: build(d.DialPlain, streamBuffer, streamBuffer),
		streamTLS:   build(d.DialContext, streamBuffer, streamBuffer),
	}, nil
}

// protocols returns the HTTP versions with these names, or all of them when there are no names.
func protocols(names []string) (http.Protocols, error) {
	var versions http.Protocols
	if len(names) == 0 {
		versions.SetHTTP1(true)
		versions.SetHTTP2(true)
	}
	for _, name := range names {
		switch name {
		case "1.1":
			versions.SetHTTP1(true)
		case "2":
			versions.SetHTTP2(true)
		default:
			return versions, fmt.Errorf("choosing HTTP versions: %q is not one of 1.1, 2", name)
		}
	}
	return versions, nil
}

// Send implements [Sender].
func (t *Transports) Send(ctx context.Context, r *http1.Request) (*http1.Answer, error) {
	return sendOver(ctx, t.RoundTrip, r)
}

// RoundTrip sends one request. A GET goes over the connections for streams.
func (t *Transports) RoundTrip(r *http.Request) (*http.Response, error) {
	stream := r.Method == http.MethodGet
	switch {
	case r.URL.Scheme == "https" && stream:
		return t.streamTLS.RoundTrip(r)
	case r.URL.Scheme == "https":
		return t.callTLS.RoundTrip(r)
	case stream:
		return t.streamPlain.RoundTrip(r)
	}
	return t.callPlain.RoundTrip(r)
}

// CloseIdleConnections closes connections without a request; connections in use close when their request ends.
func (t *Transports) CloseIdleConnections() {
	for _, each := range []*http.Transport{t.callPlain, t.callTLS, t.streamPlain, t.streamTLS} {
		each.CloseIdleConnections()
	}
}

func positive[T int | int64 | time.Duration](v, or T) T {
	if v > 0 {
		return v
	}
	return or
}
