package format

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/durward-gateway/durward/storage"
)

// A record of a segment has the fields organization, sequence, hash, mac (unless it has none) and text, in this order. It
// is one line. So that a line ends at a line end, and that the zeros which a power cut leaves are no part of a line, three
// bytes are escaped: 0, '\n' and the escape itself. A text is JSON on one line and has none of them.
const (
	escape = 0x1b
	// escaped is added to an escaped byte.
	escaped = 0x40
)

// Record holds the parts of a record of a segment.
type Record struct {
	Organization []byte
	Sequence     int64
	Hash         [hashSize]byte
	MAC          storage.AuditMAC // zero: it has none
	// Text is the entry, the bytes that are hashed.
	Text []byte
}

// maxSequence is more records than any chain has. Sums of sequences cannot overflow.
const maxSequence = 999_999_999_999_999_999

// maxHead is more than the number of bytes before a text.
const maxHead = 192

// AppendHead appends the beginning of a record's line. The text, which has this size, and a line end follow. mac is empty
// for a record that has none.
func AppendHead(b []byte, organization string, sequence int64, hash *[hashSize]byte, mac []byte, size int) []byte {
	var room [maxHead]byte
	head := appendField(room[:0], tagOrganization, organization)
	var number [8]byte
	binary.BigEndian.PutUint64(number[:], uint64(sequence))
	head = appendField(head, tagSequence, bytes.TrimLeft(number[:], "\x00"))
	head = appendField(head, tagHash, hash[:])
	if len(mac) > 0 {
		head = appendField(head, tagMAC, mac)
	}
	return appendEscaped(b, appendStart(head, tagText, size))
}

func special(c byte) bool { return c == 0 || c == '\n' || c == escape }

// appendEscaped appends bytes with their escapes. It looks at eight bytes at a time: most have nothing to escape.
func appendEscaped(b, plain []byte) []byte {
	from := 0
	for i := 0; i < len(plain); i++ {
		if i+8 <= len(plain) && !specialWord(binary.LittleEndian.Uint64(plain[i:])) {
			i += 7
		} else if c := plain[i]; special(c) {
			b = append(append(b, plain[from:i]...), escape, c+escaped)
			from = i + 1
		}
	}
	return append(b, plain[from:]...)
}

// specialWord reports whether one of eight bytes is special.
func specialWord(word uint64) bool {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	line, esc := word^('\n'*ones), word^(escape*ones)
	return ((word-ones)&^word|(line-ones)&^line|(esc-ones)&^esc)&highs != 0
}

// appendUnescaped appends a line without its escapes. It is not ok for a line that appendEscaped does not make.
func appendUnescaped(b, line []byte) (plain []byte, ok bool) {
	for i := 0; i < len(line); i++ {
		c := line[i]
		if c == escape {
			if i++; i == len(line) || !special(line[i]-escaped) {
				return b, false
			}
			c = line[i] - escaped
		}
		b = append(b, c)
	}
	return b, true
}

// IsRecord reports whether a line is that of a record. Other lines are JSON.
func IsRecord(line []byte) bool { return len(line) > 0 && line[0] == byte(tagOrganization) }

// ParseRecord reads the line of a record, without its line end. It uses scratch, and returns it for the next line. The
// record refers to the line or to scratch.
func ParseRecord(line, scratch []byte) (r Record, used []byte, err error) {
	if bytes.IndexByte(line, 0) >= 0 || bytes.IndexByte(line, '\n') >= 0 {
		return r, scratch, ErrMalformed
	}
	if bytes.IndexByte(line, escape) >= 0 {
		var ok bool
		if scratch, ok = appendUnescaped(scratch[:0], line); !ok {
			return r, scratch, ErrMalformed
		}
		line = scratch
	}
	r, err = parseFields(line)
	return r, scratch, err
}

func parseFields(b []byte) (r Record, err error) {
	if r.Organization, b, err = take(b, tagOrganization); err != nil {
		return r, err
	}
	if !ValidOrganization(r.Organization) {
		return r, fmt.Errorf("%w: its organization is no id", ErrMalformed)
	}
	number, b, err := take(b, tagSequence)
	if err != nil {
		return r, err
	}
	if r.Sequence, err = sequenceOf(number); err != nil {
		return r, err
	}
	hash, b, err := take(b, tagHash)
	if err != nil {
		return r, err
	}
	copy(r.Hash[:], hash)
	if len(b) > 0 && tag(b[0]) == tagMAC {
		var mac []byte
		if mac, b, err = take(b, tagMAC); err != nil {
			return r, err
		}
		if copy(r.MAC[:], mac); r.MAC == (storage.AuditMAC{}) {
			return r, fmt.Errorf("%w: its mac is no MAC", ErrMalformed)
		}
	}
	if r.Text, b, err = take(b, tagText); err == nil && len(b) > 0 {
		err = fmt.Errorf("%w: bytes follow its text", ErrMalformed)
	}
	return r, err
}

func sequenceOf(number []byte) (int64, error) {
	var wide [8]byte
	copy(wide[len(wide)-len(number):], number)
	sequence := binary.BigEndian.Uint64(wide[:])
	if number[0] == 0 || sequence > maxSequence {
		return 0, fmt.Errorf("%w: its sequence is impossible", ErrMalformed)
	}
	return int64(sequence), nil
}

// ValidOrganization reports whether id can be the id of an organization: a UUID, or "" for the gateway's own events. A
// text that needs escaping cannot be an id.
func ValidOrganization[T string | []byte](id T) bool {
	if len(id) > fields[tagOrganization].most {
		return false
	}
	for i := range len(id) {
		if c := id[i]; (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'z') && c != '-' && c != '_' && c != '.' {
			return false
		}
	}
	return true
}
