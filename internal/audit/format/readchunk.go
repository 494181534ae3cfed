package format

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"fmt"
	"time"

	"github.com/durward-gateway/durward/storage"
)

// Precision is the precision of times in a store.
const Precision = time.Microsecond

// OpenFunc opens the data of a chunk, as OpenChunk does.
type OpenFunc = func(data []byte) (previous, last [sha256.Size]byte, records Records, err error)

// ChunkSpan returns the time span of a chunk whose earliest and latest records have these times. The end of the span is
// after the last record at any precision a store may have.
func ChunkSpan(first, last int64) (from, to time.Time) {
	return time.Unix(0, first).UTC().Truncate(Precision), time.Unix(0, last).UTC().Truncate(Precision).Add(Precision)
}

// RecordError names the record of a chain that was changed.
type RecordError struct {
	Sequence int64
	Err      error
}

func (e *RecordError) Error() string { return fmt.Sprintf("record %d: %v", e.Sequence, e.Err) }

// Unwrap returns the cause.
func (e *RecordError) Unwrap() error { return e.Err }

// maxRecords is more records than a written chunk can have, however short they are.
const maxRecords = 1 << 18

// ReadChunk returns a chunk's records with their hashes, which it computes again. A *RecordError names the first record
// that was changed. All records that can be read are returned with it. open
// is OpenChunk, or reads former chunks too.
func ReadChunk(c *storage.AuditChunk, open OpenFunc) ([]storage.AuditRecord, error) {
	previous, want, reader, err := open(c.Data)
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
		r.Hash, scratch = Next(&chain, text, scratch)
		if len(records) == maxRecords {
			return records, cmp.Or(wrong, error(&RecordError{r.Sequence, fmt.Errorf("%w: there are more than %d records", ErrTampered, maxRecords)}))
		}
		if wrong == nil && !bytes.Equal(r.Hash[:len(mark)], mark) {
			wrong = &RecordError{r.Sequence, ErrTampered}
		}
		records = append(records, r)
	}
	if len(records) == 0 {
		return nil, &RecordError{c.First, fmt.Errorf("%w: the chunk has no record", ErrTampered)}
	}
	if wrong == nil && (chain.Sequence != c.Last || chain.Hash != want) {
		wrong = &RecordError{chain.Sequence, fmt.Errorf("%w, or the chunk holds others than %d to %d", ErrTampered, c.First, c.Last)}
	}
	return records, wrong
}

// ReadTexts returns a chunk's records without their hashes. Searches read millions of records, and show few. A chunk that
// was tampered with has fewer records.
func ReadTexts(c *storage.AuditChunk, open OpenFunc) []storage.AuditRecord {
	_, _, reader, err := open(c.Data)
	if err != nil {
		return nil
	}
	records := make([]storage.AuditRecord, 0, min(max(c.Last-c.First+1, 0), maxRecords))
	for reader.More() && len(records) < maxRecords {
		_, text, ok := reader.Next()
		if !ok {
			break
		}
		records = append(records, storage.AuditRecord{OrganizationID: c.OrganizationID, Node: c.Node, Segment: c.Segment, Sequence: c.First + int64(len(records)), Text: text})
	}
	return records
}
