package app

import (
	"context"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyevents"
	"go.uber.org/zap"

	"github.com/durward-gateway/durward/internal/streams"
)

// exitHandler hears that a configuration is about to be stopped.
type exitHandler struct{ app *App }

// Handle passes connections on to the configuration that follows. When it is the process that stops, it ends event
// streams, those of older configurations too. Calls have the drain period to get their answers; Caddy waits for them.
func (h exitHandler) Handle(context.Context, caddy.Event) error {
	if !caddy.Exiting() {
		h.app.listening.handOver()
		return nil
	}
	if n := openStreams.Drain(); n > 0 {
		h.app.logger.Info("ending event streams, the process is about to exit", zap.Int("streams", n))
	}
	time.AfterFunc(time.Duration(h.app.Streams.withDefaults().Drain), func() { openStreams.End(streams.Owner{}, streams.Shutdown) })
	return nil
}

var _ caddyevents.Handler = exitHandler{}
