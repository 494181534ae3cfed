package devidp

import (
	"github.com/durward-gateway/durward/modules/app"
	"github.com/durward-gateway/durward/modules/app/settings"
	"github.com/durward-gateway/durward/modules/devidp/clients"
)

// Clients implements app.DevelopmentIdentity.
func (i *Identity) Clients() app.DevelopmentClients {
	made := app.DevelopmentClients{Approval: []string{clients.Console}}
	for _, c := range clients.Users() {
		made.Known = append(made.Known, settings.OAuthClient{ID: c.ID, Name: c.Name, RedirectURIs: []string{clients.RedirectURI}})
	}
	return made
}
