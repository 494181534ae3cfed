package sqlite

import (
	"testing"
	"time"

	"github.com/durward-gateway/durward/storage"
)

// TestPoison checks that a record that cannot be stored is told apart from an unavailable store, and is undone
// without the records stored beside it. No input to the store causes that any more: a trigger does.
func TestPoison(t *testing.T) {
	t.Parallel()
	s := open(t, Options{})
	for _, of := range []string{"usage_hours", "audit_chunks"} {
		trigger := `CREATE TRIGGER poison_` + of + ` BEFORE INSERT ON ` + of + ` WHEN NEW.organization_id = 'poison' BEGIN SELECT RAISE(ABORT, 'poison'); END`
		if _, err := s.writer.ExecContext(t.Context(), trigger); err != nil {
			t.Fatal(err)
		}
	}
	hour := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	batch := storage.UsageBatch{Node: "node", Number: 1}
	for _, organization := range []string{"a", "poison", "b", "c", "poison"} {
		batch.Usage = append(batch.Usage, storage.Usage{OrganizationID: organization, Hour: hour, UsageCounts: storage.UsageCounts{Requests: 1}})
	}
	refused, err := s.AddUsage(t.Context(), batch)
	if err != nil || refused == nil || len(refused.Usage) != 2 || refused.Usage[0].OrganizationID != "poison" || !storage.Unstorable(refused.Reason) {
		t.Fatalf("%+v, %v", refused, err)
	}
	for _, organization := range []string{"a", "b", "c"} {
		sums, err := s.Usage(t.Context(), storage.UsageFilter{OrganizationID: organization}, nil)
		if err != nil || len(sums) != 1 || sums[0].Requests != 1 {
			t.Errorf("%s: %+v, %v", organization, sums, err)
		}
	}
	chunk := storage.AuditChunk{OrganizationID: "poison", Node: "node", Segment: "1", First: 1, Last: 1, From: hour, To: hour}
	if err := s.AddAuditChunks(t.Context(), []storage.AuditChunk{chunk}); !storage.Unstorable(err) {
		t.Errorf("%v", err)
	}
}
