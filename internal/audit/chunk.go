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

// The data of a chunk is a format byte and an s2 block. The block holds the hash before its first record (32 bytes), the
// hash of its last record (32), and the records. Each record is: four times the length of its text (uvarint), the first
// bytes of its hash, and the text. For an entry with a shared part (see shared.go) that text is the own part, and the
// first number is one more. After it comes the distance in records to an earlier record with the same shared part
// (uvarint), or 0, the length of the shared part (uvarint) and the shared part. For a text that begins with a brief id
// and its time, the first number is two more, and repeated bytes are left out: see briefchunk.go. ReadChunk computes the
// hashes again. The stored first bytes of the hashes show which record is wrong.
const (
	chunkFormat = 5
	// rawChunkFormat is the format of chunks that compression would hardly make shorter. They hold uncompressed data in
	// place of the s2 block.
	rawChunkFormat = 6
	// wholeChunkFormat is the format of chunks with full ids and digests, and outcomes in full. The first number of a
	// record is twice the length there. The number of the format changed because a durward without brief ids would not
	// show such entries, or would show the brief ids as they are.
	wholeChunkFormat = 4
	// sharedChunkFormat is the format of chunks in which each outcome is a record of its own. They are read like those of
	// wholeChunkFormat. The number of the format changed because a durward that does not know several outcomes in one
	// record would take that record for a call.
	sharedChunkFormat = 3
	// plainChunkFormat is the format of chunks without shared parts. The first number is the length.
	plainChunkFormat = 2
	// longChunkFormat is the format of chunks without short entries. They are read like plainChunkFormat.
	longChunkFormat = 1
	hashMark        = 4
	// maxChunk is the most bytes that a chunk may hold, so that a crafted chunk takes no more memory. maxWhole is the
	// most bytes of full texts in a chunk that is written: a query holds the texts of pageChunks chunks.
	maxChunk = 64 << 20
	maxWhole = 4 << 20
	// maxRecords is more records than a written chunk can have, however short they are.
	maxRecords = 1 << 18
)

// chunkWriter collects the records of one chain for a chunk.
type chunkWriter struct {
	number uint64 // counts the chunks that this process has begun
	chunk  storage.AuditChunk
	body   []byte // with the format byte of a raw chunk in front
	whole  int    // the length of all texts, with their shared parts
	last   [sha256.Size]byte
	from   int64 // the earliest time, Unix nanoseconds
	to     int64
	before briefPart
}

var chunksBegun atomic.Uint64

// bodyStart is the offset of a chunk's body in its data.
const bodyStart = 1

// newChunk begins a chunk. It builds the records in buffer, which must not be used elsewhere until the store has the
// chunk.
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

// full reports whether the next record goes into another chunk.
func (w *chunkWriter) full() bool { return len(w.body) > maxBatch || w.whole > maxWhole }

// add adds a record with the time at, in Unix nanoseconds.
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

// finish compresses the chunk. It uses scratch and returns it for the next chunk. The chunk's data may be the writer's
// buffer itself, which can be used again when the store has the chunk.
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

// chunkSpan returns the time span of a chunk whose earliest and latest records have these times. The end of the span is
// after the last record at any precision a store may have.
func chunkSpan(first, last int64) (from, to time.Time) {
	return time.Unix(0, first).UTC().Truncate(precision), time.Unix(0, last).UTC().Truncate(precision).Add(precision)
}

// packSample is the size of the sample from the middle of a chunk. Compressing it shows whether the chunk is worth
// compressing.
const packSample = 8 << 10

func worthPacking(sample, scratch []byte) bool {
	return len(s2.Encode(scratch[:cap(scratch)], sample)) < len(sample)/4*3
}
