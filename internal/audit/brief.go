package audit

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"math/rand/v2"
	"unsafe"

	"github.com/durward-gateway/durward/storage"
)

// What a call's entries name is written in brief: each character is hashed, copied three times, and takes a place in the
// store, where nothing makes it shorter. A brief id is the random part of an id, 60 bits in base64url; the rest of it follows from the
// time of the entry that it names. A brief digest is a SHA-256 in base64url. Whoever reads a record gets them whole, in hexadecimal.
const (
	briefSize       = 10
	briefDigestSize = hashLength
)

// Room is the place of the names of one entry.
type Room [briefSize + briefDigestSize]byte

// Name gives an entry the id of its time, in brief, and the digest of the arguments unless there are none. The texts stand in
// room, which nobody may change afterwards: memory of their own would cost as much as making them. A brief id may stand for
// the id of an entry for Append and Later, and for the call of an outcome for Outcome, nowhere else.
func Name(e *storage.AuditEntry, arguments []byte, room *Room) {
	random := rand.Uint64() >> 4 //nolint:gosec // no secret, see NewID
	binary.BigEndian.PutUint64(room[:], sixes(random>>12))
	binary.BigEndian.PutUint16(room[8:], uint16(sixes(random<<36&(1<<48-1))>>48))
	if len(arguments) > 0 {
		sum := sha256.Sum256(arguments)
		putDigest((*[briefDigestSize]byte)(room[briefSize:]), &sum)
	}
	text := unsafe.String(&room[0], len(room)) //nolint:gosec // what it says does not change
	if e.ID = text[:briefSize]; len(arguments) > 0 {
		e.ArgumentsDigest = text[briefSize:]
	}
}

// wholeID is the id that a brief one stands for, of an entry of that time; other ids are what they are.
func wholeID[T string | []byte](id T, nanos int64) string {
	random, ok := fromBrief(id)
	if !ok {
		return string(id)
	}
	var text [idSize]byte
	putID(&text, nanos, random)
	return string(text[:])
}

func isBrief(id []byte) bool {
	_, ok := fromBrief(id)
	return ok
}

// fromBrief reads a brief id, which has one spelling; it is not ok for other ids.
func fromBrief[T string | []byte](id T) (random uint64, ok bool) {
	if len(id) != briefSize {
		return 0, false
	}
	for i := range len(id) {
		c := id[i]
		var six byte
		switch {
		case c >= 'A' && c <= 'Z':
			six = c - 'A'
		case c >= 'a' && c <= 'z':
			six = c - 'a' + 26
		case c >= '0' && c <= '9':
			six = c - '0' + 52
		case c == '-':
			six = 62
		case c == '_':
			six = 63
		default:
			return 0, false
		}
		random = random<<6 | uint64(six)
	}
	return random, true
}

// appendWholeDigest writes the digest that a JSON string says in brief; it is not ok for other values.
func appendWholeDigest(b, value []byte) (long []byte, ok bool) {
	var sum [sha256.Size]byte
	brief := unquoted(value)
	if len(brief) != briefDigestSize {
		return b, false
	}
	if n, err := hashText.Decode(sum[:], brief); err != nil || n != len(sum) {
		return b, false
	}
	return append(hex.AppendEncode(append(b, '"'), sum[:]), '"'), true
}

// putDigest writes a digest in base64url.
func putDigest(text *[briefDigestSize]byte, sum *[sha256.Size]byte) {
	for i := range 5 {
		// Six bytes and the two behind them, which the next ones begin with.
		binary.BigEndian.PutUint64(text[8*i:], sixes(binary.BigEndian.Uint64(sum[6*i:])>>16))
	}
	last := sixes(uint64(binary.BigEndian.Uint16(sum[30:])) << 32)
	text[40], text[41], text[42] = byte(last>>56), byte(last>>48), byte(last>>40)
}

// sixes is 48 bits in base64url, a character in each byte: all eight at a time.
func sixes(bits uint64) uint64 {
	const each, highs = 0x0101010101010101, 0x8080808080808080
	v := bits&0xffffff000000<<8 | bits&0xffffff
	v = v&0x00fff00000fff000<<4 | v&0x00000fff00000fff
	v = v&0x0fc00fc00fc00fc0<<2 | v&0x003f003f003f003f
	from := func(six uint64) uint64 { return (v + (0x80-six)*each) & highs >> 7 } // 1 in the bytes that are at least six
	return v + 'A'*each + ('a'-'Z'-1)*from(26) - ('z'+1-'0')*from(52) - ('9'+1-'-')*from(62) + ('_'-'-'-1)*from(63)
}
