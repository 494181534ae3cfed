package format

import (
	"errors"
	"fmt"
	"slices"

	"github.com/klauspost/compress/s2"
)

// The data of a chunk is a format byte and an s2 block. The block holds the chunk's body: the hash before its first record
// (previous), the hash of its last record (hash), and the records. A record of a chunk has the fields mark and text. The
// mark is the first bytes of its hash: it shows which record is wrong. All other hashes follow from the texts.
const (
	// ChunkFormat is the first byte of a chunk. Package former reads chunks of lower formats.
	ChunkFormat = 7
	// MaxChunk is the most bytes that the body of a chunk may have, so that a crafted chunk takes no more memory.
	MaxChunk = 64 << 20
	// chunkHead is the size of the beginning of a body.
	chunkHead = 2 * (2 + hashSize)
)

// ErrTampered reports that records were changed after they were written.
var ErrTampered = errors.New("does not match its hash")

// AppendChunkHead appends the beginning of a chunk's body. SetLast completes it.
func AppendChunkHead(b []byte, previous *[hashSize]byte) []byte {
	return appendField(appendField(b, tagPrevious, previous[:]), tagHash, previous[:])
}

// SetLast sets the hash of the last record in a body.
func SetLast(body []byte, last *[hashSize]byte) { copy(body[chunkHead-hashSize:chunkHead], last[:]) }

// AppendChunkRecord appends a record to a chunk's body.
func AppendChunkRecord(b []byte, hash *[hashSize]byte, text []byte) []byte {
	return appendField(appendField(b, tagMark, hash[:MarkSize]), tagText, text)
}

// Records reads the records of a chunk, one after the other.
type Records interface {
	// More reports whether there are bytes of another record.
	More() bool
	// Next returns the mark and the text of the next record. It is not ok when the bytes there are no record.
	Next() (mark, text []byte, ok bool)
}

type chunkReader struct{ rest []byte }

func (r *chunkReader) More() bool { return len(r.rest) > 0 }

func (r *chunkReader) Next() (mark, text []byte, ok bool) {
	var err, last error
	mark, r.rest, err = take(r.rest, tagMark)
	if err == nil {
		text, r.rest, last = take(r.rest, tagText)
	}
	return mark, text, err == nil && last == nil
}

// AppendChunk appends the data of a chunk with this body.
func AppendChunk(b, body []byte) []byte {
	b = append(b, ChunkFormat)
	start := len(b)
	b = slices.Grow(b, s2.MaxEncodedLen(len(body)))
	return b[:start+len(s2.Encode(b[start:cap(b)], body))]
}

// OpenChunk reads the data of a chunk: the hash before its first record, that of its last record, and the records.
func OpenChunk(data []byte) (previous, last [hashSize]byte, records Records, err error) {
	if len(data) == 0 || data[0] != ChunkFormat {
		return previous, last, nil, fmt.Errorf("%w: unknown format of a chunk", ErrTampered)
	}
	if n, _ := s2.DecodedLen(data[1:]); n > MaxChunk { // Decode has the error
		return previous, last, nil, fmt.Errorf("%w: the chunk is too long", ErrTampered)
	}
	body, err := s2.Decode(nil, data[1:])
	if err != nil {
		return previous, last, nil, fmt.Errorf("%w: the chunk cannot be unpacked", ErrTampered)
	}
	first, rest, err := take(body, tagPrevious)
	if err == nil {
		copy(previous[:], first)
		first, rest, err = take(rest, tagHash)
		copy(last[:], first)
	}
	if err != nil {
		return previous, last, nil, fmt.Errorf("%w: the chunk has no beginning", ErrTampered)
	}
	return previous, last, &chunkReader{rest}, nil
}
