// Package recordtest makes what an audit log needs in tests that look only at its records.
package recordtest

import (
	"context"

	"github.com/durward-gateway/durward/storage"
)

// Store is a store that takes all records and keeps none. It has nothing else.
type Store struct{ storage.Store }

// AuditChains implements storage.Audits.
func (Store) AuditChains(context.Context, string) ([]storage.AuditChain, error) { return nil, nil }

// AddAuditChunks implements storage.Audits.
func (Store) AddAuditChunks(context.Context, []storage.AuditChunk) error { return nil }

// AddAuditCheckpoint implements storage.Audits.
func (Store) AddAuditCheckpoint(context.Context, storage.AuditCheckpoint) error { return nil }

// Keys signs with zeros, and believes every signature.
type Keys struct{}

// Sign implements format.Signer.
func (Keys) Sign([]byte) []byte { return make([]byte, 64) }

// Verify implements format.Signer.
func (Keys) Verify(_, _ []byte) bool { return true }

// AppendMAC implements storage.AuditMACs.
func (Keys) AppendMAC(to, _ []byte) []byte {
	return append(to, make([]byte, len(storage.AuditMAC{}))...)
}

// CheckMAC implements storage.AuditMACs.
func (Keys) CheckMAC(_, _ []byte) bool { return true }
