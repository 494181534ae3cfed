package sqlite

import (
	"errors"
	"testing"
	"time"

	"github.com/durward-gateway/durward/storage"
)

// TestAuditHead: where the chain of audit records does not end where the store says, a write that is to be recorded does not happen; it
// is not the write that is in conflict with something.
func TestAuditHead(t *testing.T) {
	s := open(t, Options{})
	record := func() error {
		return s.RecordAudit(storage.WithAudit(t.Context(), &storage.Audited{OrganizationID: "o", Node: "n", Entries: []storage.AuditEntry{{Event: "e", At: time.Now()}}}))
	}
	for range 2 {
		if err := record(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.writer.ExecContext(t.Context(), `UPDATE audit_heads SET sequence = sequence - 1`); err != nil {
		t.Fatal(err)
	}
	if err := record(); !errors.Is(err, storage.ErrUnavailable) || errors.Is(err, storage.ErrConflict) {
		t.Errorf("%v", err)
	}
	if records, err := s.AuditRecords(t.Context(), storage.AuditFilter{OrganizationID: "o"}); err != nil || len(records) != 2 {
		t.Errorf("%d records, %v", len(records), err)
	}
}
