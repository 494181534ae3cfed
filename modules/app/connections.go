package app

import (
	"context"

	"github.com/durward-gateway/durward/internal/mcp/streams"
	"github.com/durward-gateway/durward/modules/app/paths"
	"github.com/durward-gateway/durward/storage"
)

// ConnectAddress returns the address of the page on which users connect their account at a server (`connect_url`).
func (c *Core) ConnectAddress(server *storage.Server) string {
	return c.PublicURL + paths.ConnectPrefix + server.Slug
}

// EndConnection ends the streams of a connection that was removed.
func (c *Core) EndConnection(key storage.ConnectionKey) {
	c.Streams.End(streams.Owner{Organization: key.OrganizationID, User: key.UserID, Server: key.ServerID}, streams.Disconnected)
	c.Metrics.Connections.WithLabelValues("disconnected").Inc()
}

// Disconnect deletes a user's own credential for a server, and ends the streams that use it. The error is
// storage.ErrNotFound when there is none.
func (c *Core) Disconnect(ctx context.Context, key storage.ConnectionKey) error {
	if err := c.Broker.Disconnect(ctx, key); err != nil {
		return err
	}
	c.EndConnection(key)
	return nil
}

// EndServer ends the streams of a server that was deleted.
func (c *Core) EndServer(organization, id string) {
	c.Streams.End(streams.Owner{Organization: organization, Server: id}, streams.ServerDeleted)
}
