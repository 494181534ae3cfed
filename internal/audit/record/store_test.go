package record

import (
	"context"
	"errors"
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
	was      storage.ConnectionStatus // of every connection that is updated
	fails    error                    // of every revocation
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
	c.Status = s.was
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
	return u, s.fails
}

// TestCredentialsAreRecorded checks that credentials are recorded with the server's name, the request's trace, the
// result and the reason, and that nothing is written when they cannot be.
func TestCredentialsAreRecorded(t *testing.T) {
	ignore := func(*audit.Trail) {}
	trail := NewTrail(ignore, ignore)
	log := New(Settings{}, Place{Dir: t.TempDir(), Store: recordtest.Store{}, Now: time.Now}, trail)
	log.SetKeys(recordtest.Keys{}, recordtest.Keys{})
	defer func() { _ = trail.Close() }()
	inner := &connections{was: storage.ConnectionConnected}
	store := NewStore(inner, log)
	key := storage.ConnectionKey{OrganizationID: "o", UserID: "u", ServerID: "s"}
	asked := &storage.Audited{OrganizationID: "o", Entries: []storage.AuditEntry{{UserID: "u", TraceID: "trace", Session: "tag", Kind: storage.AuditCredential, Event: "server.connect"}}}
	ctx := storage.WithAudit(t.Context(), asked)
	connected := storage.Connection{ConnectionKey: key, Status: storage.ConnectionConnected}
	denied := storage.Connection{ConnectionKey: key, Status: storage.ConnectionError, Reason: "denied"}
	writes := []func() error{
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
		func() error {
			inner.was = storage.ConnectionError
			_, err := store.UpdateConnection(ctx, key, func(context.Context, *storage.Connection) error { return nil })
			return err
		},
		func() error {
			_, err := store.UpdateConnection(ctx, key, func(_ context.Context, c *storage.Connection) error { *c = connected; return nil })
			return err
		},
		func() error { _, err := store.DeleteConnection(ctx, key); return err },
	}
	for _, write := range append(writes, func() error { return store.CreateAttempt(ctx, storage.Attempt{ConnectionKey: key}) }) {
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
		entry("credential.refreshed", "ok", ""), entry("credential.broken", "error", "denied"),
		entry("credential.not_obtained", "error", ""), entry("credential.stored", "ok", ""), entry("credential.deleted", "ok", ""), entry("server.connect", "", ""),
	}
	if diff := cmp.Diff(want, inner.recorded, cmpopts.IgnoreFields(storage.AuditEntry{}, "ID", "At")); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	inner.fails = storage.ErrUnavailable
	if _, err := store.RevokeUser(ctx, "o", "u", time.Time{}); err == nil || !asked.Claim() {
		t.Errorf("the request whose revocation failed would not be recorded: %v", err)
	}
	asked.Release()
	inner.fails = nil
	if _, err := store.RevokeUser(ctx, "o", "u", time.Time{}); err != nil || asked.Claim() {
		t.Errorf("the request that revokes a user would be recorded twice: %v", err)
	}
	closed := NewTrail(ignore, ignore)
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	*store, inner.recorded = *NewStore(inner, New(Settings{}, Place{}, closed)), nil
	for i, write := range writes {
		if err := write(); !errors.Is(err, storage.ErrUnavailable) || len(inner.recorded) != 0 {
			t.Errorf("write %d happens unrecorded: %v", i, err)
		}
	}
}
