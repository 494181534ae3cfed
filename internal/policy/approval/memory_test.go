package approval_test

import (
	"bytes"
	"context"
	"sync"
	"time"

	"github.com/durward-gateway/durward/storage"
)

// memory implements storage.Approvals without a database, so that a test can set its time.
type memory struct {
	storage.Holds
	mu     sync.Mutex
	all    []*storage.Approval
	listed storage.ApprovalFilter // the last one
	users  map[string]storage.User
	facts  map[string]storage.SessionFacts
}

func (m *memory) User(_ context.Context, _, id string) (storage.User, error) {
	u, ok := m.users[id]
	if !ok {
		return u, storage.ErrNotFound
	}
	return u, nil
}

func (m *memory) SessionFacts(_ context.Context, _, id string) (storage.SessionFacts, error) {
	f, ok := m.facts[id]
	if !ok {
		return f, storage.ErrNotFound
	}
	return f, nil
}

func (m *memory) ForeignApprovals(_ context.Context, organization string, now time.Time) (all []storage.ForeignApproval, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, a := range m.all {
		if a.OrganizationID == organization && len(a.Approvers) > 0 && at(a, now).Status == storage.ApprovalPending {
			all = append([]storage.ForeignApproval{{ID: a.ID, UserID: a.UserID, Approvers: a.Approvers}}, all...)
		}
	}
	return all, nil
}

func at(a *storage.Approval, now time.Time) storage.Approval {
	out := *a
	if (a.Status == storage.ApprovalPending || a.Status == storage.ApprovalApproved) && !a.ExpiresAt.After(now) {
		out.Status = storage.ApprovalExpired
	}
	return out
}

func (m *memory) CreateApproval(_ context.Context, a storage.Approval, limits storage.AskLimits) (storage.Approval, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	pending, asked := 0, 0
	for _, b := range m.all {
		if b.OrganizationID != a.OrganizationID || b.UserID != a.UserID {
			continue
		}
		status := at(b, a.CreatedAt).Status
		if bytes.Equal(a.Binding, b.Binding) && (status == storage.ApprovalPending || status == storage.ApprovalApproved) {
			return *b, nil
		}
		if status == storage.ApprovalPending && a.Client == b.Client {
			pending++
		}
		if a.Client == b.Client && b.CreatedAt.After(limits.Since) && !b.DecidedAt.Equal(b.CreatedAt) {
			asked++
		}
	}
	switch {
	case limits.Pending > 0 && pending >= limits.Pending:
		return storage.Approval{}, storage.ErrTooManyPending
	case limits.Asked > 0 && asked >= limits.Asked:
		return storage.Approval{}, storage.ErrTooManyAsked
	}
	m.all = append(m.all, &a)
	return a, nil
}

func (m *memory) find(organization, id string) *storage.Approval {
	for _, a := range m.all {
		if a.OrganizationID == organization && a.ID == id {
			return a
		}
	}
	return nil
}

func (m *memory) Approval(_ context.Context, organization, id string, now time.Time) (storage.Approval, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if a := m.find(organization, id); a != nil {
		return at(a, now), nil
	}
	return storage.Approval{}, storage.ErrNotFound
}

func (m *memory) ApprovalStatus(ctx context.Context, organization, id string, now time.Time) (storage.ApprovalStatus, storage.ApprovalChannel, error) {
	a, err := m.Approval(ctx, organization, id, now)
	return a.Status, a.Channel, err
}

func (m *memory) DivertApproval(_ context.Context, organization, userID, id string, now time.Time) (storage.Approval, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	a := m.find(organization, id)
	if a == nil || a.UserID != userID {
		return storage.Approval{}, storage.ErrNotFound
	}
	if at(a, now).Status == storage.ApprovalPending {
		a.Channel = storage.ChannelOutOfBand
	}
	return at(a, now), nil
}

func (m *memory) Approvals(_ context.Context, f storage.ApprovalFilter) (storage.Page[storage.Approval], error) {
	m.listed = f
	return storage.Page[storage.Approval]{}, nil
}

func (m *memory) DecideApproval(_ context.Context, organization, id string, d storage.ApprovalDecision) (storage.Approval, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	a := m.find(organization, id)
	if a == nil || (a.UserID == d.UserID) == (len(a.Approvers) > 0) {
		return storage.Approval{}, storage.ErrNotFound
	}
	if at(a, d.At).Status != storage.ApprovalPending {
		return storage.Approval{}, &storage.ConflictError{Field: "status"}
	}
	a.Status = storage.ApprovalDenied
	if d.Approve {
		a.Status, a.ExpiresAt = storage.ApprovalApproved, d.ExpiresAt
	}
	a.DecidedAt, a.DecidedVia, a.DecidedBy, a.DecidedClient = d.At, d.Via, d.UserID, d.Client
	return *a, nil
}

func (m *memory) TakeApproval(_ context.Context, organization, userID, id string, binding []byte, now time.Time) (storage.Approval, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, a := range m.all {
		if a.OrganizationID == organization && a.UserID == userID && (id == "" || a.ID == id) && bytes.Equal(a.Binding, binding) &&
			at(a, now).Status == storage.ApprovalApproved {
			a.Status, a.UsedAt = storage.ApprovalUsed, now
			return *a, nil
		}
	}
	return storage.Approval{}, storage.ErrNotFound
}
