package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/durward-gateway/durward/storage"
)

func addKey(s *Store, version int, size int) error {
	return s.AddDataKey(context.Background(), storage.DataKey{Version: version, Wrapped: []byte(strings.Repeat("x", size))})
}

// Z-D01: a full disk refuses writes, tears nothing, leaves reads alone, and Ping says so until there is room again.
func TestDiskFull(t *testing.T) {
	t.Parallel()
	s := open(t, Options{})
	if err := addKey(s, 1, 10); err != nil {
		t.Fatal(err)
	}
	if _, err := s.writer.ExecContext(t.Context(), `PRAGMA max_page_count = 1`); err != nil { // the least possible: its present size
		t.Fatal(err)
	}
	err := addKey(s, 2, 1<<20)
	if !errors.Is(err, storage.ErrUnavailable) {
		t.Fatalf("got %v", err)
	}
	if !s.failing.Load() {
		t.Error("the refusal was not noted")
	}
	keys, err := s.DataKeys(t.Context())
	if err != nil || len(keys) != 1 {
		t.Errorf("reading: %d keys, %v", len(keys), err)
	}
	if _, err := s.writer.ExecContext(t.Context(), `PRAGMA max_page_count = 1000000`); err != nil {
		t.Fatal(err)
	}
	if err := s.Ping(t.Context()); err != nil || s.failing.Load() {
		t.Errorf("after there is room again: %v", err)
	}
	if err := addKey(s, 2, 1<<20); err != nil {
		t.Error(err)
	}
}

func TestReadOnlyAndLockedFiles(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "durward.db")
	// The time is long enough where nothing is locked, on a busy machine with a slow disk.
	s, err := Open(t.Context(), path, Options{Timeout: 2 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()

	other, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	conn, err := other.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.ExecContext(t.Context(), `BEGIN IMMEDIATE`); err != nil {
		t.Fatal(err)
	}
	if err := addKey(s, 1, 1); !errors.Is(err, storage.ErrUnavailable) {
		t.Errorf("writing a locked file: %v", err)
	}
	if err := s.Ping(t.Context()); !errors.Is(err, storage.ErrUnavailable) {
		t.Errorf("pinging a locked file: %v", err)
	}
	if _, err := s.DataKeys(t.Context()); err != nil {
		t.Errorf("reading a locked file: %v", err)
	}
	if _, err := conn.ExecContext(t.Context(), `ROLLBACK`); err != nil {
		t.Fatal(err)
	}
	if err := addKey(s, 1, 1); err != nil {
		t.Error(err)
	}
	if _, err := s.writer.ExecContext(t.Context(), `PRAGMA query_only = 1`); err != nil {
		t.Fatal(err)
	}
	if err := addKey(s, 2, 1); !errors.Is(err, storage.ErrUnavailable) {
		t.Errorf("writing a read-only file: %v", err)
	}
	if err := s.Ping(t.Context()); !errors.Is(err, storage.ErrUnavailable) {
		t.Errorf("pinging a read-only file: %v", err)
	}
}

func TestConflictField(t *testing.T) {
	t.Parallel()
	for message, want := range map[string]string{
		"constraint failed: UNIQUE constraint failed: servers.organization_id, servers.name_key (2067)": "name",
		"UNIQUE constraint failed: servers.organization_id, servers.slug (2067)":                        "slug",
		"UNIQUE constraint failed: attempts.state_hash (1555)":                                          "state",
		"UNIQUE constraint failed: data_keys.version":                                                   "version",
	} {
		if got := conflictField(message); got != want {
			t.Errorf("%q: got %q, want %q", message, got, want)
		}
	}
}

// A change by another process under an edit is noticed, not overwritten.
func TestEditUnderAnotherProcess(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "durward.db")
	var stores [2]*Store
	for i := range stores {
		s, err := Open(t.Context(), path, Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		stores[i] = s
	}
	c := seedConnection(t, stores[0])
	_, err := stores[0].UpdateConnection(t.Context(), c.ConnectionKey, func(ctx context.Context, mine *storage.Connection) error {
		c.Scope = "theirs"
		if _, err := stores[1].PutConnection(ctx, c); err != nil {
			t.Error(err)
		}
		mine.Scope = "mine"
		return nil
	})
	if !errors.Is(err, storage.ErrUnavailable) {
		t.Errorf("got %v", err)
	}
	got, err := stores[0].Connection(t.Context(), c.ConnectionKey)
	if err != nil || got.Scope != "theirs" {
		t.Errorf("got %+v, %v", got, err)
	}
}

// seedConnection stores an organization with a user, a server and a connection.
func seedConnection(tb testing.TB, s *Store) storage.Connection {
	tb.Helper()
	ctx, now := tb.Context(), time.UnixMicro(1_700_000_000_000_000).UTC()
	key := storage.ConnectionKey{OrganizationID: "organization", UserID: "user", ServerID: "server"}
	_, err := s.ResolveOrganization(ctx, storage.OrganizationClaim{Issuer: "https://id.example.com", ID: key.OrganizationID}, now)
	if err == nil {
		_, err = s.ResolveUser(ctx, storage.UserClaim{OrganizationID: key.OrganizationID, Issuer: "https://id.example.com", Subject: "user",
			ID: key.UserID, DerivedID: "derived", Kind: storage.UserPerson}, now)
	}
	if err == nil {
		err = s.SyncDirectory(ctx, storage.SourceCatalogue, []storage.DirectoryEntry{{ID: "entry", Name: "Entry", Slug: "entry", RequiresAuth: true}}, now)
	}
	if err == nil {
		err = s.CreateServer(ctx, storage.Server{ID: key.ServerID, OrganizationID: key.OrganizationID, Name: "Server", Slug: "server",
			DirectoryID: "entry", Status: storage.ServerActive, CreatedAt: now, UpdatedAt: now})
	}
	var c storage.Connection
	if err == nil {
		c, err = s.PutConnection(ctx, storage.Connection{ConnectionKey: key, ID: "connection", Status: storage.ConnectionConnected,
			SealedCredential: []byte("sealed"), CreatedAt: now, UpdatedAt: now})
	}
	if err != nil {
		tb.Fatal(err)
	}
	return c
}
