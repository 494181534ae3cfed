package audit

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/klauspost/compress/s2"

	"github.com/durward-gateway/durward/storage"
)

// A chunk's data is a format byte and an s2 block of: the hash before its first record (32 bytes), the hash of its last
// one (32), and each record as the length of its text (uvarint), the first bytes of its hash and the text. The hashes are
// computed again when it is read; the kept parts say where it is that something is wrong.
const (
	chunkFormat = 1
	hashMark    = 4
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
	from  []byte // the earliest time, as it is written
	to    []byte
}

// newChunk begins a chunk; buffer is used for its records.
func newChunk(node, segment, organization string, previous *[sha256.Size]byte, first int64, buffer []byte) *chunkWriter {
	w := &chunkWriter{
		chunk: storage.AuditChunk{OrganizationID: organization, Node: node, Segment: segment, First: first, Last: first - 1},
		body:  buffer[:0], from: make([]byte, 0, len(timeFormat)), to: make([]byte, 0, len(timeFormat)),
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
	at := timeText(r.text)
	if len(w.from) == 0 || bytes.Compare(at, w.from) < 0 {
		w.from = append(w.from[:0], at...)
	}
	if bytes.Compare(at, w.to) > 0 {
		w.to = append(w.to[:0], at...)
	}
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
	w.chunk.From, w.chunk.To = parseTime(w.from).Truncate(precision), parseTime(w.to).Truncate(precision).Add(precision)
	return w.chunk, scratch
}

// timeText is an entry's time as appendEntry writes it: in UTC and of one length, so that the order of the texts is that
// of the times. Of a text that appendEntry did not write it is anything.
func timeText(text []byte) []byte {
	const before = len(`{"id":"`) + 36 + len(`","time":"`)
	return text[min(len(text), before):min(len(text), before+len(timeFormat))]
}

func parseTime(text []byte) time.Time {
	at, _ := time.Parse(timeFormat, string(text)) // only a tampered record has none
	return at
}

// timeOf is the time of any entry's text.
func timeOf(text []byte) time.Time {
	if at := parseTime(timeText(text)); !at.IsZero() {
		return at
	}
	var e struct {
		At time.Time `json:"time"`
	}
	_ = json.Unmarshal(text, &e) // only a tampered record has none
	return e.At
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
	if len(data) == 0 || data[0] != chunkFormat {
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
