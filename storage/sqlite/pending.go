package sqlite

import (
	"context"
	"errors"
	"github.com/durward-gateway/durward/storage"
	"time"
)

// errPending: this part of the store is being built.
var errPending = errors.New("not built yet")

// RevokeUser is being built.
func (s *Store) RevokeUser(ctx context.Context, organization, id string, at time.Time) (storage.User, error) {
	var r0 storage.User
	return r0, errPending
}

// CreateAgent is being built.
func (s *Store) CreateAgent(ctx context.Context, a storage.Agent) error {

	return errPending
}

// AdoptApplication is being built.
func (s *Store) AdoptApplication(ctx context.Context, a storage.Agent) (storage.Agent, error) {
	var r0 storage.Agent
	return r0, errPending
}

// RegisterAgent is being built.
func (s *Store) RegisterAgent(ctx context.Context, a storage.Agent, limit int) (storage.Agent, error) {
	var r0 storage.Agent
	return r0, errPending
}

// Agent is being built.
func (s *Store) Agent(ctx context.Context, organization, id string) (storage.Agent, error) {
	var r0 storage.Agent
	return r0, errPending
}

// AgentByClient is being built.
func (s *Store) AgentByClient(ctx context.Context, organization, issuer, externalID string) (storage.Agent, error) {
	var r0 storage.Agent
	return r0, errPending
}

// Agents is being built.
func (s *Store) Agents(ctx context.Context, f storage.AgentFilter) (storage.Page[storage.Agent], error) {
	var r0 storage.Page[storage.Agent]
	return r0, errPending
}

// AgentCounts is being built.
func (s *Store) AgentCounts(ctx context.Context, organization string) (storage.AgentCounts, error) {
	var r0 storage.AgentCounts
	return r0, errPending
}

// DeleteAgent is being built.
func (s *Store) DeleteAgent(ctx context.Context, organization, id, by string, now time.Time) error {

	return errPending
}

// CreatePolicy is being built.
func (s *Store) CreatePolicy(ctx context.Context, p storage.Policy) (storage.PolicyView, error) {
	var r0 storage.PolicyView
	return r0, errPending
}

// UpdatePolicy is being built.
func (s *Store) UpdatePolicy(ctx context.Context, organization, id, by string, now time.Time, edit func(*storage.Policy) error) (storage.PolicyView, error) {
	var r0 storage.PolicyView
	return r0, errPending
}

// UpdatePolicies is being built.
func (s *Store) UpdatePolicies(ctx context.Context, organization string, ids []string, by string, now time.Time, edit func(*storage.Policy) error) error {

	return errPending
}

// Policy is being built.
func (s *Store) Policy(ctx context.Context, organization, id string) (storage.PolicyView, error) {
	var r0 storage.PolicyView
	return r0, errPending
}

// PolicyByName is being built.
func (s *Store) PolicyByName(ctx context.Context, organization, name string) (storage.PolicyView, error) {
	var r0 storage.PolicyView
	return r0, errPending
}

// Policies is being built.
func (s *Store) Policies(ctx context.Context, f storage.PolicyFilter) (storage.Page[storage.PolicyView], error) {
	var r0 storage.Page[storage.PolicyView]
	return r0, errPending
}

// PolicySummary is being built.
func (s *Store) PolicySummary(ctx context.Context, organization string) (map[storage.PolicyStatus]int, error) {
	var r0 map[storage.PolicyStatus]int
	return r0, errPending
}

// ServerPolicies is being built.
func (s *Store) ServerPolicies(ctx context.Context, organization, serverID string) ([]storage.Policy, error) {
	var r0 []storage.Policy
	return r0, errPending
}

// OverlappingPolicies is being built.
func (s *Store) OverlappingPolicies(ctx context.Context, organization, serverID string, applicationIDs []string, exclude string) ([]storage.Policy, error) {
	var r0 []storage.Policy
	return r0, errPending
}

// PolicyRevisions is being built.
func (s *Store) PolicyRevisions(ctx context.Context, organization, id string, page storage.PageRequest) (storage.Page[storage.PolicyRevision], error) {
	var r0 storage.Page[storage.PolicyRevision]
	return r0, errPending
}

// CreateApproval is being built.
func (s *Store) CreateApproval(ctx context.Context, a storage.Approval, limit int) (storage.Approval, error) {
	var r0 storage.Approval
	return r0, errPending
}

// Approval is being built.
func (s *Store) Approval(ctx context.Context, organization, id string, now time.Time) (storage.Approval, error) {
	var r0 storage.Approval
	return r0, errPending
}

// Approvals is being built.
func (s *Store) Approvals(ctx context.Context, f storage.ApprovalFilter) (storage.Page[storage.Approval], error) {
	var r0 storage.Page[storage.Approval]
	return r0, errPending
}

// DecideApproval is being built.
func (s *Store) DecideApproval(ctx context.Context, organization, id string, d storage.ApprovalDecision) (storage.Approval, error) {
	var r0 storage.Approval
	return r0, errPending
}

// TakeApproval is being built.
func (s *Store) TakeApproval(ctx context.Context, organization, userID, id string, binding []byte, now time.Time) (storage.Approval, error) {
	var r0 storage.Approval
	return r0, errPending
}

// ToolPins is being built.
func (s *Store) ToolPins(ctx context.Context, organization, serverID string) ([]storage.ToolPin, error) {
	var r0 []storage.ToolPin
	return r0, errPending
}

// ObserveTools is being built.
func (s *Store) ObserveTools(ctx context.Context, organization, serverID string, tools []storage.ObservedTool, now time.Time) ([]storage.ToolPin, error) {
	var r0 []storage.ToolPin
	return r0, errPending
}

// AcceptTool is being built.
func (s *Store) AcceptTool(ctx context.Context, organization, serverID, name, hash, by string, now time.Time) (storage.ToolPin, error) {
	var r0 storage.ToolPin
	return r0, errPending
}

// RecordAudit is being built.
func (s *Store) RecordAudit(ctx context.Context) error {

	return errPending
}

// AddAuditChunks is being built.
func (s *Store) AddAuditChunks(ctx context.Context, chunks []storage.AuditChunk) error {

	return errPending
}

// AuditChunks is being built.
func (s *Store) AuditChunks(ctx context.Context, f storage.AuditFilter) ([]storage.AuditChunk, error) {
	var r0 []storage.AuditChunk
	return r0, errPending
}

// AuditRecords is being built.
func (s *Store) AuditRecords(ctx context.Context, f storage.AuditFilter) ([]storage.AuditRecord, error) {
	var r0 []storage.AuditRecord
	return r0, errPending
}

// AddAuditCheckpoint is being built.
func (s *Store) AddAuditCheckpoint(ctx context.Context, c storage.AuditCheckpoint) error {

	return errPending
}

// AuditCheckpoints is being built.
func (s *Store) AuditCheckpoints(ctx context.Context, node string) ([]storage.AuditCheckpoint, error) {
	var r0 []storage.AuditCheckpoint
	return r0, errPending
}

// AuditChains is being built.
func (s *Store) AuditChains(ctx context.Context, node string) ([]storage.AuditChain, error) {
	return nil, errPending
}
