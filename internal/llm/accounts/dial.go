package accounts

import (
	"context"
	"net"
	"time"

	"github.com/durward-gateway/durward/internal/proxy/forward"
)

type connectTimeoutKey struct{}

// WithConnectTimeout limits the time of each connection that a TimedDialer makes under ctx. It can only shorten the
// dialer's own limit; 0 leaves that.
func WithConnectTimeout(ctx context.Context, d time.Duration) context.Context {
	if d <= 0 {
		return ctx
	}
	return context.WithValue(ctx, connectTimeoutKey{}, d)
}

// TimedDialer obeys WithConnectTimeout.
type TimedDialer struct{ forward.Dialer }

// DialContext opens a connection for TLS.
func (d TimedDialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	ctx, cancel := timed(ctx)
	defer cancel()
	return d.Dialer.DialContext(ctx, network, address)
}

// DialPlain opens a connection for plain HTTP.
func (d TimedDialer) DialPlain(ctx context.Context, network, address string) (net.Conn, error) {
	ctx, cancel := timed(ctx)
	defer cancel()
	return d.Dialer.DialPlain(ctx, network, address)
}

func timed(ctx context.Context) (context.Context, context.CancelFunc) {
	if d, ok := ctx.Value(connectTimeoutKey{}).(time.Duration); ok {
		return context.WithTimeout(ctx, d)
	}
	return ctx, func() {}
}
