package storagetest

import (
	"testing"

	"github.com/durward-gateway/durward/storage"
)

// testDeclared checks which objects files declare, in each organization apart.
func testDeclared(t *testing.T, b *bundle) {
	ctx := t.Context()
	want := func(organization string, want ...storage.DeclaredObject) {
		t.Helper()
		all, err := b.Declared(ctx, organization)
		noError(t, err)
		equal(t, all, want)
	}
	one, two := storage.DeclaredObject{Kind: "agent", ID: newID()}, storage.DeclaredObject{Kind: "server", ID: newID()}
	changes := b.changes(func() {
		noError(t, b.SetDeclared(ctx, b.orgA, []storage.DeclaredObject{two, one, one}, nil))
	})
	equal(t, changes, 0)
	want(b.orgA, one, two)
	want(b.orgB)
	noError(t, b.SetDeclared(ctx, b.orgB, []storage.DeclaredObject{two}, []storage.DeclaredObject{one}))
	want(b.orgA, one, two)
	noError(t, b.SetDeclared(ctx, b.orgA, []storage.DeclaredObject{one}, []storage.DeclaredObject{one, two}))
	want(b.orgA, one)
	want(b.orgB, two)
	wantError(t, b.SetDeclared(ctx, newID(), []storage.DeclaredObject{one}, nil), storage.ErrNotFound)
	hostile := storage.DeclaredObject{Kind: "k'; --", ID: "\"\u202e"}
	noError(t, b.SetDeclared(ctx, b.orgA, []storage.DeclaredObject{hostile}, []storage.DeclaredObject{one}))
	want(b.orgA, hostile)
}
