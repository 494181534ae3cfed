package former

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"

	"github.com/klauspost/compress/s2"

	"github.com/durward-gateway/durward/internal/audit/format"
	"github.com/durward-gateway/durward/storage"
)

// The data of a former chunk is a format byte and an s2 block. The block holds the hash before its first record (32 bytes),
// the hash of its last record (32), and the records. Each record is: four times the length of its text (uvarint), the first
// bytes of its hash, and the text. For an entry with a shared part that text is the own part, and the first number is one
// more. After it comes the distance in records to an earlier record with the same shared part (uvarint), or 0, the length
// of the shared part (uvarint) and the shared part. For a text that begins with a brief id and its time, the first number
// is two more, and repeated bytes are left out: it is the id, the nanoseconds since the record before it (varint), the
// number of bytes after the time that it has in common with the record before it (uvarint), and the remaining bytes.
const (
	// rawChunk is the format of chunks that compression would hardly make shorter. They hold uncompressed data in place of
	// the s2 block.
	rawChunk = 6
	// briefChunk is the format of the other chunks.
	briefChunk = 5
	// wholeChunk is the format of chunks without brief records. The first number of a record is twice the length there.
	wholeChunk = 4
	// plainChunk is the format of chunks without shared parts. The first number is the length.
	plainChunk = 2
	// longChunk is the first format.
	longChunk = 1

	sharingKind = 1
	briefKind   = 2

	briefSize = 10
	briefTime = `","t":`
	timeSize  = 19
	briefHead = len(format.SharingStart) + briefSize + len(briefTime) + timeSize
)

// ReadChunk returns the records of a chunk of this or of a former version, see format.ReadChunk.
func ReadChunk(c *storage.AuditChunk) ([]storage.AuditRecord, error) {
	if IsChunk(c.Data) {
		return format.ReadChunk(c, OpenChunk)
	}
	return format.ReadChunk(c, format.OpenChunk)
}

// ReadTexts returns the records of a chunk without their hashes, see format.ReadTexts.
func ReadTexts(c *storage.AuditChunk) []storage.AuditRecord {
	if IsChunk(c.Data) {
		return format.ReadTexts(c, OpenChunk)
	}
	return format.ReadTexts(c, format.OpenChunk)
}

// IsChunk reports whether data is that of a former chunk.
func IsChunk(data []byte) bool {
	return len(data) > 0 && data[0] >= longChunk && data[0] <= rawChunk
}

// OpenChunk reads the beginning of a chunk: the hash before its first record and that of its last record.
func OpenChunk(data []byte) (previous, last [hashSize]byte, records format.Records, err error) {
	body, err := unpack(data)
	if err != nil {
		return previous, last, nil, err
	}
	copy(previous[:], body)
	copy(last[:], body[hashSize:])
	return previous, last, &chunkReader{body: body[2*hashSize:], format: data[0], room: format.MaxChunk}, nil
}

// chunkReader reads the records of a chunk's body.
type chunkReader struct {
	body   []byte
	format byte
	room   int       // by how many bytes shared and repeated parts may still lengthen the texts
	parts  []string  // the shared part of each record so far; "": the record has none
	before briefPart // of the last record that begins with a brief id and a time
}

// briefPart holds the time and the text that the next such record may repeat.
type briefPart struct {
	nanos int64
	rest  []byte // of the text, after the time
}

// More reports whether there are bytes of another record.
func (r *chunkReader) More() bool { return len(r.body) > 0 }

// Next returns the next record's full text and the beginning of its hash. It is not ok when the bytes there are no
// record.
func (r *chunkReader) Next() (mark, text []byte, ok bool) {
	size, ok := r.number()
	if !ok {
		return nil, nil, false
	}
	var kind uint64
	switch {
	case r.format <= plainChunk:
	case r.format <= wholeChunk:
		kind, size = size&sharingKind, size/2
	default:
		kind, size = size&(sharingKind|briefKind), size/4
	}
	if mark, ok = r.cut(format.MarkSize); !ok {
		return nil, nil, false
	}
	if kind&briefKind != 0 {
		text, ok = r.brief(size)
	} else {
		text, ok = r.cut(size)
	}
	if !ok || r.format <= plainChunk {
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
		whole := make([]byte, 0, len(text)+len(format.SharedStart)+len(part)+1)
		text = format.AppendShared(append(whole, text...), part)
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

// brief reads a text that begins with a brief id and a time. left is the number of bytes that are not repeated.
func (r *chunkReader) brief(left uint64) (text []byte, ok bool) {
	id, ok := r.cut(briefSize)
	if !ok {
		return nil, false
	}
	since, n := binary.Varint(r.body)
	if n <= 0 {
		return nil, false
	}
	r.body = r.body[n:]
	same, ok := r.number()
	if !ok || same > uint64(len(r.before.rest)) {
		return nil, false
	}
	rest, ok := r.cut(left)
	if r.room -= int(same); !ok || r.room < 0 {
		return nil, false
	}
	r.before.nanos += since
	text = append(make([]byte, 0, briefHead+1+int(same)+len(rest)), format.SharingStart...)
	text = append(append(text, id...), briefTime...)
	text = strconv.AppendInt(text, r.before.nanos, 10)
	start := len(text)
	text = append(append(text, r.before.rest[:same]...), rest...)
	r.before.rest = text[start:len(text):len(text)]
	return slices.Clip(text), true
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
	if !IsChunk(data) {
		return nil, fmt.Errorf("%w: unknown format of a chunk", format.ErrTampered)
	}
	if data[0] == rawChunk {
		if n := len(data) - 1; n > format.MaxChunk || n < 2*hashSize {
			return nil, fmt.Errorf("%w: the chunk is too long or too short", format.ErrTampered)
		}
		return bytes.Clone(data[1:]), nil
	}
	if n, err := s2.DecodedLen(data[1:]); err != nil || n > format.MaxChunk || n < 2*hashSize {
		return nil, fmt.Errorf("%w: the chunk cannot be unpacked", format.ErrTampered)
	}
	body, err := s2.Decode(nil, data[1:])
	if err != nil {
		return nil, fmt.Errorf("%w: the chunk cannot be unpacked", format.ErrTampered)
	}
	return body, nil
}
