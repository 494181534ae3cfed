package app

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/durward-gateway/durward/internal/proxy/forward"
)

// modelHeaderTimeout is the longest time until a model begins its answer, unless the configuration sets another.
const modelHeaderTimeout = 5 * time.Minute

// newModelForwarder does the work of newForwarder for providers of models: WithConnectTimeout limits its connecting.
func (a *App) newModelForwarder(ctx caddy.Context, transport *Transport) (*forward.Forwarder, func(), error) {
	options, limits, err := transport.options(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("transport: %w", err)
	}
	if limits.HeaderTimeout == 0 {
		limits.HeaderTimeout = modelHeaderTimeout
	}
	if limits.Idle == 0 {
		limits.Idle = time.Duration(a.core.StreamBounds.Idle)
	}
	upstreams, err := forward.NewUpstreams(timedDialer{a.core.Guard}, options)
	if err != nil {
		return nil, nil, fmt.Errorf("transport: %w", err)
	}
	limits.LoopID = a.core.loopID
	return forward.New(upstreams, limits), upstreams.CloseIdleConnections, nil
}

type connectTimeoutKey struct{}

// WithConnectTimeout limits the time of each connection that is made under ctx. It can only shorten the dialer's own
// limit; 0 leaves that.
func WithConnectTimeout(ctx context.Context, d time.Duration) context.Context {
	if d <= 0 {
		return ctx
	}
	return context.WithValue(ctx, connectTimeoutKey{}, d)
}

// timedDialer obeys WithConnectTimeout.
type timedDialer struct{ Guard }

func (d timedDialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	ctx, cancel := timed(ctx)
	defer cancel()
	return d.Guard.DialContext(ctx, network, address)
}

func (d timedDialer) DialPlain(ctx context.Context, network, address string) (net.Conn, error) {
	ctx, cancel := timed(ctx)
	defer cancel()
	return d.Guard.DialPlain(ctx, network, address)
}

func timed(ctx context.Context) (context.Context, context.CancelFunc) {
	if d, ok := ctx.Value(connectTimeoutKey{}).(time.Duration); ok {
		return context.WithTimeout(ctx, d)
	}
	return ctx, func() {}
}
