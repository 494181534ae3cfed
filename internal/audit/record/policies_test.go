package record

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/durward-gateway/durward/storage"
)

// policies is a store of policies that tries every write twice, as drivers do when a transaction meets another one.
type policies struct {
	storage.Store
	revision int
}

func (policies) CreatePolicy(context.Context, storage.Policy) (v storage.PolicyView, err error) {
	return v, nil
}

func (s policies) UpdatePolicy(ctx context.Context, organization, id, by string, now time.Time, edit func(*storage.Policy) error) (storage.PolicyView, error) {
	return storage.PolicyView{}, s.UpdatePolicies(ctx, organization, []string{id}, by, now, edit)
}

func (s policies) UpdatePolicies(_ context.Context, _ string, ids []string, _ string, _ time.Time, edit func(*storage.Policy) error) error {
	for range 2 {
		for _, id := range ids {
			if err := edit(&storage.Policy{ID: id, Name: "was", Revision: s.revision}); err != nil {
				return err
			}
		}
	}
	return nil
}

// TestPolicyRevisionsAreRecorded checks that the record of a write leads to the revision that it made, and to none when
// it made none.
func TestPolicyRevisionsAreRecorded(t *testing.T) {
	store := NewStore(policies{revision: 6}, nil)
	rename := func(p *storage.Policy) error { p.Name, p.ID = "is", "forged"; return nil }
	same := func(*storage.Policy) error { return nil }
	refuse := func(p *storage.Policy) error { p.Name = "is"; return errors.New("no") }
	for name, test := range map[string]struct {
		write func(context.Context) error
		want  storage.AuditEntry
	}{
		"made": {func(ctx context.Context) error {
			_, err := store.CreatePolicy(ctx, storage.Policy{ID: "p", Name: "n", Revision: 1})
			return err
		}, storage.AuditEntry{PolicyID: "p", PolicyRevision: 1, Detail: map[string]any{"id": "p", "name": "n"}}},
		"changed": {func(ctx context.Context) error {
			_, err := store.UpdatePolicy(ctx, "o", "p", "u", time.Time{}, rename)
			return err
		}, storage.AuditEntry{PolicyID: "p", PolicyRevision: 7}},
		"not changed": {func(ctx context.Context) error {
			_, err := store.UpdatePolicy(ctx, "o", "p", "u", time.Time{}, same)
			return err
		}, storage.AuditEntry{}},
		"refused": {func(ctx context.Context) error {
			if _, err := store.UpdatePolicy(ctx, "o", "p", "u", time.Time{}, refuse); err == nil {
				return errors.New("went through")
			}
			return nil
		}, storage.AuditEntry{}},
		"one of a list": {func(ctx context.Context) error {
			return store.UpdatePolicies(ctx, "o", []string{"p"}, "u", time.Time{}, rename)
		}, storage.AuditEntry{PolicyID: "p", PolicyRevision: 7, Detail: map[string]any{"policy_revisions": map[string]int{"p": 7}}}},
		"several": {func(ctx context.Context) error {
			return store.UpdatePolicies(ctx, "o", []string{"p", "q"}, "u", time.Time{}, rename)
		}, storage.AuditEntry{Detail: map[string]any{"policy_revisions": map[string]int{"p": 7, "q": 7}}}},
	} {
		audited := &storage.Audited{OrganizationID: "o", Entries: []storage.AuditEntry{{}}}
		if err := test.write(storage.WithAudit(t.Context(), audited)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(test.want, audited.Entries[0]); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if err := test.write(t.Context()); err != nil { // nobody records it
			t.Errorf("%s: %v", name, err)
		}
	}
}
