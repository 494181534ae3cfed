package logins

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/storage"
)

// withIDToken begins a login with an ID token that is good for five minutes, and a refresh token.
func (n *node) withIDToken(d *Draft) {
	d.Refresh, d.IDToken, d.IDTokenExpiresAt = seal.NewSecret("idp-1"), seal.NewSecret("id-1"), n.clock.time().Add(5*time.Minute)
}

// TestIDToken hands out the ID token of a login, and asks the identity provider for the next one when it ends.
func TestIDToken(t *testing.T) {
	asked := 0
	var answer Renewal
	var failure error
	n := newNodes(t, 1, func(_ context.Context, _ storage.Login, _ seal.Secret) (Renewal, error) {
		asked++
		return answer, failure
	})[0]
	tokens := n.logIn(t, func(d *Draft, _ *Agreement) { n.withIDToken(d) })
	get := func(l storage.Login) (string, error) {
		t.Helper()
		got, err := n.IDToken(t.Context(), l.OrganizationID, l.ID)
		return got.Reveal(), err
	}
	wants := func(what, want string, wantErr error, times int) {
		t.Helper()
		before := asked
		got, err := get(tokens.Login)
		if got != want || !errors.Is(err, wantErr) || asked-before != times {
			t.Errorf("%s: %q, error %v, asked %d times", what, got, err, asked-before)
		}
	}
	wants("the login's", "id-1", nil, 0)
	n.clock.forward(5*time.Minute - idTokenRest)
	failure = errors.New("no route")
	wants("the last seconds, and a provider that is away", "id-1", nil, 1)
	n.clock.forward(idTokenRest)
	wants("a provider that is away", "", ErrAway, 1)
	failure = nil
	answer = Renewal{Refresh: seal.NewSecret("idp-2")}
	wants("a provider that gives no ID token", "", ErrNoIDToken, 1)
	n.clock.forward(time.Second)
	answer = Renewal{IDToken: seal.NewSecret("id-2"), IDTokenExpiresAt: n.clock.time().Add(5 * time.Minute)}
	wants("the next one", "id-2", nil, 1)
	wants("the next one, kept", "id-2", nil, 0)

	stored, err := n.Store.Login(t.Context(), tokens.Login.OrganizationID, tokens.Login.ID, n.clock.time())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := n.Vault.Open(stored.SealedIDToken, seal.LoginPlace(stored.OrganizationID, stored.UserID, stored.ID)); err == nil {
		t.Error("an ID token opens in the place of a refresh token")
	}
	if refresh, err := n.Vault.Open(stored.SealedRefresh, seal.LoginPlace(stored.OrganizationID, stored.UserID, stored.ID)); err != nil || string(refresh) != "idp-2" {
		t.Errorf("the refresh token is %q, error %v", refresh, err)
	}

	// The refresh of a client brings one too.
	n.clock.forward(time.Minute)
	answer.IDToken, answer.IDTokenExpiresAt = seal.NewSecret("id-3"), n.clock.time().Add(time.Hour)
	if _, err := n.refresh(t, tokens.Refresh); err != nil {
		t.Fatal(err)
	}
	wants("after a refresh", "id-3", nil, 0)

	n.clock.forward(time.Hour)
	failure = ErrEnded
	wants("an account that is gone", "", ErrEnded, 1)
	wants("its login", "", ErrEnded, 0)
	if n.lives(t, tokens.Login) {
		t.Error("the login outlives its account")
	}
	failure = nil
	tokens = n.logIn(t, func(d *Draft, _ *Agreement) { n.withIDToken(d); d.Refresh = seal.Secret{} })
	wants("without a refresh token", "id-1", nil, 0)
	n.clock.forward(5 * time.Minute)
	wants("without a refresh token, over", "", ErrNoIDToken, 0)
	tokens.Login.OrganizationID = "01900000-0000-7000-8000-00000000000f"
	wants("another organization's", "", ErrEnded, 0)
}

// TestIDTokenRenewedOnce has many readers at two nodes find that an ID token has ended: one of them asks the provider, whose
// refresh token is good once, and a client that refreshes meanwhile does not.
func TestIDTokenRenewedOnce(t *testing.T) {
	var asked atomic.Int64
	asks, goOn := make(chan struct{}), make(chan struct{})
	var nodes []*node
	nodes = newNodes(t, 2, func(_ context.Context, l storage.Login, refresh seal.Secret) (Renewal, error) {
		if asked.Add(1) == 1 {
			close(asks)
		}
		<-goOn
		return Renewal{Facts: l.Facts, Refresh: seal.NewSecret(refresh.Reveal() + "+"), IDToken: seal.NewSecret("id-2"), IDTokenExpiresAt: nodes[0].clock.time().Add(time.Hour)}, nil
	})
	tokens := nodes[0].logIn(t, func(d *Draft, _ *Agreement) { nodes[0].withIDToken(d) })
	nodes[0].clock.forward(5 * time.Minute)
	var all sync.WaitGroup
	for i := range 6 {
		all.Go(func() {
			got, err := nodes[i%2].IDToken(t.Context(), tokens.Login.OrganizationID, tokens.Login.ID)
			if err != nil || got.Reveal() != "id-2" {
				t.Errorf("%q, error %v", got.Reveal(), err)
			}
		})
	}
	<-asks
	if _, err := nodes[1].refresh(t, tokens.Refresh); err != nil {
		t.Errorf("a client that refreshes meanwhile: %v", err)
	}
	close(goOn)
	all.Wait()
	if n := asked.Load(); n != 1 {
		t.Errorf("the provider was asked %d times", n)
	}
}
