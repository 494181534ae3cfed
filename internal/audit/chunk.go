package audit

import (
	"crypto/sha256"
	"encoding/binary"
	"math"
	"sync/atomic"
	"time"

	"github.com/klauspost/compress/s2"

	"github.com/durward-gateway/durward/storage"
)

// A chunk's data is a format byte and an s2 block of: the hash before its first record (32 bytes), the hash of its last
// one (32), and each record as four times the length of its text (uvarint), the first bytes of its hash and the text. Of an
// entry with a shared part (see shared.go) that is the own part, and the first number is one more; it is followed by how many
// records before the one stands that has the same shared part (uvarint), or by 0, the length of the shared part (uvarint)
// and the shared part. What begins with a brief id and its time is not repeated, see briefchunk.go; the first number is two more then.
// The hashes are computed again when it is read; the kept parts say where it is that something is wrong.
const (
	chunkFormat = 5
	// rawChunkFormat is that of chunks which packing would hardly make shorter: what stands in others as an s2 block stands
	// there as it is.
	rawChunkFormat = 6
	// wholeChunkFormat is that of chunks in which ids, digests and outcomes are whole. They are read like these, which a
	// durward that does not know brief ones would not show, or show as they are.
	wholeChunkFormat = 4
	// sharedChunkFormat is that of chunks in which each outcome is a record of its own: a durward that knows no others would
	// take several in one for a call. They are read like these.
	sharedChunkFormat = 3
	// plainChunkFormat is that of chunks before there were shared parts: the first number is the length.
	plainChunkFormat = 2
	// longChunkFormat is that of chunks before there were short entries. They are read like those.
	longChunkFormat = 1
	hashMark        = 4
	// maxChunk bounds what a chunk may hold, so that a crafted one takes no more memory, and maxWhole the texts in one
	// that is written, whole: a query holds those of pageChunks.
	maxChunk = 64 << 20
	maxWhole = 4 << 20
	// maxRecords is more than there can be in one that is written, however short they are.
	maxRecords = 1 << 18
)

// chunkWriter collects records of one chain.
type chunkWriter struct {
	number uint64 // of all chunks that this process has begun
	chunk  storage.AuditChunk
	body   []byte // with the format byte of a raw chunk in front
	whole  int    // the length of all texts, whole
	last   [sha256.Size]byte
	from   int64 // the earliest time, Unix nanoseconds
	to     int64
	before briefPart
}

var chunksBegun atomic.Uint64

// bodyStart is where a chunk's body begins in its data.
const bodyStart = 1

// newChunk begins a chunk. Its records are put together in buffer, which belongs to it until the store has the chunk.
func newChunk(node, segment, organization string, previous *[sha256.Size]byte, first int64, buffer []byte) *chunkWriter {
	w := &chunkWriter{
		number: chunksBegun.Add(1),
		chunk:  storage.AuditChunk{OrganizationID: organization, Node: node, Segment: segment, First: first, Last: first - 1},
		body:   append(buffer[:0], rawChunkFormat), from: math.MaxInt64, to: math.MinInt64,
	}
	w.body = append(w.body, previous[:]...)
	w.body = append(w.body, previous[:]...) // the place of the last hash
	return w
}

// full reports whether the next record belongs into another chunk.
func (w *chunkWriter) full() bool { return len(w.body) > maxBatch || w.whole > maxWhole }

// add adds a record of that time.
func (w *chunkWriter) add(r *record, at int64) {
	s, kind := r.shared, uint64(0)
	if s != nil {
		kind = sharingKind
	}
	if id, nanos, rest, ok := cutBrief(r.text); ok {
		w.body = w.before.append(w.body, kind|briefKind, r.hash[:hashMark], id, nanos, rest)
	} else {
		w.body = binary.AppendUvarint(w.body, 4*uint64(len(r.text))|kind)
		w.body = append(w.body, r.hash[:hashMark]...)
		w.body = append(w.body, r.text...)
	}
	w.whole += len(r.text)
	if s != nil {
		w.whole += len(s.text)
		if s.chunk == w.number {
			w.body = binary.AppendUvarint(w.body, uint64(r.sequence-s.at))
		} else {
			w.body = binary.AppendUvarint(append(w.body, 0), uint64(len(s.text)))
			w.body = append(w.body, s.text...)
			s.chunk, s.at = w.number, r.sequence
		}
	}
	w.last = r.hash
	w.chunk.Last = r.sequence
	w.from, w.to = min(w.from, at), max(w.to, at)
}

// finish packs the chunk. scratch is used, and returned for the next one. The chunk's data may be the buffer itself, which can be
// used again when the store has it.
func (w *chunkWriter) finish(scratch []byte) (chunk storage.AuditChunk, used []byte) {
	body := w.body[bodyStart:]
	copy(body[sha256.Size:], w.last[:])
	if most := s2.MaxEncodedLen(len(body)); cap(scratch) < most {
		scratch = make([]byte, most)
	}
	w.chunk.Data = w.body
	if len(body) <= packSample || worthPacking(body[(len(body)-packSample)/2:][:packSample], scratch) {
		packed := s2.Encode(scratch[:cap(scratch)], body)
		w.chunk.Data = append(append(make([]byte, 0, bodyStart+len(packed)), chunkFormat), packed...)
	}
	w.chunk.From, w.chunk.To = chunkSpan(w.from, w.to)
	return w.chunk, scratch
}

// chunkSpan is the span of a chunk of which these are the times of the earliest record and the latest. Its end is behind the last record
// whatever precision a store has.
func chunkSpan(first, last int64) (from, to time.Time) {
	return time.Unix(0, first).UTC().Truncate(precision), time.Unix(0, last).UTC().Truncate(precision).Add(precision)
}

// packSample is how much of a chunk, from its middle, is packed to see whether that is worth it.
const packSample = 8 << 10

func worthPacking(sample, scratch []byte) bool {
	return len(s2.Encode(scratch[:cap(scratch)], sample)) < len(sample)/4*3
}
