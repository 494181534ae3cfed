package postgres

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/durward-gateway/durward/storage"
	"github.com/durward-gateway/durward/storage/postgres/pgtest"
	"github.com/durward-gateway/durward/storage/records"
)

var start = time.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC)

// seed makes an organization with a user, a server and a connection.
func seed(t testing.TB, s *Store, organization string) storage.Connection {
	t.Helper()
	ctx := t.Context()
	if _, err := s.ResolveOrganization(ctx, storage.OrganizationClaim{Issuer: "https://id.example.com", ID: organization, Slug: organization}, start); err != nil {
		t.Fatal(err)
	}
	user, err := s.ResolveUser(ctx, storage.UserClaim{OrganizationID: organization, Issuer: "https://id.example.com", Subject: "user of " + organization,
		DerivedID: "user-" + organization, Kind: storage.UserPerson}, start)
	if err != nil {
		t.Fatal(err)
	}
	entry := storage.DirectoryEntry{ID: "entry-" + organization, OrganizationID: organization, Name: "Notes", Slug: "notes", Source: storage.SourceCustom,
		Provider: storage.ProviderOAuth2, RequiresAuth: true, CreatedAt: start, UpdatedAt: start}
	if err := s.CreateDirectoryEntry(ctx, entry); err != nil {
		t.Fatal(err)
	}
	server := storage.Server{ID: "server-" + organization, OrganizationID: organization, Name: "Notes", Slug: "notes", DirectoryID: entry.ID,
		Status: storage.ServerActive, CreatedAt: start, UpdatedAt: start}
	if err := s.CreateServer(ctx, server); err != nil {
		t.Fatal(err)
	}
	c, err := s.PutConnection(ctx, storage.Connection{ConnectionKey: storage.ConnectionKey{OrganizationID: organization, UserID: user.ID, ServerID: server.ID},
		ID: "connection-" + organization, Status: storage.ConnectionConnected, Kind: storage.ProviderOAuth2, SealedCredential: []byte("sealed"),
		CreatedAt: start, UpdatedAt: start})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// writeOf runs f in a write transaction of an organization.
func writeOf(ctx context.Context, s *Store, organization string, f func(ctx context.Context, tx *writeTx) error) error {
	return s.write(ctx, s.main, records.Of(organization), keyOf(records.Lock{Kind: records.OrganizationLock, Organization: organization}), f)
}

// texts reads one column in a scope.
func texts(t *testing.T, s *Store, scope records.Scope, query string, args ...any) []string {
	t.Helper()
	all, err := records.Many(t.Context(), reader{s.main, scope}, func(r records.Row) (text string, err error) {
		err = r.Scan(&text)
		return text, err
	}, query, args...)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// O01: a statement that forgot its organization shows one organization's rows and no others; one that forgot to say for
// whom it asks shows none.
func TestSecondWall(t *testing.T) {
	t.Parallel()
	s := open(t, Options{})
	seed(t, s, "a")
	seed(t, s, "b")
	const all = `SELECT organization_id FROM servers ORDER BY 1`
	for scope, want := range map[records.Scope][]string{records.Of("a"): {"a"}, records.Of("b"): {"b"}, records.Of("c"): nil, records.Everyone: {"a", "b"}, "": nil, "a": nil,
		records.Of(""): nil} {
		if diff := cmp.Diff(want, texts(t, s, scope, all)); diff != "" {
			t.Errorf("%q sees (-want +got)\n%s", scope, diff)
		}
	}
	// Nor does a connection remember its last user.
	for range 50 {
		rows, err := s.main.Query(t.Context(), all)
		if err != nil {
			t.Fatal(err)
		}
		seen, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err != nil || len(seen) > 0 {
			t.Fatalf("without a scope %v are seen (error %v)", seen, err)
		}
	}
	err := writeOf(t.Context(), s, "a", func(ctx context.Context, tx *writeTx) error {
		n, err := tx.Exec(ctx, `DELETE FROM connections`)
		if err == nil && n != 1 {
			t.Errorf("%d connections were deleted, not the organization's one", n)
		}
		return errors.Join(err, storage.ErrNotFound)
	})
	if !errors.Is(err, storage.ErrNotFound) {
		t.Fatal(err)
	}
	for _, statement := range []string{
		`INSERT INTO epochs (organization_id, epoch) VALUES ('b2', 1)`, `UPDATE servers SET organization_id = 'b'`,
		`INSERT INTO organizations (id, issuer, slug, created_at) VALUES ('c', '', '', 0)`,
	} {
		err := writeOf(t.Context(), s, "a", func(ctx context.Context, tx *writeTx) error {
			_, err := tx.Exec(ctx, statement)
			return err
		})
		if err == nil || !strings.Contains(err.Error(), "row-level security") {
			t.Errorf("%s: %v", statement, err)
		}
	}
}

// O01: every table that belongs to organizations is behind the wall, and its owner too.
func TestEveryTableIsWalled(t *testing.T) {
	t.Parallel()
	s := open(t, Options{})
	open := texts(t, s, records.Everyone, `SELECT relname::text FROM pg_class WHERE relkind = 'r' AND relnamespace = current_schema()::regnamespace
		AND NOT (relrowsecurity AND relforcerowsecurity) ORDER BY 1`)
	if diff := cmp.Diff([]string{"audit_checkpoints", "data_keys", "registered_clients", "schema_migrations", "signing_keys", "usage_batches", "used_assertions"}, open); diff != "" {
		t.Errorf("tables without row-level security, which their migration has to switch on as 0015_tasks.up.sql does (-want +got)\n%s", diff)
	}
}

// A user whom the wall does not hold is reported.
func TestCheck(t *testing.T) {
	t.Parallel()
	database := pgtest.Database(t)
	bound := openAt(t, database, Options{})
	unbound := openAt(t, pgtest.Superuser(t, database), Options{})
	about := func(s *Store) bool {
		findings, err := s.Check(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(findings, func(f string) bool { return strings.Contains(f, "BYPASSRLS") })
	}
	if about(bound) || !about(unbound) {
		t.Errorf("told of the owner: %v, of the superuser: %v", about(bound), about(unbound))
	}
}
