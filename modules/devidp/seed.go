package devidp

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/durward-gateway/durward/internal/credential/directory"
	"github.com/durward-gateway/durward/storage"
)

// Seed implements app.DevelopmentIdentity: the clients of development mode are agents, and organization acme has a server `demo`
// with a policy and a smart model.
func (i *Identity) Seed(ctx context.Context, store storage.Store, configured storage.ConfiguredModels) error {
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
	return seedSmartModel(ctx, store, configured, organization.ID, now)
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
