package commands

import (
	"context"
	"errors"
	"time"

	"github.com/durward-gateway/durward/internal/doctor"
	"github.com/durward-gateway/durward/internal/visible"
	"github.com/durward-gateway/durward/storage"
)

// serverStore reads servers.
type serverStore interface {
	Organizations(ctx context.Context) ([]storage.Organization, error)
	Servers(ctx context.Context, f storage.ServerFilter) (storage.Page[storage.ServerView], error)
}

// recordStore reads what the examinations of records need.
type recordStore interface {
	policyStore
	serverStore
	organizationStore
}

// examineRecords looks for records that cannot work as the gateway is configured.
func examineRecords(ctx context.Context, config *gatewayConfig, store recordStore, r *doctor.Report) error {
	return errors.Join(examineConnections(ctx, config, store, r), examineApprovals(ctx, config, store, r), examineOrganizations(ctx, config, store, r))
}

// hasPages reports whether browsers can log in.
func (c *gatewayConfig) hasPages() bool {
	for _, identity := range c.Identities {
		if identity.Kind == "dev" || identity.LoginClient != "" {
			return true
		}
	}
	return false
}

// examineConnections looks for servers that need an account of each user where nobody has a page to connect one on.
func examineConnections(ctx context.Context, config *gatewayConfig, store serverStore, r *doctor.Report) error {
	if config.hasPages() {
		return nil
	}
	organizations, err := store.Organizations(ctx)
	if err != nil {
		return err
	}
	var wanting []string
	for _, o := range organizations {
		for page := 1; ; page++ {
			const limit = 100
			found, err := store.Servers(ctx, storage.ServerFilter{OrganizationID: o.ID, Now: time.Now(), Page: storage.PageRequest{Number: page, Limit: limit}})
			if err != nil {
				return err
			}
			for i := range found.Items {
				if entry := &found.Items[i].Entry; entry.RequiresAuth && entry.Provider != storage.ProviderNone {
					wanting = append(wanting, visible.Text(found.Items[i].Name))
				}
			}
			if page*limit >= found.Total {
				break
			}
		}
	}
	r.Add("connections", doctor.Connections(wanting)...)
	return nil
}
