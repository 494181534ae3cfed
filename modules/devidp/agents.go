package devidp

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/durward-gateway/durward/modules/devidp/idp"
	"github.com/durward-gateway/durward/storage"
)

// maxAgents is a bound that is never reached: the provider's own clients always have a place, however many others were
// seen.
const maxAgents = 1 << 30

// seedAgents registers the provider's own clients as internal agents of every organization of its users.
func (i *Identity) seedAgents(ctx context.Context, store storage.Store) error {
	now := time.Now()
	seeded := make(map[string]bool)
	for _, user := range idp.Users() {
		if seeded[user.Organization] {
			continue
		}
		seeded[user.Organization] = true
		organization, err := store.ResolveOrganization(ctx, storage.OrganizationClaim{
			Issuer: ownerIssuer, ID: i.surroundings.provider.OrganizationID(user.Organization), Slug: user.Organization,
		}, now)
		if err != nil {
			return fmt.Errorf("making the organization %s: %w", user.Organization, err)
		}
		for _, client := range []struct{ id, name, description string }{
			{idp.ClientAgent, "Development agent", "The client that stands for an agent in development mode."},
			{idp.ClientConsole, "Development console", "The client with which users of development mode decide on held calls."},
		} {
			if err := seedAgent(ctx, store, organization.ID, now, storage.Application{
				ExternalID: client.id, Name: client.name, Description: client.description,
			}); err != nil {
				return fmt.Errorf("registering the agent %s: %w", client.id, err)
			}
		}
	}
	return nil
}

func seedAgent(ctx context.Context, store storage.Store, organization string, now time.Time, a storage.Application) error {
	agentID, err := uuid.NewV7()
	if err != nil {
		return err
	}
	applicationID, err := uuid.NewV7()
	if err != nil {
		return err
	}
	a.ID, a.OrganizationID, a.Issuer, a.Public, a.CreatedAt, a.UpdatedAt = applicationID.String(), organization, ownerIssuer, true, now, now
	_, err = store.RegisterAgent(ctx, storage.Agent{
		ID: agentID.String(), OrganizationID: organization, Application: a, WriteConfirmationsRequired: true, CreatedAt: now, UpdatedAt: now,
	}, maxAgents)
	return err
}
