package record

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/durward-gateway/durward/internal/audit"
	"github.com/durward-gateway/durward/internal/audit/record/recordtest"
	"github.com/durward-gateway/durward/storage"
)

// connections is a store that keeps the records of its writes.
type connections struct {
	storage.Store
	recorded []storage.AuditEntry
}

func (s *connections) note(ctx context.Context) {
	s.recorded = append(s.recorded, storage.AuditOf(ctx).Entries...)
}

func (s *connections) Server(context.Context, string, string) (v storage.Server, err error) {
	v.Slug = "github"
	return v, nil
}

func (s *connections) CreateConnection(ctx context.Context, _ storage.Connection) error {
	s.note(ctx)
	return nil
}

func (s *connections) PutConnection(ctx context.Context, c storage.Connection) (storage.Connection, error) {
	s.note(ctx)
	return c, nil
}

func (s *connections) UpdateConnection(ctx context.Context, _ storage.ConnectionKey, edit func(context.Context, *storage.Connection) error) (c storage.Connection, err error) {
	c.Status = storage.ConnectionConnected
	err = edit(ctx, &c)
	s.note(ctx)
	return c, err
}

func (s *connections) DeleteConnection(ctx context.Context, _ storage.ConnectionKey) (c storage.Connection, err error) {
	s.note(ctx)
	return c, nil
}

func (s *connections) CreateAttempt(ctx context.Context, _ storage.Attempt) error {
	s.note(ctx)
	return nil
}

func (s *connections) RevokeUser(ctx context.Context, _, _ string, _ time.Time) (u storage.User, err error) {
	s.note(ctx)
	return u, nil
}

// TestCredentialsAreRecorded checks that credentials are recorded with the server's name, the request's trace, the
// result and the reason.
func TestCredentialsAreRecorded(t *testing.T) {
	ignore := func(*audit.Trail) {}
	log := New(Settings{}, Place{Dir: t.TempDir(), Store: recordtest.Store{}, Now: time.Now}, NewTrail(ignore, ignore))
	log.SetKeys(recordtest.Keys{}, recordtest.Keys{})
	opened, err := log.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = opened.Close() }()
	inner := new(connections)
	store := NewStore(inner, log)
	key := storage.ConnectionKey{OrganizationID: "o", UserID: "u", ServerID: "s"}
	asked := &storage.Audited{OrganizationID: "o", Entries: []storage.AuditEntry{{UserID: "u", TraceID: "trace", Session: "tag", Kind: storage.AuditCredential, Event: "server.connect"}}}
	ctx := storage.WithAudit(t.Context(), asked)
	connected := storage.Connection{ConnectionKey: key, Status: storage.ConnectionConnected}
	denied := storage.Connection{ConnectionKey: key, Status: storage.ConnectionError, Reason: "denied"}
	for _, write := range []func() error{
		func() error { return store.CreateConnection(ctx, connected) },
		func() error { return store.CreateConnection(ctx, denied) },
		func() error { _, err := store.PutConnection(ctx, denied); return err },
		func() error {
			_, err := store.UpdateConnection(ctx, key, func(context.Context, *storage.Connection) error { return nil })
			return err
		},
		func() error {
			_, err := store.UpdateConnection(ctx, key, func(_ context.Context, c *storage.Connection) error { *c = denied; return nil })
			return err
		},
		func() error { _, err := store.DeleteConnection(ctx, key); return err },
		func() error { return store.CreateAttempt(ctx, storage.Attempt{ConnectionKey: key}) },
	} {
		if err := write(); err != nil {
			t.Fatal(err)
		}
	}
	entry := func(event, outcome, reason string) storage.AuditEntry {
		e := storage.AuditEntry{
			Kind: storage.AuditCredential, Event: event, UserID: "u", ServerID: "s", Server: "github", Session: "tag", TraceID: "trace", Outcome: outcome,
		}
		if reason != "" {
			e.Detail = map[string]any{"reason": reason}
		}
		return e
	}
	want := []storage.AuditEntry{
		entry("credential.stored", "ok", ""), entry("credential.not_obtained", "error", "denied"), entry("credential.not_obtained", "error", "denied"),
		entry("credential.refreshed", "ok", ""), entry("credential.broken", "error", "denied"), entry("credential.deleted", "ok", ""), entry("server.connect", "", ""),
	}
	if diff := cmp.Diff(want, inner.recorded, cmpopts.IgnoreFields(storage.AuditEntry{}, "ID", "At")); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if _, err := store.RevokeUser(ctx, "o", "u", time.Time{}); err != nil || asked.Claim() {
		t.Errorf("the request that revokes a user would be recorded twice: %v", err)
	}
}
