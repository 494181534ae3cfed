package devidp

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/durward-gateway/durward/internal/credential/directory"
	"github.com/durward-gateway/durward/internal/llm/metering"
	"github.com/durward-gateway/durward/modules/app"
	"github.com/durward-gateway/durward/modules/devidp/demodata"
	"github.com/durward-gateway/durward/storage"
)

// Seed implements app.DevelopmentIdentity: the clients of development mode are agents, and organization acme has a server `demo`
// with a policy and a smart model. With DemoData it has a month of made traffic too.
func (i *Identity) Seed(ctx context.Context, s app.Seeding) error {
	store := s.Store
	if err := i.seedAgents(ctx, store); err != nil {
		return err
	}
	now := time.Now()
	organization, err := store.ResolveOrganization(ctx, storage.OrganizationClaim{
		Issuer: ownerIssuer, ID: i.surroundings.provider.OrganizationID(demoOrganization), Slug: demoOrganization,
	}, now)
	if err != nil {
		return fmt.Errorf("making the organization %s: %w", demoOrganization, err)
	}
	server, err := seedServer(ctx, store, organization.ID, now)
	if err != nil {
		return err
	}
	if err := seedPolicy(ctx, store, organization.ID, server.ID, now); err != nil {
		return err
	}
	if err := seedSmartModel(ctx, store, s.Configured, organization.ID, now); err != nil || !i.DemoData {
		return err
	}
	all, err := metering.Shipped().With(prices)
	if err != nil {
		return err
	}
	return demodata.Fill(ctx, demodata.Place{
		At: s.At, Keyring: s.Keyring, Broker: s.Broker, Configured: s.Configured, Prices: all, Organization: organization.ID, Issuer: ownerIssuer,
		UserID: i.surroundings.provider.UserID, URL: i.surroundings.demoURL + "/mcp", Now: now,
	})
}

// seedServer returns the organization's demo server, which it makes when there is none.
func seedServer(ctx context.Context, store storage.Store, organization string, now time.Time) (storage.Server, error) {
	server, err := store.ServerBySlug(ctx, organization, demoSlug)
	if !errors.Is(err, storage.ErrNotFound) {
		return server, err
	}
	id, err := uuid.NewV7()
	if err != nil {
		return storage.Server{}, err
	}
	err = store.CreateServer(ctx, storage.Server{
		ID: id.String(), OrganizationID: organization, Name: "Demo", Slug: demoSlug, DirectoryID: directory.ReadOnlyID(storage.SourceConfig, demoSlug),
		Status: storage.ServerActive, CreatedAt: now, UpdatedAt: now,
	})
	if err != nil && !errors.Is(err, storage.ErrConflict) {
		return storage.Server{}, fmt.Errorf("making the demo server: %w", err)
	}
	return store.ServerBySlug(ctx, organization, demoSlug)
}
