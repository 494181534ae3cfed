package record

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/durward-gateway/durward/internal/audit"
	"github.com/durward-gateway/durward/internal/audit/record/recordtest"
	"github.com/durward-gateway/durward/storage"
)

// writes is a store that keeps the records of its writes.
type writes struct {
	storage.Store
	recorded []storage.AuditEntry
}

func (s *writes) note(ctx context.Context) {
	if a := storage.AuditOf(ctx); a != nil {
		s.recorded = append(s.recorded, a.Entries...)
	}
}

func (s *writes) CreateApproval(ctx context.Context, a storage.Approval, _ storage.AskLimits) (storage.Approval, error) {
	s.note(ctx)
	return a, nil
}

func (s *writes) DecideApproval(ctx context.Context, _, _ string, _ storage.ApprovalDecision) (v storage.Approval, err error) {
	s.note(ctx)
	return v, nil
}

func (s *writes) TakeApproval(ctx context.Context, _, _, _ string, _ []byte, _ time.Time) (v storage.Approval, err error) {
	s.note(ctx)
	return v, nil
}

func (s *writes) CreateServer(ctx context.Context, _ storage.Server) error { s.note(ctx); return nil }

func (s *writes) CreateAgent(ctx context.Context, _ storage.Agent) error { s.note(ctx); return nil }

func (s *writes) CreateDirectoryEntry(ctx context.Context, _ storage.DirectoryEntry) error {
	s.note(ctx)
	return nil
}

func (s *writes) RevokeUser(ctx context.Context, _, _ string, _ time.Time) (v storage.User, err error) {
	s.note(ctx)
	return v, nil
}

// recordingStore returns a store that records its writes, and the records. A closed one cannot record.
func recordingStore(t *testing.T, closed bool) (*Store, *writes) {
	t.Helper()
	ignore := func(*audit.Trail) {}
	trail := NewTrail(ignore, ignore)
	log := New(Settings{}, Place{Dir: t.TempDir(), Store: recordtest.Store{}, Now: time.Now}, trail)
	log.SetKeys(recordtest.Keys{}, recordtest.Keys{})
	t.Cleanup(func() { _ = trail.Close() })
	if closed {
		if err := trail.Close(); err != nil {
			t.Fatal(err)
		}
	}
	inner := new(writes)
	return NewStore(inner, log), inner
}

// decisions are the writes about held calls and users that must not happen unrecorded, with their events.
var decisions = map[string]func(ctx context.Context, s *Store) error{
	"approval.requested": func(ctx context.Context, s *Store) error {
		_, err := s.CreateApproval(ctx, storage.Approval{ID: "a", OrganizationID: "o", UserID: "u"}, storage.AskLimits{})
		return err
	},
	"approval.approved": func(ctx context.Context, s *Store) error {
		_, err := s.DecideApproval(ctx, "o", "a", storage.ApprovalDecision{Approve: true, UserID: "u", Client: "console", Via: storage.ChannelOutOfBand})
		return err
	},
	"approval.denied": func(ctx context.Context, s *Store) error {
		_, err := s.DecideApproval(ctx, "o", "a", storage.ApprovalDecision{UserID: "u", Client: "console", Via: storage.ChannelOutOfBand})
		return err
	},
	"approval.used": func(ctx context.Context, s *Store) error {
		_, err := s.TakeApproval(ctx, "o", "u", "a", nil, time.Time{})
		return err
	},
	"user.revoked": func(ctx context.Context, s *Store) error {
		_, err := s.RevokeUser(ctx, "o", "u", time.Time{})
		return err
	},
}

// TestDecisionsAreRecorded checks that held calls, decisions on them and revoked users are recorded with the write, by
// whom, and that nothing is written when that is impossible.
func TestDecisionsAreRecorded(t *testing.T) {
	by := func(organization, user string) context.Context {
		return storage.WithAudit(t.Context(), &storage.Audited{
			OrganizationID: organization, Entries: []storage.AuditEntry{{UserID: user, Client: "agent", TraceID: "trace"}},
		})
	}
	empty := storage.WithAudit(t.Context(), &storage.Audited{OrganizationID: "o"})
	for event, write := range decisions {
		store, inner := recordingStore(t, false)
		for _, ctx := range []context.Context{t.Context(), empty, by("o", "u"), by("o", "admin"), by("other", "admin")} {
			if err := write(ctx, store); err != nil {
				t.Fatal(err)
			}
		}
		if len(inner.recorded) != 5 {
			t.Fatalf("%s: %d records", event, len(inner.recorded))
		}
		for i, e := range inner.recorded {
			who, known := e.Detail["by"]
			if e.Event != event || e.UserID != "u" || e.Outcome != "ok" || known != (i == 3) || (known && who != "admin") || (e.TraceID == "trace") != (i == 2 || i == 3) {
				t.Errorf("%s %d: %+v", event, i, e)
			}
			decided := event == "approval.approved" || event == "approval.denied"
			if decided && (e.Client != "console" || e.Detail["channel"] != string(storage.ChannelOutOfBand) || e.ApprovalID != "a") {
				t.Errorf("%s %d: %+v", event, i, e)
			}
		}
		store, inner = recordingStore(t, true)
		if err := write(t.Context(), store); !errors.Is(err, storage.ErrUnavailable) || len(inner.recorded) != 0 {
			t.Errorf("%s happens unrecorded: %v", event, err)
		}
	}
}

// TestDecisionOfTheRequestsUser checks that a decision that names nobody is recorded as one of the request's user.
func TestDecisionOfTheRequestsUser(t *testing.T) {
	store, inner := recordingStore(t, false)
	ctx := storage.WithAudit(t.Context(), &storage.Audited{OrganizationID: "o", Entries: []storage.AuditEntry{{UserID: "admin"}}})
	if _, err := store.DecideApproval(ctx, "o", "a", storage.ApprovalDecision{Approve: true}); err != nil {
		t.Fatal(err)
	}
	if e := inner.recorded[0]; e.UserID != "admin" || e.Detail["by"] != nil {
		t.Errorf("%+v", e)
	}
}

// TestNewObjectsAreNamed checks that the record of a request names what the request made.
func TestNewObjectsAreNamed(t *testing.T) {
	store, inner := recordingStore(t, false)
	for _, create := range []func(ctx context.Context) error{
		func(ctx context.Context) error { return store.CreateServer(ctx, storage.Server{ID: "i", Name: "n"}) },
		func(ctx context.Context) error {
			return store.CreateDirectoryEntry(ctx, storage.DirectoryEntry{ID: "i", Name: "n"})
		},
		func(ctx context.Context) error {
			return store.CreateAgent(ctx, storage.Agent{ID: "i", Application: storage.Application{Name: "n"}})
		},
	} {
		inner.recorded = nil
		asked := &storage.Audited{OrganizationID: "o", Entries: []storage.AuditEntry{{Event: "created"}}}
		if err := create(storage.WithAudit(t.Context(), asked)); err != nil {
			t.Fatal(err)
		}
		if e := inner.recorded[0]; e.Detail["id"] != "i" || e.Detail["name"] != "n" {
			t.Errorf("%+v", e)
		}
		if err := create(storage.WithAudit(t.Context(), &storage.Audited{OrganizationID: "o"})); err != nil {
			t.Error(err)
		}
	}
}
