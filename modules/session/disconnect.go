package session

import (
	_ "embed" // the page
	"errors"
	"net/http"

	"github.com/durward-gateway/durward/internal/api/visible"
	"github.com/durward-gateway/durward/internal/api/webpage"
	"github.com/durward-gateway/durward/modules/app/paths"
	"github.com/durward-gateway/durward/storage"
)

var (
	//go:embed disconnect.html
	disconnectText string
	disconnectPage = webpage.MustParse(disconnectText)
)

// askToDisconnect asks whether the account is to be disconnected. Nothing is changed by opening an address.
func (c *connect) askToDisconnect() {
	address := paths.ConnectPrefix + c.server.Slug
	c.visit.show(disconnectPage, http.StatusOK, "Disconnect your account at "+visible.Text(c.server.Name)+"?", struct{ Text, Address, Form, Keep string }{
		"The gateway forgets your account's credential, and asks the provider to forget it too. What agents are doing with it ends, and they cannot use this server for you until you connect it again.",
		address, c.core.Logins.Browsers.FormToken(c.user.Session, address), paths.Connect,
	})
}

// disconnect disconnects the account.
func (c *connect) disconnect() {
	name := visible.Text(c.server.Name)
	links := []link{{paths.Connect, "Your MCP servers"}, {paths.ConnectPrefix + c.server.Slug, "Connect again"}}
	ctx, _, err := c.core.Audit.With(c.r.Context(), c.key.OrganizationID, storage.AuditEntry{ // as in the API: the store's own record takes the user from it
		Kind: storage.AuditCredential, Event: "connection.delete", UserID: c.key.UserID, Client: c.user.Client, ServerID: c.key.ServerID, Server: c.server.Slug, Outcome: "ok",
	})
	if err == nil {
		err = c.core.Connections.Disconnect(ctx, c.key)
	}
	switch {
	case err == nil:
		c.sayLink(http.StatusOK, name+" is disconnected", "The gateway no longer holds your account's credential.", links...)
	case errors.Is(err, storage.ErrNotFound):
		c.sayLink(http.StatusNotFound, "Nothing was disconnected", "No account of yours is connected at "+name+".", links...)
	default:
		c.core.LogFailure(c.logger, "disconnecting", err)
		c.unavailable()
	}
}
