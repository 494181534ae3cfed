package audit

import (
	"crypto/sha256"
	"math"
	"slices"
	"sync"

	"github.com/durward-gateway/durward/internal/audit/format"
	"github.com/durward-gateway/durward/storage"
)

// bodies holds bodies of chunks for reuse. A body that grows from nothing takes five times its size.
var bodies = sync.Pool{New: func() any { return new([]byte) }}

// chunkWriter collects the records of one chain for a chunk.
type chunkWriter struct {
	chunk storage.AuditChunk
	body  *[]byte
	last  [sha256.Size]byte
	from  int64 // the earliest time, Unix nanoseconds
	to    int64
}

// newChunk begins a chunk.
func newChunk(node, segment, organization string, previous *[sha256.Size]byte, first int64) *chunkWriter {
	body := bodies.Get().(*[]byte)
	*body = format.AppendChunkHead((*body)[:0], previous)
	return &chunkWriter{
		chunk: storage.AuditChunk{OrganizationID: organization, Node: node, Segment: segment, First: first, Last: first - 1},
		body:  body, from: math.MaxInt64, to: math.MinInt64,
	}
}

// expect makes room for a body of a size.
func (w *chunkWriter) expect(size int) { *w.body = slices.Grow(*w.body, size) }

// full reports whether the next record goes into another chunk.
func (w *chunkWriter) full() bool { return len(*w.body) > maxBatch }

// add adds a record with the time at, in Unix nanoseconds.
func (w *chunkWriter) add(sequence int64, hash *[sha256.Size]byte, text []byte, at int64) {
	*w.body = format.AppendChunkRecord(*w.body, hash, text)
	w.last = *hash
	w.chunk.Last = sequence
	w.from, w.to = min(w.from, at), max(w.to, at)
}

// finish compresses the chunk, which takes no more records. It uses scratch and returns it for the next chunk.
func (w *chunkWriter) finish(scratch []byte) (chunk storage.AuditChunk, used []byte) {
	format.SetLast(*w.body, &w.last)
	scratch = format.AppendChunk(scratch[:0], *w.body)
	bodies.Put(w.body)
	w.chunk.Data = append(make([]byte, 0, len(scratch)), scratch...)
	w.chunk.From, w.chunk.To = format.ChunkSpan(w.from, w.to)
	return w.chunk, scratch
}
