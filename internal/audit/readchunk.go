package audit

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"fmt"

	"github.com/durward-gateway/durward/internal/audit/format"
	"github.com/durward-gateway/durward/internal/audit/former"
	"github.com/durward-gateway/durward/storage"
)

// ErrTampered reports that records were changed after they were written.
var ErrTampered = format.ErrTampered

// RecordError names the record of a chain that was changed.
type RecordError struct {
	Sequence int64
	Err      error
}

func (e *RecordError) Error() string { return fmt.Sprintf("record %d: %v", e.Sequence, e.Err) }

// Unwrap returns the cause.
func (e *RecordError) Unwrap() error { return e.Err }

// ReadChunk returns a chunk's records with their hashes, which it computes again. A *RecordError names the first record
// that was changed. All records that can be read are returned with it.
func ReadChunk(c *storage.AuditChunk) ([]storage.AuditRecord, error) {
	previous, want, reader, err := openChunk(c.Data)
	if err != nil {
		return nil, &RecordError{c.First, err}
	}
	chain := storage.AuditChain{OrganizationID: c.OrganizationID, Node: c.Node, Segment: c.Segment, Sequence: c.First - 1, Hash: previous}
	var records []storage.AuditRecord
	var scratch []byte
	var wrong error
	for reader.More() {
		mark, text, ok := reader.Next()
		if !ok {
			return records, cmp.Or(wrong, error(&RecordError{chain.Sequence + 1, fmt.Errorf("%w: a length in it is impossible", ErrTampered)}))
		}
		r := storage.AuditRecord{OrganizationID: c.OrganizationID, Node: c.Node, Segment: c.Segment, Sequence: chain.Sequence + 1, Text: text, Previous: chain.Hash}
		r.Hash, scratch = next(&chain, text, scratch)
		if len(records) == maxRecords {
			return records, cmp.Or(wrong, error(&RecordError{r.Sequence, fmt.Errorf("%w: there are more than %d records", ErrTampered, maxRecords)}))
		}
		if wrong == nil && !bytes.Equal(r.Hash[:len(mark)], mark) {
			wrong = &RecordError{r.Sequence, ErrTampered}
		}
		records = append(records, r)
	}
	if wrong == nil && (chain.Sequence != c.Last || chain.Hash != want) {
		wrong = &RecordError{chain.Sequence, fmt.Errorf("%w, or the chunk holds others than %d to %d", ErrTampered, c.First, c.Last)}
	}
	return records, wrong
}

func openChunk(data []byte) (previous, last [sha256.Size]byte, records format.Records, err error) {
	if former.IsChunk(data) {
		return former.OpenChunk(data)
	}
	return format.OpenChunk(data)
}
