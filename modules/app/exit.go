package app

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyevents"
	"go.uber.org/zap"

	"github.com/durward-gateway/durward/internal/mcp/streams"
)

// exitHandler is notified when a configuration is about to be stopped.
type exitHandler struct{ app *App }

// spreadOfStream is the delay that each stream adds to the exit. It spreads the reconnects of their clients to the
// other nodes over time.
const spreadOfStream = time.Millisecond

// exitBegan returns the time at which the process began to exit. A configuration that is being replaced at that time
// waits together with its successor, and not before it.
var exitBegan = sync.OnceValue(time.Now)

// Handle passes connections on to the next configuration. When the process stops, it first waits until load balancers
// have seen the answer of /readyz and use other nodes. Then it ends event streams, also those of older configurations.
// Calls have the drain period to get their answers; Caddy waits for them.
func (h exitHandler) Handle(ctx context.Context, _ caddy.Event) error {
	if !caddy.Exiting() {
		h.app.listening.HandOver(ctx)
		return nil
	}
	bounds := h.app.Streams.WithDefaults()
	if delay := time.Duration(bounds.ExitDelay) - time.Since(exitBegan()); delay > 0 {
		h.app.logger.Info("the process is about to exit: not ready any more, but serving", zap.Duration("for", delay))
		select {
		case <-time.After(delay):
		case <-ctx.Done():
		}
	}
	drain := time.Duration(bounds.Drain)
	spread := min(time.Duration(openStreams.Len())*spreadOfStream, drain/2)
	if n := openStreams.Drain(spread, rand.N[time.Duration]); n > 0 {
		h.app.logger.Info("ending event streams, the process is about to exit", zap.Int("streams", n), zap.Duration("within", spread))
	}
	time.AfterFunc(drain, func() { openStreams.End(streams.Owner{}, streams.Shutdown) })
	return nil
}

var _ caddyevents.Handler = exitHandler{}
