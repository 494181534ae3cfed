// Package connections removes users' connections, and ends the streams that use them.
package connections

import (
	"context"

	"github.com/durward-gateway/durward/internal/credential/connection"
	"github.com/durward-gateway/durward/internal/mcp/streams"
	"github.com/durward-gateway/durward/modules/app/metrics"
	"github.com/durward-gateway/durward/storage"
)

// Connections removes connections of a configuration's broker.
type Connections struct {
	broker  *connection.Broker
	streams *streams.Registry
	metrics *metrics.Traffic
}

// New makes the service.
func New(broker *connection.Broker, open *streams.Registry, counted *metrics.Traffic) *Connections {
	return &Connections{broker: broker, streams: open, metrics: counted}
}

// Disconnect deletes a user's own credential for a server, and ends the streams that use it. The error is
// storage.ErrNotFound when there is none.
func (c *Connections) Disconnect(ctx context.Context, key storage.ConnectionKey) error {
	if err := c.broker.Disconnect(ctx, key); err != nil {
		return err
	}
	c.removed(key)
	return nil
}

// Undo removes the connection that was just made, see [connection.Broker.Undo], and ends the streams that use it.
func (c *Connections) Undo(ctx context.Context, token string) error {
	key, err := c.broker.Undo(ctx, token)
	if err != nil {
		return err
	}
	c.removed(key)
	return nil
}

func (c *Connections) removed(key storage.ConnectionKey) {
	c.streams.End(streams.Owner{Organization: key.OrganizationID, User: key.UserID, Server: key.ServerID}, streams.Disconnected)
	c.metrics.Connections.WithLabelValues("disconnected").Inc()
}
