package format

import (
	"encoding/binary"
	"math/rand/v2"
	"time"
)

// idSize is the length of an id in characters.
const idSize = len("00000000-0000-7000-8000-000000000000")

// NewID returns a new UUID of version 7 (RFC 9562 section 5.7). Twelve of its random bits are replaced by the fraction of
// the millisecond (section 6.2, method 3). The ids of audit entries are not secret, so it uses the runtime's generator,
// which costs a tenth of a secure one.
func NewID(now time.Time) string {
	var text [idSize]byte
	putID(&text, now.UnixNano(), rand.Uint64()>>2) //nolint:gosec // no secret, see above
	return string(text[:])
}

// putID writes the id for a time and these 62 random bits.
func putID(text *[idSize]byte, nanos int64, random uint64) {
	millis, rest := nanos/1e6, nanos%1e6
	first := uint64(millis)<<16 | 0x7000 | uint64(rest)<<12/1e6
	last := 0x8000_0000_0000_0000 | random
	binary.BigEndian.PutUint64(text[:], digits(uint32(first>>32)))
	putPair(text[8:], digits(uint32(first)))
	putPair(text[18:], digits(uint32(last>>32)))
	binary.BigEndian.PutUint64(text[28:], digits(uint32(last)))
}

// putPair writes two groups of four digits, with a dash before each.
func putPair(text []byte, eight uint64) {
	text[0], text[5] = '-', '-'
	binary.BigEndian.PutUint32(text[1:], uint32(eight>>32))
	binary.BigEndian.PutUint32(text[6:], uint32(eight))
}

// digits returns a number in hexadecimal, with one digit in each byte. It computes all eight at a time.
func digits(number uint32) uint64 {
	const each = 0x0101010101010101
	v := uint64(number)
	v = (v | v<<16) & 0x0000ffff0000ffff
	v = (v | v<<8) & 0x00ff00ff00ff00ff
	v = (v | v<<4) & 0x0f0f0f0f0f0f0f0f
	letters := (v + 6*each) >> 4 & each
	return v + '0'*each + ('a'-'0'-10)*letters
}
