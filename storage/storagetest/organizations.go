package storagetest

import (
	"slices"
	"testing"

	"github.com/durward-gateway/durward/storage"
)

// testRemovedOrganizations checks W25: organizations that tokens named by mistake can be removed, but none with
// anything that somebody made.
func testRemovedOrganizations(t *testing.T, b *bundle) {
	ctx := t.Context()
	claim := storage.OrganizationClaim{Issuer: issuer, Slug: "gamil", DerivedID: newID()}
	mistaken, err := b.ResolveOrganization(ctx, claim, start)
	noError(t, err)
	user := b.user(t, mistaken.ID)
	client, err := b.RegisterAgent(ctx, newAgent(mistaken.ID, "Client"), 10)
	noError(t, err)
	credential := agentCredential(client) // which somebody made, unlike the agent
	noError(t, b.CreateAgentCredential(ctx, credential))
	empty, err := b.EmptyOrganizations(ctx)
	noError(t, err)
	equal(t, len(empty), 0)
	noError(t, b.DeleteAgentCredential(ctx, mistaken.ID, client.ID, credential.ID))

	empty, err = b.EmptyOrganizations(ctx)
	noError(t, err)
	equal(t, empty, []storage.Organization{mistaken})
	_, err = b.DeleteOrganization(ctx, b.unknown)
	wantError(t, err, storage.ErrNotFound)
	_, err = b.DeleteOrganization(ctx, b.orgA)
	wantConflict(t, err, "organization")

	changed := make(chan string, 10)
	defer b.OnChange(func(organization string) { changed <- organization })()
	recorded, _ := b.audited(t, b.orgA, "organization.removed") // of the organization of the caller
	removed, err := b.DeleteOrganization(recorded, mistaken.ID)
	noError(t, err)
	equal(t, removed, mistaken)
	if events := b.chain(t, b.orgA); !slices.Contains(events, "organization.removed") {
		t.Errorf("recorded: %v", events)
	}
	for <-changed != mistaken.ID {
	}
	_, err = b.User(ctx, mistaken.ID, user)
	wantError(t, err, storage.ErrNotFound)
	all, err := b.Organizations(ctx)
	noError(t, err)
	equal(t, len(all), 2)
	_, err = b.User(ctx, b.orgA, b.userA1)
	noError(t, err)
	_, err = b.DeleteOrganization(ctx, mistaken.ID)
	wantError(t, err, storage.ErrNotFound)
	again, err := b.ResolveOrganization(ctx, claim, start)
	noError(t, err)
	equal(t, again, mistaken)
}
