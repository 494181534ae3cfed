package app

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/durward-gateway/durward/internal/identity/authn/authntest"
	"github.com/durward-gateway/durward/internal/mcp/streams"
	"github.com/durward-gateway/durward/storage"
)

// addServer stores a server with a name.
func addServer(t *testing.T, store storage.Store, organization, creator, name string) {
	t.Helper()
	entry := storage.DirectoryEntry{ID: uuid.NewString(), OrganizationID: organization, Source: storage.SourceCustom, Name: name, Slug: name,
		URL: "https://example.test/mcp", Protocol: storage.ProtocolMCP, Provider: storage.ProviderNone, CreatedAt: time.Now(), UpdatedAt: time.Now()}
	if err := store.CreateDirectoryEntry(t.Context(), entry); err != nil {
		t.Fatal(err)
	}
	server := storage.Server{ID: uuid.NewString(), OrganizationID: organization, DirectoryID: entry.ID, Entry: entry, Name: name, Slug: name,
		Status: storage.ServerActive, CreatedBy: creator, CreatedAt: time.Now(), UpdatedAt: time.Now()}
	if err := store.CreateServer(t.Context(), server); err != nil {
		t.Fatal(err)
	}
}

// Z-N01: a stream ends with its server also where nobody was told but the store: another node deleted it. Another
// server's goes on.
func TestStreamsEndWithTheirServer(t *testing.T) {
	k := newKeyring(t)
	raw, _ := k.Make(nil)
	add := func(name string) *Call {
		t.Helper()
		addServer(t, k.Store, authntest.OrganizationID, k.User.ID, name)
		call, err := k.use(raw, here)
		if err != nil {
			t.Fatal(err)
		}
		if err := call.ResolveServer(t.Context(), name); err != nil {
			t.Fatal(err)
		}
		return call
	}
	goes, stays := add("goes"), add("stays")
	ctx, done := goes.Streams().Open(t.Context(), streams.Listen)
	defer done()
	other, otherDone := stays.Streams().Open(t.Context(), streams.Call)
	defer otherDone()
	if _, err := k.Store.DeleteServer(t.Context(), authntest.OrganizationID, goes.Server.ID, k.User.ID, time.Now()); err != nil {
		t.Fatal(err)
	}
	select {
	case <-ctx.Done():
	case <-time.After(30 * time.Second):
		t.Fatal("the stream runs on")
	}
	if reason, _ := streams.EndedFor(ctx); reason != streams.ServerDeleted {
		t.Errorf("ended for %q", reason)
	}
	if other.Err() != nil {
		t.Errorf("another server's: %v", other.Err())
	}
}

// Z-F02: a right that cannot be looked up, because the store is away, is no right; but nobody is told that it was taken away.
func TestRightThatCannotBeTold(t *testing.T) {
	k := newKeyring(t)
	raw, _ := k.Make(nil)
	call, err := k.use(raw, here)
	if err != nil {
		t.Fatal(err)
	}
	k.Make(nil) // something is written
	if err := k.Store.Close(); err != nil {
		t.Fatal(err)
	}
	ctx, done := call.Streams().Open(t.Context(), streams.Call)
	defer done()
	reason, _ := streams.EndedFor(ctx)
	if reason != streams.Untold {
		t.Errorf("ended for %q", reason)
	}
	call.Server = new(storage.Server)
	w := httptest.NewRecorder()
	call.Streams().WriteEnded(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", nil), reason)
	if w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" {
		t.Errorf("answered %d %v", w.Code, w.Header())
	}
}
