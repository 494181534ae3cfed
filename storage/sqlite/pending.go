package sqlite

import (
	"context"
	"errors"
	"github.com/durward-gateway/durward/storage"
	"time"
)

// errPending: this part of the store is being built.
var errPending = errors.New("not built yet")

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
