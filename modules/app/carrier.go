package app

import (
	"crypto/x509"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"go.uber.org/zap"

	"github.com/durward-gateway/durward/internal/llm/accounts"
	"github.com/durward-gateway/durward/internal/proxy/forward"
	"github.com/durward-gateway/durward/modules/app/outbound"
	"github.com/durward-gateway/durward/storage"
)

// Carrier holds the common part of handlers that carry requests to upstreams.
type Carrier struct {
	// How connections to upstreams are made, in the words of Caddy's `transport http`. Default: the gateway's own HTTP/1.1
	// client, with 5m for an answer to begin on `/mcp` and of models, and 30s on `/sse`.
	Transport *outbound.Transport `json:"transport,omitempty"`

	// Logger and Forwarder are set once the handler is provisioned.
	Logger    *zap.Logger        `json:"-"`
	Forwarder *forward.Forwarder `json:"-"`

	closeIdle func()
	trusting  *outbound.Trusting // nil: the handler takes no entry's authorities
}

// Carry is called by a handler's Provision: it finds the app and makes the forwarder. headerTimeout is the longest time
// until an upstream begins its answer, unless the transport sets another.
func (c *Carrier) Carry(ctx caddy.Context, headerTimeout time.Duration) error {
	c.Logger = ctx.Logger()
	a, err := Attach(ctx)
	if err != nil {
		return err
	}
	options := outbound.Options{Dialer: a.core.Guard, HeaderTimeout: headerTimeout, Idle: time.Duration(a.core.StreamBounds.Idle), LoopID: a.core.Names.LoopID}
	c.Forwarder, c.closeIdle, err = outbound.NewForwarder(ctx, c.Transport, options)
	c.trusting = &outbound.Trusting{Build: func(certificates []*x509.Certificate) (*forward.Forwarder, func(), error) {
		trusting := options
		trusting.Trusted = certificates
		return outbound.NewForwarder(ctx, c.Transport, trusting)
	}}
	return err
}

// ForwarderOf returns the forwarder for the upstream of a directory entry.
func (c *Carrier) ForwarderOf(e *storage.DirectoryEntry) (*forward.Forwarder, error) {
	if e.Options.TrustedCA == "" {
		return c.Forwarder, nil
	}
	return c.trusting.Of(e.Options.TrustedCA)
}

// modelHeaderTimeout is the longest time until a model begins its answer, unless the configuration sets another.
const modelHeaderTimeout = 5 * time.Minute

// CarryModels does the work of Carry for calls to models, and returns the app.
func (c *Carrier) CarryModels(ctx caddy.Context) (*App, error) {
	c.Logger = ctx.Logger()
	a, err := Attach(ctx)
	if err != nil {
		return nil, err
	}
	c.Forwarder, c.closeIdle, err = outbound.NewForwarder(ctx, c.Transport, outbound.Options{
		// The time for connecting is that of the account.
		Dialer: accounts.TimedDialer{Dialer: a.core.Guard}, HeaderTimeout: modelHeaderTimeout, Idle: time.Duration(a.core.StreamBounds.Idle), LoopID: a.core.Names.LoopID,
	})
	return a, err
}

// Cleanup closes idle connections; those in use close with their requests.
func (c *Carrier) Cleanup() error {
	if c.closeIdle != nil {
		c.closeIdle()
	}
	c.trusting.Close()
	return nil
}

// UnmarshalCaddyfile sets up the handler from Caddyfile tokens. Syntax:
//
//	<directive> {
//		transport [net_http] {
//			<words of Caddy's transport http>
//		}
//	}
func (c *Carrier) UnmarshalCaddyfile(d *caddyfile.Dispenser) error {
	var err error
	c.Transport, err = outbound.UnmarshalTransport(d)
	return err
}
