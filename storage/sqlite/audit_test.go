package sqlite

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"testing"
	"time"

	"github.com/durward-gateway/durward/storage"
)

// TestAuditHead checks that a write that must be recorded does not happen where the chain of audit records does not
// end where the store says; the error is no conflict of the write itself.
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

// TestRecordsWithoutHead checks that a chain is listed whose records somebody has added without the end of the chain. A
// verification reads only the organizations that are listed.
func TestRecordsWithoutHead(t *testing.T) {
	s := open(t, Options{})
	if err := s.RecordAudit(storage.WithAudit(t.Context(), &storage.Audited{OrganizationID: "o", Node: "n", Entries: []storage.AuditEntry{{Event: "e", At: time.Now()}}})); err != nil {
		t.Fatal(err)
	}
	if _, err := s.writer.ExecContext(t.Context(), `INSERT INTO audit_records (organization_id, node, segment, sequence, at, text, previous, hash)
		SELECT 'p', 'n', 'store', sequence, at, text, previous, hash FROM audit_records`); err != nil {
		t.Fatal(err)
	}
	chains, err := s.AuditChains(t.Context(), "")
	if err != nil || len(chains) != 2 || chains[1] != (storage.AuditChain{OrganizationID: "p", Node: "n", Segment: storage.AuditStoreSegment}) {
		t.Errorf("%+v, %v", chains, err)
	}
}

// TestChunkOfNoTime checks that a chunk is found for each end of a span after its To, even when somebody has put its From
// after that. A verification reads chunks page by page, each page up to the To of the last chunk of the page before.
func TestChunkOfNoTime(t *testing.T) {
	s := open(t, Options{})
	late, early := time.UnixMicro(9e15).UTC(), time.UnixMicro(1).UTC()
	if err := s.AddAuditChunks(t.Context(), []storage.AuditChunk{{OrganizationID: "o", Node: "n", Segment: "00000001", First: 2, Last: 2, From: late, To: early, Data: []byte{1}}}); err != nil {
		t.Fatal(err)
	}
	for _, to := range []time.Time{{}, time.UnixMicro(1e15)} {
		if chunks, err := s.AuditChunks(t.Context(), storage.AuditFilter{OrganizationID: "o", To: to, Limit: 9}); err != nil || len(chunks) != 1 {
			t.Errorf("to %v: %d chunks, %v", to, len(chunks), err)
		}
	}
}

// testMACs makes MACs with a key of its own.
type testMACs []byte

func (m testMACs) AppendMAC(to, message []byte) []byte {
	h := hmac.New(sha256.New, m)
	h.Write(message)
	return append(to, h.Sum(nil)[:len(storage.AuditMAC{})]...)
}

func (m testMACs) CheckMAC(message, mac []byte) bool {
	return bytes.Equal(m.AppendMAC(nil, message), mac)
}

// TestForgedAuditHead checks that nothing is recorded, and so nothing written, after a record that the gateway has
// not made, while it runs.
func TestForgedAuditHead(t *testing.T) {
	for name, forge := range map[string]string{
		"another hash":          `UPDATE audit_heads SET hash = zeroblob(32)`,
		"another sequence":      `UPDATE audit_heads SET sequence = 7`,
		"no MAC":                `UPDATE audit_heads SET mac = NULL`,
		"another MAC":           `UPDATE audit_heads SET mac = zeroblob(20)`,
		"a MAC of another size": `UPDATE audit_heads SET mac = x'00'`,
		"of another chain":      `UPDATE audit_heads SET (sequence, hash, mac) = (SELECT sequence, hash, mac FROM audit_heads h WHERE h.organization_id = 'p')`,
		"none yet, with a hash": `UPDATE audit_heads SET sequence = 0, mac = NULL`,
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, Options{})
			record := func(organization string) error {
				return s.RecordAudit(storage.WithAudit(t.Context(), &storage.Audited{
					OrganizationID: organization, Node: "n", Entries: []storage.AuditEntry{{Event: "e", At: time.Now()}}, MACs: testMACs("key"),
				}))
			}
			for _, organization := range []string{"o", "p", "o", "p"} {
				if err := record(organization); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := s.writer.ExecContext(t.Context(), forge+` WHERE organization_id = 'o'`); err != nil {
				t.Fatal(err)
			}
			if err := record("o"); !errors.Is(err, storage.ErrUnavailable) {
				t.Errorf("%v", err)
			}
			if err := record("p"); err != nil {
				t.Errorf("another chain: %v", err)
			}
			if records, err := s.AuditRecords(t.Context(), storage.AuditFilter{OrganizationID: "o"}); err != nil || len(records) != 2 {
				t.Errorf("%d records, %v", len(records), err)
			}
		})
	}
}
