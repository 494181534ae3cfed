package record

import (
	"cmp"
	"context"
	"time"

	"github.com/durward-gateway/durward/storage"
)

// Store is a store that records the writes that must never happen unrecorded: held calls, credentials, revoked users. It records
// them in the transaction of the write, whoever asks for it. The API records its other changes itself, because it knows
// more about them.
type Store struct {
	storage.Store
	recorder *Recorder
}

// NewStore returns a store that writes to inner and records with recorder.
func NewStore(inner storage.Store, recorder *Recorder) *Store { return &Store{inner, recorder} }

// record returns a context whose next write records the entry. The actor is taken from the request, when there is one.
func (s *Store) record(ctx context.Context, organization string, e storage.AuditEntry) (context.Context, *storage.AuditEntry, error) {
	if outer := storage.AuditOf(ctx); outer != nil && outer.OrganizationID == organization && len(outer.Entries) > 0 {
		by := &outer.Entries[0]
		if e.UserID == "" {
			e.UserID = by.UserID
		} else if by.UserID != e.UserID {
			Add(&e, "by", by.UserID)
		}
		e.AgentID, e.Client, e.Session, e.TraceID = by.AgentID, by.Client, by.Session, by.TraceID
	}
	e.Outcome = cmp.Or(e.Outcome, "ok")
	return s.recorder.With(ctx, organization, e)
}

// CreateApproval implements storage.Approvals.
func (s *Store) CreateApproval(ctx context.Context, a storage.Approval, limits storage.AskLimits) (storage.Approval, error) {
	ctx, e, err := s.record(ctx, a.OrganizationID, storage.AuditEntry{
		Kind: storage.AuditApproval, Event: "approval.requested", UserID: a.UserID, AgentID: a.AgentID, Client: a.Client, ServerID: a.ServerID,
		Tool: a.Tool, ApprovalID: a.ID, PolicyID: a.PolicyID, PolicyRevision: a.PolicyRevision, Rule: a.Rule, ArgumentsDigest: a.ArgumentsDigest,
	})
	if err != nil {
		return storage.Approval{}, err
	}
	if len(a.Approvers) > 0 {
		Add(e, "approvers", a.Approvers)
	}
	return s.Store.CreateApproval(ctx, a, limits)
}

// DecideApproval implements storage.Approvals.
func (s *Store) DecideApproval(ctx context.Context, organization, id string, d storage.ApprovalDecision) (storage.Approval, error) {
	event := "approval.denied"
	if d.Approve {
		event = "approval.approved"
	}
	ctx, e, err := s.record(ctx, organization, storage.AuditEntry{Kind: storage.AuditApproval, Event: event, UserID: d.UserID, ApprovalID: id})
	if err != nil {
		return storage.Approval{}, err
	}
	e.Client = d.Client
	Add(e, "channel", string(d.Via))
	return s.Store.DecideApproval(ctx, organization, id, d)
}

// TakeApproval implements storage.Approvals.
func (s *Store) TakeApproval(ctx context.Context, organization, userID, id string, binding []byte, now time.Time) (storage.Approval, error) {
	ctx, _, err := s.record(ctx, organization, storage.AuditEntry{Kind: storage.AuditApproval, Event: "approval.used", UserID: userID, ApprovalID: id})
	if err != nil {
		return storage.Approval{}, err
	}
	return s.Store.TakeApproval(ctx, organization, userID, id, binding, now)
}

// credential returns the entry of an event of a user's credential.
func (s *Store) credential(ctx context.Context, event string, key storage.ConnectionKey) storage.AuditEntry {
	return storage.AuditEntry{
		Kind: storage.AuditCredential, Event: event, UserID: key.UserID, ServerID: key.ServerID, Server: s.slug(ctx, key.OrganizationID, key.ServerID),
	}
}

// slug returns the name of a server in addresses; "" when it cannot be looked up.
func (s *Store) slug(ctx context.Context, organization, id string) string {
	server, err := s.Store.Server(ctx, organization, id)
	if err != nil {
		return ""
	}
	return server.Slug
}

// ended notes the result of a connection.
func ended(e *storage.AuditEntry, event string, c *storage.Connection) {
	if e.Event = event; c.Reason != "" {
		Add(e, "reason", c.Reason)
	}
	if e.Outcome = "ok"; c.Status != storage.ConnectionConnected {
		e.Outcome = "error"
	}
}

// CreateConnection implements storage.Connections.
func (s *Store) CreateConnection(ctx context.Context, c storage.Connection) error {
	ctx, e, err := s.record(ctx, c.OrganizationID, s.credential(ctx, "", c.ConnectionKey))
	if err != nil {
		return err
	}
	ended(e, connectionEvent(nil, &c), &c)
	return s.Store.CreateConnection(ctx, c)
}

// PutConnection implements storage.Connections.
func (s *Store) PutConnection(ctx context.Context, c storage.Connection) (storage.Connection, error) {
	ctx, e, err := s.record(ctx, c.OrganizationID, s.credential(ctx, "", c.ConnectionKey))
	if err != nil {
		return storage.Connection{}, err
	}
	ended(e, connectionEvent(nil, &c), &c)
	return s.Store.PutConnection(ctx, c)
}

// UpdateConnection implements storage.Connections.
func (s *Store) UpdateConnection(ctx context.Context, key storage.ConnectionKey, edit func(context.Context, *storage.Connection) error) (storage.Connection, error) {
	ctx, e, err := s.record(ctx, key.OrganizationID, s.credential(ctx, "credential.refreshed", key))
	if err != nil {
		return storage.Connection{}, err
	}
	return s.Store.UpdateConnection(ctx, key, func(ctx context.Context, c *storage.Connection) error {
		before := *c
		if err := edit(storage.WithAudit(ctx, nil), c); err != nil { // its other writes are recorded as something else
			return err
		}
		ended(e, connectionEvent(&before, c), c)
		return nil
	})
}

// connectionEvent returns the name for a write to a connection; before is nil when there was none, or when it is
// replaced.
func connectionEvent(before, after *storage.Connection) string {
	switch {
	case after.Status != storage.ConnectionConnected && (before == nil || before.Status != storage.ConnectionConnected):
		return "credential.not_obtained"
	case after.Status != storage.ConnectionConnected:
		return "credential.broken"
	case before == nil || before.Status != storage.ConnectionConnected:
		return "credential.stored"
	}
	return "credential.refreshed"
}

// DeleteConnection implements storage.Connections.
func (s *Store) DeleteConnection(ctx context.Context, key storage.ConnectionKey) (storage.Connection, error) {
	ctx, _, err := s.record(ctx, key.OrganizationID, s.credential(ctx, "credential.deleted", key))
	if err != nil {
		return storage.Connection{}, err
	}
	return s.Store.DeleteConnection(ctx, key)
}

// CreateAttempt implements storage.Connections.
func (s *Store) CreateAttempt(ctx context.Context, a storage.Attempt) error {
	if e := requested(ctx); e != nil { // an address may name the server by its slug
		e.ServerID, e.Server = a.ServerID, s.slug(ctx, a.OrganizationID, a.ServerID)
	}
	return s.Store.CreateAttempt(ctx, a)
}

// RevokeUser implements storage.Identities.
func (s *Store) RevokeUser(ctx context.Context, organization, id string, at time.Time) (storage.User, error) {
	outer := storage.AuditOf(ctx)
	ctx, _, err := s.record(ctx, organization, storage.AuditEntry{Kind: storage.AuditLogin, Event: "user.revoked", UserID: id})
	if err != nil {
		return storage.User{}, err
	}
	u, err := s.Store.RevokeUser(ctx, organization, id, at)
	if err == nil && outer != nil {
		outer.Claim() // this is the record of the request
	}
	return u, err
}

// made notes the id of a new object in the record of the request that asks for it.
func made(ctx context.Context, id, name string) {
	if e := requested(ctx); e != nil {
		Add(e, "id", id)
		Add(e, "name", name)
	}
}

// CreateServer implements storage.Servers.
func (s *Store) CreateServer(ctx context.Context, server storage.Server) error {
	made(ctx, server.ID, server.Name)
	return s.Store.CreateServer(ctx, server)
}

// CreateDirectoryEntry implements storage.Directory.
func (s *Store) CreateDirectoryEntry(ctx context.Context, e storage.DirectoryEntry) error {
	made(ctx, e.ID, e.Name)
	return s.Store.CreateDirectoryEntry(ctx, e)
}

// CreateAgent implements storage.Agents.
func (s *Store) CreateAgent(ctx context.Context, a storage.Agent) error {
	made(ctx, a.ID, a.Application.Name)
	return s.Store.CreateAgent(ctx, a)
}
