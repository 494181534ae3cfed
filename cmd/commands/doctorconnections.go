package commands

import (
	"context"
	"time"

	"github.com/durward-gateway/durward/internal/api/visible"
	"github.com/durward-gateway/durward/internal/ops/doctor"
	"github.com/durward-gateway/durward/storage"
)

// serverStore reads servers.
type serverStore interface {
	Organizations(ctx context.Context) ([]storage.Organization, error)
	Servers(ctx context.Context, f storage.ServerFilter) (storage.Page[storage.ServerView], error)
}

// examineConnections looks for servers that need an account of each user where no page exists on which to connect
// one.
func examineConnections(ctx context.Context, config *gatewayConfig, store serverStore, r *doctor.Report) error {
	if config.hasPages() {
		return nil
	}
	var wanting []string
	err := everywhere(ctx, store.Organizations, func(organization string, page storage.PageRequest) (storage.Page[storage.ServerView], error) {
		return store.Servers(ctx, storage.ServerFilter{OrganizationID: organization, Now: time.Now(), Page: page})
	}, func(s *storage.ServerView) {
		if s.Entry.RequiresAuth && s.Entry.Provider != storage.ProviderNone {
			wanting = append(wanting, visible.Text(s.Name))
		}
	})
	if err != nil {
		return err
	}
	r.Add("connections", doctor.Connections(wanting)...)
	return nil
}
