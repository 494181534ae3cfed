package audit

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/klauspost/compress/s2"

	"github.com/durward-gateway/durward/storage"
)

// ErrTampered reports that records were changed after they were written.
var ErrTampered = errors.New("does not match its hash")

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
	body, err := unpack(c.Data)
	if err != nil {
		return nil, &RecordError{c.First, err}
	}
	chain := storage.AuditChain{OrganizationID: c.OrganizationID, Node: c.Node, Segment: c.Segment, Sequence: c.First - 1}
	var want [sha256.Size]byte
	copy(chain.Hash[:], body)
	copy(want[:], body[sha256.Size:])
	reader := chunkReader{body: body[2*sha256.Size:], format: c.Data[0], room: maxChunk}
	var records []storage.AuditRecord
	var scratch []byte
	var wrong error
	for len(reader.body) > 0 {
		mark, text, ok := reader.next()
		if !ok {
			return records, cmp.Or(wrong, error(&RecordError{chain.Sequence + 1, fmt.Errorf("%w: a length in it is impossible", ErrTampered)}))
		}
		r := storage.AuditRecord{OrganizationID: c.OrganizationID, Node: c.Node, Segment: c.Segment, Sequence: chain.Sequence + 1, Text: text, Previous: chain.Hash}
		r.Hash, scratch = next(&chain, text, scratch)
		if len(records) == maxRecords {
			return records, cmp.Or(wrong, error(&RecordError{r.Sequence, fmt.Errorf("%w: there are more than %d records", ErrTampered, maxRecords)}))
		}
		if wrong == nil && !bytes.Equal(r.Hash[:hashMark], mark) {
			wrong = &RecordError{r.Sequence, ErrTampered}
		}
		records = append(records, r)
	}
	if wrong == nil && (chain.Sequence != c.Last || chain.Hash != want) {
		wrong = &RecordError{chain.Sequence, fmt.Errorf("%w, or the chunk holds others than %d to %d", ErrTampered, c.First, c.Last)}
	}
	return records, wrong
}

// chunkReader reads the records of a chunk's body.
type chunkReader struct {
	body   []byte
	format byte
	room   int       // by how many bytes shared and repeated parts may still lengthen the texts
	parts  []string  // the shared part of each record so far; "": the record has none
	before briefPart // of the last record that begins with a brief id and a time
}

// next returns the next record's full text and the beginning of its hash. It is not ok when the bytes there are no
// record.
func (r *chunkReader) next() (mark, text []byte, ok bool) {
	size, ok := r.number()
	if !ok {
		return nil, nil, false
	}
	var kind uint64
	switch {
	case r.format <= plainChunkFormat:
	case r.format <= wholeChunkFormat:
		kind, size = size&sharingKind, size/2
	default:
		kind, size = size&(sharingKind|briefKind), size/4
	}
	if mark, ok = r.cut(hashMark); !ok {
		return nil, nil, false
	}
	if kind&briefKind != 0 {
		text, ok = r.brief(size)
	} else {
		text, ok = r.cut(size)
	}
	if !ok || r.format <= plainChunkFormat {
		return mark, text, ok
	}
	var part string
	if kind&sharingKind != 0 {
		if part, ok = r.part(); !ok {
			return nil, nil, false
		}
		if r.room -= len(text) + len(part); r.room < 0 {
			return nil, nil, false
		}
		text = joinShared(text, part)
	}
	r.parts = append(r.parts, part)
	return mark, text, true
}

// part returns the shared part of the record that is read.
func (r *chunkReader) part() (part string, ok bool) {
	back, ok := r.number()
	switch {
	case !ok || back > uint64(len(r.parts)):
		return "", false
	case back > 0:
		part = r.parts[uint64(len(r.parts))-back]
		return part, part != ""
	}
	size, ok := r.number()
	if !ok {
		return "", false
	}
	text, ok := r.cut(size)
	return string(text), ok && len(text) > 0
}

func (r *chunkReader) number() (uint64, bool) {
	number, n := binary.Uvarint(r.body)
	if n <= 0 {
		return 0, false
	}
	r.body = r.body[n:]
	return number, true
}

func (r *chunkReader) cut(size uint64) ([]byte, bool) {
	if size > uint64(len(r.body)) {
		return nil, false
	}
	part := r.body[:size]
	r.body = r.body[size:]
	return part, true
}

func unpack(data []byte) ([]byte, error) {
	if len(data) == 0 || data[0] < longChunkFormat || data[0] > rawChunkFormat {
		return nil, fmt.Errorf("%w: unknown format of a chunk", ErrTampered)
	}
	if data[0] == rawChunkFormat {
		if n := len(data) - 1; n > maxChunk || n < 2*sha256.Size {
			return nil, fmt.Errorf("%w: the chunk is too long or too short", ErrTampered)
		}
		return bytes.Clone(data[1:]), nil
	}
	if n, err := s2.DecodedLen(data[1:]); err != nil || n > maxChunk || n < 2*sha256.Size {
		return nil, fmt.Errorf("%w: the chunk cannot be unpacked", ErrTampered)
	}
	body, err := s2.Decode(nil, data[1:])
	if err != nil {
		return nil, fmt.Errorf("%w: the chunk cannot be unpacked", ErrTampered)
	}
	return body, nil
}
