// Package outbound makes what handlers send requests to upstreams with: forwarders over the transport that the
// configuration describes, also for upstreams with certificate authorities of their own.
package outbound

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/durward-gateway/durward/internal/proxy/forward"
)

// Options holds the facts that a forwarder needs besides the transport.
type Options struct {
	// Dialer makes the connections. It refuses addresses that egress does not allow.
	Dialer forward.Dialer
	// HeaderTimeout is the longest time until an answer begins, and Idle is the longest silence of an answer that has begun.
	// They apply unless the transport sets others.
	HeaderTimeout, Idle time.Duration
	// LoopID is the gateway's name in CDN-Loop (RFC 8586).
	LoopID string
	// Trusted holds certificate authorities in addition to the usual ones.
	Trusted []*x509.Certificate
}

// NewForwarder makes the forwarder of a handler. t may be nil. The returned function closes idle connections.
func NewForwarder(ctx caddy.Context, t *Transport, o Options) (*forward.Forwarder, func(), error) {
	options, limits, err := t.options(ctx)
	if err == nil && o.Trusted != nil {
		options.TLS, err = trusting(options.TLS, o.Trusted)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("transport: %w", err)
	}
	if limits.HeaderTimeout == 0 {
		limits.HeaderTimeout = o.HeaderTimeout
	}
	if limits.Idle == 0 {
		limits.Idle = o.Idle
	}
	upstreams, err := forward.NewUpstreams(o.Dialer, options)
	if err != nil {
		return nil, nil, fmt.Errorf("transport: %w", err)
	}
	limits.LoopID = o.LoopID
	return forward.New(upstreams, limits), upstreams.CloseIdleConnections, nil
}

// trusting returns a TLS configuration that trusts more authorities. base may be nil.
func trusting(base *tls.Config, trusted []*x509.Certificate) (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if base != nil {
		config = base.Clone()
	}
	if config.RootCAs != nil {
		config.RootCAs = config.RootCAs.Clone()
	} else {
		roots, err := x509.SystemCertPool()
		if err != nil {
			return nil, err
		}
		config.RootCAs = roots
	}
	for _, c := range trusted {
		config.RootCAs.AddCert(c)
	}
	return config, nil
}
