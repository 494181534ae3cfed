package record

import (
	"context"
	"time"

	"github.com/durward-gateway/durward/storage"
)

// CreatePolicy implements storage.Policies.
func (s *Store) CreatePolicy(ctx context.Context, p storage.Policy) (storage.PolicyView, error) {
	made(ctx, p.ID, p.Name)
	if e := requested(ctx); e != nil {
		e.PolicyID, e.PolicyRevision = p.ID, p.Revision
	}
	return s.Store.CreatePolicy(ctx, p)
}

// UpdatePolicy implements storage.Policies.
func (s *Store) UpdatePolicy(ctx context.Context, organization, id, by string, now time.Time, edit func(*storage.Policy) error) (storage.PolicyView, error) {
	return s.Store.UpdatePolicy(ctx, organization, id, by, now, revising(edit, func(p *storage.Policy, revision int) {
		if e := requested(ctx); e != nil {
			e.PolicyID, e.PolicyRevision = p.ID, revision
		}
	}))
}

// UpdatePolicies implements storage.Policies.
func (s *Store) UpdatePolicies(ctx context.Context, organization string, ids []string, by string, now time.Time, edit func(*storage.Policy) error) error {
	revisions := make(map[string]int)
	return s.Store.UpdatePolicies(ctx, organization, ids, by, now, revising(edit, func(p *storage.Policy, revision int) {
		e := requested(ctx)
		if e == nil {
			return
		}
		revisions[p.ID] = revision
		Add(e, "policy_revisions", revisions)
		if len(ids) == 1 {
			e.PolicyID, e.PolicyRevision = p.ID, revision
		}
	}))
}

// revising returns edit with a step that notes the revision that its change makes.
func revising(edit func(*storage.Policy) error, changed func(*storage.Policy, int)) func(*storage.Policy) error {
	return func(p *storage.Policy) error {
		before := *p
		if err := edit(p); err != nil {
			return err
		}
		changes, err := storage.PolicyChanges(&before, *p)
		if err == nil && len(changes) > 0 {
			changed(&before, before.Revision+1)
		}
		return err
	}
}

// requested returns the record of the request that asks for a write, nil when there is none.
func requested(ctx context.Context) *storage.AuditEntry {
	if outer := storage.AuditOf(ctx); outer != nil && len(outer.Entries) > 0 {
		return &outer.Entries[0]
	}
	return nil
}
