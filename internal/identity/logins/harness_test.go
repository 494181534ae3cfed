package logins

import (
	"context"
	"errors"
	"net/url"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/durward-gateway/durward/internal/identity/authserver"
	"github.com/durward-gateway/durward/internal/identity/token"
	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/storage"
	"github.com/durward-gateway/durward/storage/sqlite/sqlitetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	issuer    = "https://gateway.test"
	resource  = issuer + "/mcp/notes"
	redirect  = "http://127.0.0.1:4711/back"
	verifier  = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
	challenge = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM" // RFC 7636 appendix B
)

// node is one of several that share a store and a clock.
type node struct {
	*Server
	clock *clock
	user  storage.User
}

type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) time() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) forward(by time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(by)
}

// newNodes makes nodes on one store with a user. renew is Options.Renew.
func newNodes(t *testing.T, n int, renew func(context.Context, storage.Login, seal.Secret) (Renewal, error)) []*node {
	t.Helper()
	store := sqlitetest.Open(t)
	c := &clock{now: time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)}
	organization, err := store.ResolveOrganization(t.Context(), storage.OrganizationClaim{Issuer: "https://id.test", ID: "01900000-0000-7000-8000-000000000001"}, c.now)
	if err != nil {
		t.Fatal(err)
	}
	user, err := store.ResolveUser(t.Context(), storage.UserClaim{OrganizationID: organization.ID, Issuer: "https://id.test", Subject: "alice", DerivedID: "01900000-0000-7000-8000-000000000002", Kind: storage.UserPerson}, c.now)
	if err != nil {
		t.Fatal(err)
	}
	master, err := seal.ParseMasterKey(seal.NewMasterKey())
	if err != nil {
		t.Fatal(err)
	}
	ring, err := seal.OpenKeyring(t.Context(), []seal.MasterKey{master}, store, c.time)
	if err != nil {
		t.Fatal(err)
	}
	var all []*node
	for range n {
		all = append(all, &node{New(Options{
			Store: store, Vault: ring, MACs: ring.MAC("login"), Keys: NewSigningKeys(store, ring, c.time), Issuer: issuer, TokenEndpoint: issuer + "/oauth/token", Renew: renew, Now: c.time,
			Clients: []authserver.Client{{ID: "editor", Name: "An editor", RedirectURIs: []string{redirect}, GrantTypes: []string{authserver.GrantCode, authserver.GrantRefresh}}},
		}), c, user})
	}
	return all
}

func newNode(t *testing.T) *node {
	t.Helper()
	return newNodes(t, 1, nil)[0]
}

// client returns a client of the configuration.
func (n *node) client(t *testing.T, id string) *authserver.Client {
	t.Helper()
	c, err := n.Client(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// begin makes a login of the node's user with the editor, and returns its code. change may change it before.
func (n *node) begin(t *testing.T, change func(*Draft, *Agreement)) string {
	t.Helper()
	d := Draft{
		OrganizationID: n.user.OrganizationID, UserID: n.user.ID, Issuer: "https://id.test", Audience: "durward", Facts: storage.LoginFacts{Groups: []string{"sales"}},
	}
	a := Agreement{
		OrganizationID: n.user.OrganizationID, UserID: n.user.ID, Client: n.client(t, "editor"), Resource: resource, RedirectURI: redirect, Challenge: challenge,
	}
	if change != nil {
		change(&d, &a)
	}
	var err error
	if a.Draft, err = n.Draft(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	code, err := n.Agree(t.Context(), a)
	if err != nil {
		t.Fatal(err)
	}
	return code.Reveal()
}

// redeeming returns the form that exchanges a code.
func redeeming(code string) url.Values {
	return url.Values{"grant_type": {"authorization_code"}, "code": {code}, "redirect_uri": {redirect}, "code_verifier": {verifier}, "resource": {resource}}
}

// logIn makes a login and redeems its code.
func (n *node) logIn(t *testing.T, change func(*Draft, *Agreement)) *Tokens {
	t.Helper()
	tokens, err := n.Redeem(t.Context(), n.client(t, "editor"), redeeming(n.begin(t, change)))
	if err != nil {
		t.Fatal(err)
	}
	return tokens
}

// refresh exchanges a refresh token of the editor's.
func (n *node) refresh(t *testing.T, refresh seal.Secret) (*Tokens, error) {
	t.Helper()
	return n.Refresh(t.Context(), n.client(t, "editor"), url.Values{"refresh_token": {refresh.Reveal()}})
}

// verify verifies an access token as the gateway does.
func (n *node) verify(t *testing.T, access seal.Secret, resource string) (*token.Claims, error) {
	t.Helper()
	v, err := token.NewVerifier(token.Options{Issuer: issuer, Audiences: []string{issuer}, Algorithms: []string{"ES256"}, RequireTyp: true, AudSingle: true}, n.Keys, n.clock.time)
	if err != nil {
		t.Fatal(err)
	}
	return v.Verify(t.Context(), access.Reveal(), resource)
}

// lives reports whether a login has not ended.
func (n *node) lives(t *testing.T, l storage.Login) bool {
	t.Helper()
	_, err := n.Store.Login(t.Context(), l.OrganizationID, l.ID, n.clock.time())
	if err != nil && !errors.Is(err, storage.ErrNotFound) {
		t.Fatal(err)
	}
	return err == nil
}

// wantCode fails unless an error is an OAuth error of that code.
func wantCode(t *testing.T, what string, err error, code string) {
	t.Helper()
	var e *authserver.Error
	if !errors.As(err, &e) || e.Code != code {
		t.Errorf("%s: error %v, want %s", what, err, code)
	}
}
