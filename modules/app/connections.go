package app

import (
	"fmt"
	"slices"
	"time"

	"github.com/durward-gateway/durward/internal/credential/connection"
	"github.com/durward-gateway/durward/internal/credential/oauth"
	"github.com/durward-gateway/durward/modules/app/paths"
	"github.com/durward-gateway/durward/storage"
)

// ConnectAddress returns the address of the page on which users connect their account at a server (`connect_url`).
func (c *Core) ConnectAddress(server *storage.Server) string {
	return c.PublicURL + paths.ConnectPrefix + server.Slug
}

// clientName is the gateway's name towards authorization servers.
const clientName = "durward gateway"

// newBroker makes the broker of a configuration.
func (a *App) newBroker(core *Core) (*connection.Broker, error) {
	config := connection.Config{
		Store: core.Store, Keyring: core.Keyring, OAuth: oauth.New(core.Guard, time.Now), Memory: a.resources.connections,
		CheckURL: core.Guard.CheckURL, PublicURL: core.PublicURL, ReturnURLs: a.returnURLs(core.PublicURL),
		LoopbackReturnURLs: a.development() && len(a.ReturnURLs) == 0, ClientName: clientName, Now: time.Now, Log: core.Log,
		Count: func(e connection.Event) { core.Metrics.Connections.WithLabelValues(string(e)).Inc() },
	}
	// Authorization servers fetch the document: none could fetch it from a developer's machine.
	if !a.development() {
		config.ClientMetadataURL = core.PublicURL + paths.ClientMetadata
	}
	b, err := connection.New(config)
	if err != nil {
		return nil, fmt.Errorf("making the broker: %w", err)
	}
	b.KeepRevoking()
	return b, nil
}

// returnURLs returns the addresses to which browsers may be sent after connecting; development mode adds loopback
// addresses.
func (a *App) returnURLs(public string) []string {
	if len(a.ReturnURLs) > 0 {
		return append(slices.Clone(a.ReturnURLs), public+paths.Authorize) // the login of a client goes on there
	}
	return []string{public}
}
