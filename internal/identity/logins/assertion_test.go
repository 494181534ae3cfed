package logins

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	"github.com/durward-gateway/durward/storage"
)

// assertion returns an assertion about the node's user for the editor, issued now. change may change it.
func (n *node) assertion(t *testing.T, id string, change func(*Assertion)) Assertion {
	t.Helper()
	now := n.clock.time()
	a := Assertion{
		OrganizationID: n.user.OrganizationID, UserID: n.user.ID, Issuer: "https://id.test", Audience: "durward", Subject: "alice", Client: n.client(t, "editor"),
		Resource: resource, Facts: storage.LoginFacts{Groups: []string{"sales"}, RolesUnknown: true}, ID: id, IssuedAt: now, GoodUntil: now.Add(5 * time.Minute), SeenAt: now,
	}
	if change != nil {
		change(&a)
	}
	return a
}

func unrecorded(context.Context, storage.Login) error { return nil }

// TestAssert logs a user in by assertions: there is a token and a login, and nothing to refresh it with.
func TestAssert(t *testing.T) {
	nodes := newNodes(t, 2, nil)
	n, other := nodes[0], nodes[1]
	var recorded []storage.Login
	first := n.assertion(t, "1", nil)
	tokens, err := n.Assert(t.Context(), first, func(_ context.Context, l storage.Login) error { recorded = append(recorded, l); return nil })
	if err != nil {
		t.Fatal(err)
	}
	answer := tokens.Answer()
	if _, refreshes := answer["refresh_token"]; refreshes || answer["expires_in"] != int64(900) {
		t.Errorf("the answer is %v", answer)
	}
	claims, err := n.verify(t, tokens.Access, resource)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"sub": n.user.ID, "client_id": "editor", ClaimOrganization: n.user.OrganizationID, ClaimLogin: tokens.Login.ID, "aud": resource} {
		if got, _ := claims.Object.Get(name); !got.Is(want) {
			t.Errorf("%s is %s, want %s", name, got.Raw(), want)
		}
	}
	if len(recorded) != 1 || recorded[0].ID != tokens.Login.ID || !tokens.Login.Asserted() || !n.lives(t, tokens.Login) {
		t.Errorf("recorded %v, the login is %+v", recorded, tokens.Login)
	}
	// It is used, on every node, until long after it has ended.
	for _, at := range []*node{n, other} {
		_, err = at.Assert(t.Context(), first, unrecorded)
		wantCode(t, "a second time", err, "invalid_grant")
	}
	n.clock.forward(5*time.Minute + time.Second)
	_, err = other.Assert(t.Context(), first, unrecorded)
	wantCode(t, "a second time, late", err, "invalid_grant")
	// A client that comes again has the same login.
	n.clock.forward(5 * time.Minute)
	again, err := other.Assert(t.Context(), n.assertion(t, "2", nil), unrecorded)
	if err != nil || again.Login.ID != tokens.Login.ID || again.ExpiresIn != AccessLifetime {
		t.Errorf("once more: %+v, %v", again, err)
	}
	n.clock.forward(AccessLifetime)
	if n.lives(t, tokens.Login) {
		t.Error("the login outlives its last token")
	}
}

// TestAssertRefused checks that nothing is given away when a step before the token fails.
func TestAssertRefused(t *testing.T) {
	n := newNode(t)
	_, err := n.Assert(t.Context(), n.assertion(t, "1", func(a *Assertion) { a.UserID = "01900000-0000-7000-8000-0000000000ff" }), unrecorded)
	wantCode(t, "an unknown user", err, "invalid_grant")
	lost := errors.New("the audit log is full")
	if _, err := n.Assert(t.Context(), n.assertion(t, "2", nil), func(context.Context, storage.Login) error { return lost }); !errors.Is(err, lost) {
		t.Errorf("unrecorded: %v", err)
	}
	// A revocation refuses assertions that were issued before it. It refuses one that came before it, too, although the clock of
	// the issuer runs ahead.
	now := n.clock.time()
	if _, err := n.Store.(storage.Store).RevokeUser(t.Context(), n.user.OrganizationID, n.user.ID, now); err != nil {
		t.Fatal(err)
	}
	for i, change := range []func(*Assertion){
		func(a *Assertion) { a.IssuedAt = now.Add(-time.Minute) },
		func(a *Assertion) { a.IssuedAt = now.Add(20 * time.Second) },
	} {
		_, err := n.Assert(t.Context(), n.assertion(t, "revoked "+strconv.Itoa(i), change), unrecorded)
		wantCode(t, "a revoked user", err, "invalid_grant")
	}
	n.clock.forward(time.Second)
	if _, err := n.Assert(t.Context(), n.assertion(t, "new", nil), unrecorded); err != nil {
		t.Errorf("an assertion after the revocation: %v", err)
	}
}

// TestAssertLifetime checks that no token outlives the time for which logins last here.
func TestAssertLifetime(t *testing.T) {
	n := newNode(t)
	n.Idle = 4 * time.Minute
	tokens, err := n.Assert(t.Context(), n.assertion(t, "1", nil), unrecorded)
	if err != nil || tokens.ExpiresIn != n.Idle {
		t.Errorf("%v, %v", tokens, err)
	}
}
