package audit

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/klauspost/compress/s2"

	"github.com/durward-gateway/durward/storage"
)

// A chunk's data is a format byte and an s2 block of: the hash before its first record (32 bytes), the hash of its last
// one (32), and each record as the length of its text (uvarint), the first bytes of its hash and the text. The hashes are
// computed again when it is read; the kept parts say where it is that something is wrong.
const (
	chunkFormat = 2
	// longChunkFormat is that of chunks before there were short entries. They are read alike.
	longChunkFormat = 1
	hashMark        = 4
	// maxChunk bounds what a chunk may hold, so that a crafted one takes no more memory.
	maxChunk = 64 << 20
)

// ErrTampered: records are not what was written.
var ErrTampered = errors.New("does not match its hash")

// chunkWriter collects records of one chain.
type chunkWriter struct {
	chunk storage.AuditChunk
	body  []byte
	last  [sha256.Size]byte
	from  int64 // the earliest time, Unix nanoseconds
	to    int64
}

// newChunk begins a chunk; buffer is used for its records.
func newChunk(node, segment, organization string, previous *[sha256.Size]byte, first int64, buffer []byte) *chunkWriter {
	w := &chunkWriter{
		chunk: storage.AuditChunk{OrganizationID: organization, Node: node, Segment: segment, First: first, Last: first - 1},
		body:  buffer[:0], from: math.MaxInt64, to: math.MinInt64,
	}
	w.body = append(w.body, previous[:]...)
	w.body = append(w.body, previous[:]...) // the place of the last hash
	return w
}

func (w *chunkWriter) add(r *record) {
	w.body = binary.AppendUvarint(w.body, uint64(len(r.text)))
	w.body = append(w.body, r.hash[:hashMark]...)
	w.body = append(w.body, r.text...)
	w.last = r.hash
	w.chunk.Last = r.sequence
	at := nanosOf(r.text)
	w.from, w.to = min(w.from, at), max(w.to, at)
}

// finish packs the chunk. scratch is used, and returned for the next one.
func (w *chunkWriter) finish(scratch []byte) (chunk storage.AuditChunk, used []byte) {
	copy(w.body[sha256.Size:], w.last[:])
	if most := s2.MaxEncodedLen(len(w.body)); cap(scratch) < most {
		scratch = make([]byte, most)
	}
	packed := s2.Encode(scratch[:cap(scratch)], w.body)
	w.chunk.Data = append(append(make([]byte, 0, 1+len(packed)), chunkFormat), packed...)
	// To is behind the last record whatever precision a store has.
	w.chunk.From, w.chunk.To = time.Unix(0, w.from).UTC().Truncate(precision), time.Unix(0, w.to).UTC().Truncate(precision).Add(precision)
	return w.chunk, scratch
}

// RecordError says which record of a chain is not what was written.
type RecordError struct {
	Sequence int64
	Err      error
}

func (e *RecordError) Error() string { return fmt.Sprintf("record %d: %v", e.Sequence, e.Err) }

// Unwrap gives the cause.
func (e *RecordError) Unwrap() error { return e.Err }

// ReadChunk returns a chunk's records with their hashes, which are computed anew. A *RecordError names the first that is
// not what was written; all that can be read is returned with it.
func ReadChunk(c *storage.AuditChunk) ([]storage.AuditRecord, error) {
	body, err := unpack(c.Data)
	if err != nil {
		return nil, &RecordError{c.First, err}
	}
	chain := storage.AuditChain{OrganizationID: c.OrganizationID, Node: c.Node, Segment: c.Segment, Sequence: c.First - 1}
	var want [sha256.Size]byte
	copy(chain.Hash[:], body)
	copy(want[:], body[sha256.Size:])
	body = body[2*sha256.Size:]
	var records []storage.AuditRecord
	var scratch []byte
	var wrong error
	for len(body) > 0 {
		size, n := binary.Uvarint(body)
		if n <= 0 || uint64(len(body)-n) < hashMark || size > uint64(len(body)-n-hashMark) {
			return records, cmp.Or(wrong, error(&RecordError{chain.Sequence + 1, fmt.Errorf("%w: its length is impossible", ErrTampered)}))
		}
		mark, text := body[n:n+hashMark], body[n+hashMark:n+hashMark+int(size)]
		body = body[n+hashMark+int(size):]
		r := storage.AuditRecord{OrganizationID: c.OrganizationID, Node: c.Node, Segment: c.Segment, Sequence: chain.Sequence + 1, Text: text, Previous: chain.Hash}
		r.Hash, scratch = next(&chain, text, scratch)
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

func unpack(data []byte) ([]byte, error) {
	if len(data) == 0 || (data[0] != chunkFormat && data[0] != longChunkFormat) {
		return nil, fmt.Errorf("%w: unknown format of a chunk", ErrTampered)
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
