package audit

import (
	"encoding/binary"
	"slices"
	"strconv"
)

// Most records of a chunk begin with a brief id and a time of 19 digits. In a chunk such a record is its kind with the length of what is
// left (uvarint), the first bytes of its hash, the id, the nanoseconds since the one before it (varint), how many bytes behind
// the time are those of the one before it (uvarint), and the bytes that are left. A general packer takes longer and finds less.
const (
	sharingKind = 1
	briefKind   = 2

	briefTime = len(sharingStart) + briefSize + len(shortTime)
	timeSize  = 19
	briefHead = briefTime + timeSize
)

// briefPart is what the next such record may repeat.
type briefPart struct {
	nanos int64
	rest  []byte // behind the time
}

// cutBrief cuts a text that begins so. What it does not cut is kept as it is.
func cutBrief(text []byte) (id []byte, nanos int64, rest []byte, ok bool) {
	const at = len(sharingStart) + briefSize
	if len(text) < briefHead || string(text[:len(sharingStart)]) != sharingStart || string(text[at:briefTime]) != shortTime {
		return nil, 0, nil, false
	}
	if text[briefTime] < '1' || text[briefTime] > '8' { // no zero before it, and nothing beyond 63 bits
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
	// Eight bytes at a time: what is left of the last ones is not worth a look.
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

// brief reads such a text, of which that much is left.
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
