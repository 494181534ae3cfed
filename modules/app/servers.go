package app

import (
	"context"
	"time"

	"github.com/durward-gateway/durward/internal/mcp/pinning"
	"github.com/durward-gateway/durward/storage"
)

// noteTimeout is the longest time for writing a note about a server.
const noteTimeout = 30 * time.Second

// bindServers makes the parts that know servers, from the core's other parts.
func (c *Core) bindServers(pins *PinRules) {
	r := c.resources
	c.Pins = pinning.New(pinning.Options{
		Memory: r.pins, Store: r.store, Hold: r.hold, Enforce: pins != nil && pins.Enforce, Log: c.Log, Now: time.Now,
		Record: func(ctx context.Context, organization string, e storage.AuditEntry) error {
			return c.Audit.Event(ctx, organization, e)
		},
	})
}
