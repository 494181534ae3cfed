package devidp

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/durward-gateway/durward/internal/identity/authserver"
	"github.com/durward-gateway/durward/modules/devidp/clients"
	"github.com/durward-gateway/durward/modules/devidp/idp"
	"github.com/durward-gateway/durward/storage"
)

// maxAgents is a bound that is never reached: the clients of development mode always have a place, however many others
// were seen.
const maxAgents = 1 << 30

// seedAgents registers the clients that log users in as internal agents of every organization of users, and the service
// as one of the demo organization.
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
		for _, client := range clients.Users() {
			id, err := uuid.NewV7()
			if err != nil {
				return err
			}
			if _, err := seedAgent(ctx, store, organization.ID, id.String(), client, now); err != nil {
				return err
			}
		}
		if user.Organization == demoOrganization {
			if err := seedService(ctx, store, organization.ID, now); err != nil {
				return err
			}
		}
	}
	return nil
}

// seedAgent registers a client as an agent, unless it is one, and returns the agent.
func seedAgent(ctx context.Context, store storage.Store, organization, id string, client clients.Client, now time.Time) (storage.Agent, error) {
	applicationID, err := uuid.NewV7()
	if err != nil {
		return storage.Agent{}, err
	}
	agent, err := store.RegisterAgent(ctx, storage.Agent{
		ID: id, OrganizationID: organization, CreatedAt: now, UpdatedAt: now,
		Application: storage.Application{
			ID: applicationID.String(), OrganizationID: organization, Issuer: ownerIssuer, ExternalID: client.ID, Name: client.Name,
			Description: client.Description, Public: client.ID != clients.Service, CreatedAt: now, UpdatedAt: now,
		},
	}, maxAgents)
	if err != nil {
		return storage.Agent{}, fmt.Errorf("registering the agent %s: %w", client.ID, err)
	}
	return agent, nil
}

// seedService registers the service, and makes its credential at the first start alone: one that was deleted does not come
// back. A service that a former version registered under another id stays without one.
func seedService(ctx context.Context, store storage.Store, organization string, now time.Time) error {
	_, err := store.Agent(ctx, organization, clients.ServiceID)
	if !errors.Is(err, storage.ErrNotFound) {
		return err
	}
	agent, err := seedAgent(ctx, store, organization, clients.ServiceID, clients.Machine(), now)
	if err != nil || agent.ID != clients.ServiceID {
		return err
	}
	id, err := uuid.NewV7()
	if err != nil {
		return err
	}
	err = store.CreateAgentCredential(ctx, storage.AgentCredential{
		ID: id.String(), OrganizationID: organization, AgentID: agent.ID, Name: "Published secret",
		SecretHash: []byte(authserver.HashSecret(clients.ServiceSecret)), CreatedAt: now,
	})
	if err != nil {
		return fmt.Errorf("making the credential of the agent %s: %w", clients.Service, err)
	}
	return nil
}
