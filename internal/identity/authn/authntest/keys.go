package authntest

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/durward-gateway/durward/internal/identity/apikey"
	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/storage"
)

// Keys makes API keys of a user, Alice of OrganizationID, in a store.
type Keys struct {
	Store storage.Store
	// Digester makes the digests by which the store knows the keys.
	Digester *apikey.Digester
	User     storage.User

	t   testing.TB
	now func() time.Time
}

// NewKeys makes the user.
func NewKeys(t testing.TB, store storage.Store, now func() time.Time) *Keys {
	t.Helper()
	k := &Keys{Store: store, t: t, now: now}
	master, err := seal.ParseMasterKey(seal.NewMasterKey())
	if err != nil {
		t.Fatal(err)
	}
	ring, err := seal.OpenKeyring(t.Context(), []seal.MasterKey{master}, store, now)
	if err != nil {
		t.Fatal(err)
	}
	k.Digester = apikey.NewDigester(ring)
	if _, err := store.ResolveOrganization(t.Context(), storage.OrganizationClaim{Issuer: IssuerID, ID: OrganizationID}, now()); err != nil {
		t.Fatal(err)
	}
	k.User, err = store.ResolveUser(t.Context(), alice(Lists{}, time.Time{}), now())
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// Make stores a key with changes.
func (k *Keys) Make(change func(*storage.APIKey)) (raw, id string) {
	k.t.Helper()
	secret := apikey.New()
	stored := storage.APIKey{
		ID: uuid.NewString(), OrganizationID: OrganizationID, Name: "k", Prefix: apikey.Prefix(secret), HMAC: k.Digester.Digest(secret),
		Scopes: []string{"mcp"}, UserID: k.User.ID, CreatedBy: k.User.ID, MadeWith: "console", CreatedAt: k.now(),
	}
	if change != nil {
		change(&stored)
	}
	if err := k.Store.CreateAPIKey(k.t.Context(), stored); err != nil {
		k.t.Fatal(err)
	}
	return secret.Reveal(), stored.ID
}

// Lists holds the lists that a token names; nil is a list that it does not name.
type Lists struct{ Roles, Groups, Teams, Projects []string }

// Say makes a token of the user with these lists that was issued some time ago.
func (k *Keys) Say(l Lists, ago time.Duration) {
	k.t.Helper()
	if _, err := k.Store.ResolveUser(k.t.Context(), alice(l, k.now().Add(-ago)), k.now()); err != nil {
		k.t.Fatal(err)
	}
}

func alice(l Lists, issued time.Time) storage.UserClaim {
	return storage.UserClaim{
		OrganizationID: OrganizationID, Issuer: IssuerID, Subject: "alice", DerivedID: uuid.NewString(), Kind: storage.UserPerson,
		Name: "Alice", Email: "alice@example.test",
		Roles: l.Roles, Groups: l.Groups, Teams: l.Teams, Projects: l.Projects, IssuedAt: issued,
	}
}
