package app

import (
	"fmt"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/durward-gateway/durward/internal/llm/accounts"
	"github.com/durward-gateway/durward/internal/proxy/forward"
)

// modelHeaderTimeout is the longest time until a model begins its answer, unless the configuration sets another.
const modelHeaderTimeout = 5 * time.Minute

// newModelForwarder does the work of newForwarder for providers of models: accounts.WithConnectTimeout limits its
// connecting.
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
	upstreams, err := forward.NewUpstreams(accounts.TimedDialer{Dialer: a.core.Guard}, options)
	if err != nil {
		return nil, nil, fmt.Errorf("transport: %w", err)
	}
	limits.LoopID = a.core.loopID
	return forward.New(upstreams, limits), upstreams.CloseIdleConnections, nil
}
