package format

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"math/rand/v2"

	"github.com/durward-gateway/durward/storage"
)

// The entries of a call have short ids and digests, called brief. Each character of an entry is hashed and copied three
// times. It also takes space in the store, which does not compress ids. A brief id is the random part of an id: 60 bits
// in base64url. The rest of the id follows from the time of the entry that has it. A brief digest is a SHA-256 in
// base64url. Readers of a record get both in full, in hexadecimal.
const (
	briefSize       = 10
	briefDigestSize = 43
)

// hashText spells a digest in an entry.
var hashText = base64.RawURLEncoding.Strict()

// Name gives an entry a brief id for its time, and the brief digest of the arguments unless there are none. A brief id
// may stand for the id of an entry in Append and Later, and for the call of an outcome in Outcome. It is allowed nowhere
// else.
func Name(e *storage.AuditEntry, arguments []byte) {
	var text [briefSize + briefDigestSize]byte
	random := rand.Uint64() >> 4 //nolint:gosec // no secret, see NewID
	binary.BigEndian.PutUint64(text[:], sixes(random>>12))
	binary.BigEndian.PutUint16(text[8:], uint16(sixes(random<<36&(1<<48-1))>>48))
	if len(arguments) == 0 {
		e.ID = string(text[:briefSize])
		return
	}
	sum := sha256.Sum256(arguments)
	putDigest((*[briefDigestSize]byte)(text[briefSize:]), &sum)
	both := string(text[:])
	e.ID, e.ArgumentsDigest = both[:briefSize], both[briefSize:]
}

// WholeID returns the full id for a brief id of an entry with this time. It returns other ids unchanged.
func WholeID[T string | []byte](id T, nanos int64) string {
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

// fromBrief reads a brief id, which has only one spelling. It is not ok for other ids.
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

// appendWholeDigest appends the full digest for a JSON string with a brief digest. It is not ok for other values.
func appendWholeDigest(b, value []byte) (long []byte, ok bool) {
	var sum [sha256.Size]byte
	brief := unquoted(value)
	if len(brief) != briefDigestSize {
		return b, false
	}
	if n, _ := hashText.Decode(sum[:], brief); n != len(sum) { // less of what has an error
		return b, false
	}
	return append(hex.AppendEncode(append(b, '"'), sum[:]), '"'), true
}

// putDigest writes a digest in base64url.
func putDigest(text *[briefDigestSize]byte, sum *[sha256.Size]byte) {
	for i := range 5 {
		// Six bytes are encoded. The two bytes after them are shifted out: the next step begins with those.
		binary.BigEndian.PutUint64(text[8*i:], sixes(binary.BigEndian.Uint64(sum[6*i:])>>16))
	}
	last := sixes(uint64(binary.BigEndian.Uint16(sum[30:])) << 32)
	text[40], text[41], text[42] = byte(last>>56), byte(last>>48), byte(last>>40)
}

// sixes encodes 48 bits in base64url, one character in each byte. It computes all eight at a time.
func sixes(bits uint64) uint64 {
	const each, highs = 0x0101010101010101, 0x8080808080808080
	v := bits&0xffffff000000<<8 | bits&0xffffff
	v = v&0x00fff00000fff000<<4 | v&0x00000fff00000fff
	v = v&0x0fc00fc00fc00fc0<<2 | v&0x003f003f003f003f
	from := func(six uint64) uint64 { return (v + (0x80-six)*each) & highs >> 7 } // 1 in the bytes that are at least six
	return v + 'A'*each + ('a'-'Z'-1)*from(26) - ('z'+1-'0')*from(52) - ('9'+1-'-')*from(62) + ('_'-'-'-1)*from(63)
}
