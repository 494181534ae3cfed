package audit

import (
	"encoding/binary"
	"math/rand/v2"
	"time"
)

// idSize is the length of an id.
const idSize = len("00000000-0000-7000-8000-000000000000")

// NewID makes a uuid v7 (RFC 9562 section 5.7), with parts of the millisecond in place of twelve random bits (section 6.2,
// method 3). The ids of audit entries are no secrets: the runtime's generator will do, and costs a tenth.
func NewID(now time.Time) string {
	var text [idSize]byte
	putID(&text, now.UnixNano(), rand.Uint64()>>2) //nolint:gosec // no secret, see above
	return string(text[:])
}

// putID writes the id of a time with these 62 random bits.
func putID(text *[idSize]byte, nanos int64, random uint64) {
	millis, rest := nanos/1e6, nanos%1e6
	first := uint64(millis)<<16 | 0x7000 | uint64(rest)<<12/1e6
	last := 0x8000_0000_0000_0000 | random
	binary.BigEndian.PutUint64(text[:], digits(uint32(first>>32)))
	putPair(text[8:], digits(uint32(first)))
	putPair(text[18:], digits(uint32(last>>32)))
	binary.BigEndian.PutUint64(text[28:], digits(uint32(last)))
}

// putPair writes four digits and four more, a dash before each.
func putPair(text []byte, eight uint64) {
	text[0], text[5] = '-', '-'
	binary.BigEndian.PutUint32(text[1:], uint32(eight>>32))
	binary.BigEndian.PutUint32(text[6:], uint32(eight))
}

// digits is a number in hexadecimal, a digit in each byte: all eight at a time.
func digits(number uint32) uint64 {
	const each = 0x0101010101010101
	v := uint64(number)
	v = (v | v<<16) & 0x0000ffff0000ffff
	v = (v | v<<8) & 0x00ff00ff00ff00ff
	v = (v | v<<4) & 0x0f0f0f0f0f0f0f0f
	letters := (v + 6*each) >> 4 & each
	return v + '0'*each + ('a'-'0'-10)*letters
}
