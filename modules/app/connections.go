package app

import (
	"context"

	"github.com/durward-gateway/durward/internal/streams"
	"github.com/durward-gateway/durward/storage"
)

// ConnectAddress is the page on which users connect their account at a server (`connect_url`).
func (c *Core) ConnectAddress(server *storage.Server) string {
	return c.PublicURL + ConnectPrefix + server.Slug
}

// EndConnection ends the streams that run on a connection that was taken away.
func (c *Core) EndConnection(key storage.ConnectionKey) {
	c.Streams.End(streams.Owner{Organization: key.OrganizationID, User: key.UserID, Server: key.ServerID}, streams.Disconnected)
	c.Metrics.Connections.WithLabelValues("disconnected").Inc()
}

// Disconnect forgets a user's own credential for a server, and ends what runs on it. storage.ErrNotFound when there is none.
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
