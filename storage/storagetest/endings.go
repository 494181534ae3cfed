package storagetest

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/durward-gateway/durward/storage"
)

// testEndings checks that a write that removes a credential stores its revocation in the same transaction, or does
// nothing.
func testEndings(t *testing.T, b *bundle) {
	server := b.server(t, b.orgA, "Endings")
	client := storage.OAuthClient{OrganizationID: b.orgA, ServerID: server.ID, Kind: storage.ClientRegistered, Issuer: "https://id.example.com", ClientID: "client", CreatedAt: start}
	noError(t, b.PutOAuthClient(t.Context(), client, ""))
	key := storage.ConnectionKey{OrganizationID: b.orgA, UserID: b.userA1, ServerID: server.ID}
	stored := func(ids ...string) {
		t.Helper()
		all, err := b.DueRevocations(t.Context(), start, 1000, 1000)
		noError(t, err)
		for _, id := range ids {
			if !slices.ContainsFunc(all, func(v storage.Revocation) bool { return v.ID == id }) {
				t.Errorf("revocation %s is not stored", id)
			}
			noError(t, b.DeleteRevocation(t.Context(), b.orgA, id))
		}
	}
	var asked []storage.Ended
	id := ""
	ending := storage.WithEnding(t.Context(), func(_ context.Context, e storage.Ended) ([]storage.Revocation, error) {
		asked, id = append(asked, e), newID()
		return []storage.Revocation{{ID: id, OrganizationID: b.orgA, Sealed: []byte("sealed"), CreatedAt: start, NextAt: start}}, nil
	})
	// The suite's own context has no ending, like a write whose author forgot the providers.
	forgetful := t.Context()
	refused := errors.New("no")
	refusing := storage.WithEnding(t.Context(), func(context.Context, storage.Ended) ([]storage.Revocation, error) { return nil, refused })
	foreign := storage.WithEnding(t.Context(), func(context.Context, storage.Ended) ([]storage.Revocation, error) {
		return []storage.Revocation{{ID: newID(), OrganizationID: b.orgB, Sealed: []byte("sealed"), CreatedAt: start, NextAt: start}}, nil
	})
	drop := func(_ context.Context, c *storage.Connection) error {
		c.SealedCredential, c.Status = nil, storage.ConnectionError
		return nil
	}
	for name, write := range map[string]func(ctx context.Context) error{
		"put":    func(ctx context.Context) error { _, err := b.PutConnection(ctx, connection(key)); return err },
		"update": func(ctx context.Context) error { _, err := b.UpdateConnection(ctx, key, drop); return err },
		"delete": func(ctx context.Context) error { _, err := b.DeleteConnection(ctx, key); return err },
	} {
		t.Run(name, func(t *testing.T) {
			was := b.connect(t, key)
			wantError(t, write(refusing), refused)
			wantError(t, write(forgetful), storage.ErrNoEnding)
			wantError(t, write(foreign), storage.ErrNotFound)
			now, err := b.Connection(t.Context(), key)
			noError(t, err)
			equal(t, now, was)

			asked = nil
			noError(t, write(ending))
			equal(t, len(asked), 1)
			equal(t, asked[0].Former, was)
			equal(t, asked[0].By != nil, name == "put")
			equal(t, asked[0].Server.ID, server.ID)
			equal(t, asked[0].Client.ClientID, "client")
			stored(id)
		})
	}
	t.Run("nothing ends", func(t *testing.T) {
		asked = nil
		_, err := b.DeleteConnection(untold(t.Context()), key)
		if err != nil && !errors.Is(err, storage.ErrNotFound) {
			t.Fatal(err)
		}
		_, err = b.PutConnection(ending, connection(key))
		noError(t, err)
		_, err = b.UpdateConnection(ending, key, func(_ context.Context, c *storage.Connection) error {
			c.SealedCredential = []byte("refreshed")
			return nil
		})
		noError(t, err)
		equal(t, len(asked), 0)
	})
	t.Run("with its server", func(t *testing.T) {
		b.connect(t, key)
		other := key
		other.UserID = b.userA2
		b.connect(t, other)
		_, err := b.DeleteServer(refusing, b.orgA, server.ID, "", start)
		wantError(t, err, refused)
		_, err = b.DeleteServer(forgetful, b.orgA, server.ID, "", start)
		wantError(t, err, storage.ErrNoEnding)
		_, err = b.Connection(t.Context(), key)
		noError(t, err)

		asked = nil
		_, err = b.DeleteServer(ending, b.orgA, server.ID, "", start)
		noError(t, err)
		equal(t, len(asked), 2)
		equal(t, asked[1].Client.ClientID, "client")
		stored(id)
	})
}

// untold returns a context for writes that end credentials without telling a provider.
func untold(ctx context.Context) context.Context {
	return storage.WithEnding(ctx, func(context.Context, storage.Ended) ([]storage.Revocation, error) { return nil, nil })
}
