package audit

import (
	"encoding/binary"
	"slices"
	"strconv"
)

// Most records of a chunk begin with a brief id and a time of 19 digits. A chunk stores such a record as: its kind with
// the length of the remaining bytes (uvarint), the first bytes of its hash, the id, the nanoseconds since the record
// before it (varint), the number of bytes after the time that it has in common with the record before it (uvarint), and
// the remaining bytes. A general compressor takes longer and finds less.
const (
	sharingKind = 1
	briefKind   = 2

	briefTime = len(sharingStart) + briefSize + len(shortTime)
	timeSize  = 19
	briefHead = briefTime + timeSize
)

// briefPart holds the time and the text that the next such record may repeat.
type briefPart struct {
	nanos int64
	rest  []byte // of the text, after the time
}

// cutBrief splits a text that begins with a brief id and a time. It is not ok for other texts, which are stored
// unchanged.
func cutBrief(text []byte) (id []byte, nanos int64, rest []byte, ok bool) {
	const at = len(sharingStart) + briefSize
	if len(text) < briefHead || string(text[:len(sharingStart)]) != sharingStart || string(text[at:briefTime]) != shortTime {
		return nil, 0, nil, false
	}
	if text[briefTime] < '1' || text[briefTime] > '8' { // no leading zero, and at most 63 bits
		return nil, 0, nil, false
	}
	for _, c := range text[briefTime:briefHead] {
		if c < '0' || c > '9' {
			return nil, 0, nil, false
		}
		nanos = 10*nanos + int64(c-'0')
	}
	return text[len(sharingStart):at], nanos, text[briefHead:], true
}

func (p *briefPart) append(b []byte, kind uint64, mark, id []byte, nanos int64, rest []byte) []byte {
	same := 0
	// Eight bytes are compared at a time. The last few are not worth a comparison.
	for most := min(len(rest), len(p.rest)) - 8; same <= most && binary.LittleEndian.Uint64(rest[same:]) == binary.LittleEndian.Uint64(p.rest[same:]); {
		same += 8
	}
	b = binary.AppendUvarint(b, 4*uint64(len(rest)-same)|kind)
	b = append(append(b, mark...), id...)
	b = binary.AppendVarint(b, nanos-p.nanos)
	b = binary.AppendUvarint(b, uint64(same))
	b = append(b, rest[same:]...)
	p.nanos, p.rest = nanos, append(p.rest[:0], rest...)
	return b
}

// brief reads a text that cutBrief has split. left is the number of bytes that are not repeated.
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
	text = append(make([]byte, 0, briefHead+1+int(same)+len(rest)), sharingStart...)
	text = append(append(text, id...), shortTime...)
	text = strconv.AppendInt(text, r.before.nanos, 10)
	start := len(text)
	text = append(append(text, r.before.rest[:same]...), rest...)
	r.before.rest = text[start:len(text):len(text)]
	return slices.Clip(text), true
}
