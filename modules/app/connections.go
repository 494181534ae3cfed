package app

import (
	"context"
	"errors"

	"github.com/durward-gateway/durward/internal/broker"
	"github.com/durward-gateway/durward/internal/cache"
	"github.com/durward-gateway/durward/internal/streams"
	"github.com/durward-gateway/durward/storage"
)

// ConnectAddress is the API's address that begins a connection to a server.
func (c *Core) ConnectAddress(server *storage.Server) string {
	return c.PublicURL + "/api/servers/" + server.ID + "/connect"
}

// ConnectURL is where the user of a lost connection makes it anew: the provider's login, when an attempt can be begun. An
// agent that calls again and again is told the same attempt.
func (c *Core) ConnectURL(ctx context.Context, key storage.ConnectionKey, server *storage.Server) string {
	address, err := c.resources.attempts.Get(ctx, cache.NewKey(key.OrganizationID, "attempt", c.PublicURL, key.UserID, key.ServerID),
		func(ctx context.Context) (string, error) {
			who := broker.Who{OrganizationID: key.OrganizationID, UserID: key.UserID}
			result, err := c.Broker.Connect(ctx, who, *server, broker.ConnectRequest{})
			if err == nil && result.AuthURL == nil {
				err = errors.New("the server is connected without a provider's login")
			}
			if err != nil {
				return "", err
			}
			return *result.AuthURL, nil
		})
	if err != nil {
		return c.ConnectAddress(server)
	}
	return address
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
