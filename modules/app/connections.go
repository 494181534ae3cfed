package app

import (
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

// EndServer ends the streams of a server that was deleted.
func (c *Core) EndServer(organization, id string) {
	c.Streams.End(streams.Owner{Organization: organization, Server: id}, streams.ServerDeleted)
}
