package app

import (
	"context"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyevents"
	"go.uber.org/zap"
)

// exitHandler hears that a configuration is about to be stopped.
type exitHandler struct{ app *App }

// Handle ends event streams when it is the process that stops, and not just a configuration.
func (h exitHandler) Handle(context.Context, caddy.Event) error {
	if !caddy.Exiting() {
		return nil
	}
	if n := openStreams.Drain(); n > 0 {
		h.app.logger.Info("ending event streams, the process is about to exit", zap.Int("streams", n))
	}
	return nil
}

var _ caddyevents.Handler = exitHandler{}
