package audit

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/durward-gateway/durward/storage"
)

// A segment is a file of lines: one header, then records, then checkpoints among them. The last line of a segment that
// has ended is its final checkpoint. A record's line is
//
//	{"o":"<organization>","n":<sequence>,"h":"<hash, base64url>","e":<entry>}
//
// byte for byte: the reader accepts no other spelling. Node, segment and previous hash are not repeated, they follow from
// where the line stands. No line has a NUL byte: where one stands, nothing has been written yet (see file_linux.go).
const (
	recordStart = `{"o":"`
	recordNext  = `","n":`
	recordHash  = `,"h":"`
	recordEntry = `","e":`
	hashLength  = 43
	// maxLine bounds a line of a segment. A checkpoint of 10,000 organizations takes 1.5 MB.
	maxLine = 64 << 20
)

var hashText = base64.RawURLEncoding.Strict()

// errLine: a line is no line of a segment.
var errLine = errors.New("malformed line")

// header is the first line of a segment.
type header struct {
	Format  int       `json:"format"`
	Node    string    `json:"node"`
	Segment string    `json:"segment"`
	Time    time.Time `json:"time"`
	// Checkpoint and Previous are number and hash of the node's last checkpoint before; 0 and "" for the first segment.
	Checkpoint int64  `json:"checkpoint"`
	Previous   string `json:"previous,omitempty"`
}

// Formats. In segments of format 1 entries have the long form, and nothing stands behind the last line.
const (
	segmentFormat     = 2
	longSegmentFormat = 1
	checkpointFormat  = 1
)

// line is one line of a segment: a header, a checkpoint, or a record.
type line struct {
	header     *header
	checkpoint *storage.AuditCheckpoint
	record     record // when it is neither
}

// record is what a line says of a record. Organization and text are parts of the line.
type record struct {
	organization []byte
	sequence     int64
	hash         [sha256.Size]byte
	text         []byte
}

// signedLine is the line of a checkpoint. The data is kept as its bytes: those are signed.
type signedLine struct {
	Checkpoint json.RawMessage `json:"checkpoint"`
	Signature  []byte          `json:"signature"`
}

// validOrganization: ids are uuids, or "" for the gateway's own events. What needs escaping cannot be an id.
func validOrganization[T string | []byte](id T) bool {
	if len(id) > 64 {
		return false
	}
	for i := range len(id) {
		if c := id[i]; (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'z') && c != '-' && c != '_' && c != '.' {
			return false
		}
	}
	return true
}

// next adds a record with this text to the chain. scratch is used for what is hashed.
func next(c *storage.AuditChain, text, scratch []byte) (hash [sha256.Size]byte, used []byte) {
	if isShort(text) {
		scratch = append(appendLink(scratch[:0], c), text...)
	} else {
		scratch = appendLongLink(scratch[:0], c, text)
	}
	return link(c, scratch), scratch
}

// link moves a chain on by a record of which this is hashed.
func link(c *storage.AuditChain, hashed []byte) [sha256.Size]byte {
	c.Hash = sha256.Sum256(hashed)
	c.Sequence++
	return c.Hash
}

// linkMark keeps what is hashed of records with short entries apart from what is hashed of those with long ones, where
// the first byte of a length, always 0, stands here.
const linkMark = 2

// linkSize is the length of what appendLink appends.
const linkSize = sha256.Size + 1 + 8

// appendLink begins what is hashed of the next record of a chain when its entry is short: the hash before it, linkMark and
// its sequence; the text follows. In front of the first record the chain's name is hashed, so that every hash depends on it.
func appendLink(b []byte, c *storage.AuditChain) []byte {
	before := c.Hash
	if c.Sequence == 0 && before == ([sha256.Size]byte{}) {
		before = chainStart(c)
	}
	b = append(append(b, before[:]...), linkMark)
	return binary.BigEndian.AppendUint64(b, uint64(c.Sequence+1))
}

func chainStart(c *storage.AuditChain) [sha256.Size]byte {
	return sha256.Sum256(appendChainName([]byte("durward audit chain\x00"), c))
}

// appendLongLink is what is hashed of the next record of a chain when its entry is long, as storage.AuditChain.Next does.
func appendLongLink(b []byte, c *storage.AuditChain, text []byte) []byte {
	b = appendChainName(append(b, c.Hash[:]...), c)
	b = binary.BigEndian.AppendUint64(b, uint64(len(text)))
	b = append(b, text...)
	return binary.BigEndian.AppendUint64(b, uint64(c.Sequence+1))
}

func appendChainName(b []byte, c *storage.AuditChain) []byte {
	for _, field := range [...]string{c.OrganizationID, c.Node, c.Segment} {
		b = binary.BigEndian.AppendUint64(b, uint64(len(field)))
		b = append(b, field...)
	}
	return b
}

func appendRecord(b []byte, organization string, sequence int64, hash *[sha256.Size]byte, text []byte) []byte {
	b = append(b, recordStart...)
	b = append(b, organization...)
	b = append(b, recordNext...)
	b = strconv.AppendInt(b, sequence, 10)
	b = append(b, recordHash...)
	b = hashText.AppendEncode(b, hash[:])
	b = append(b, recordEntry...)
	b = append(b, text...)
	return append(b, '}', '\n')
}

// parseLine reads a line without its line end. The texts of records are not looked into: their hashes tell whether they
// are what was written. The line's bytes are kept by what is returned.
func parseLine(b []byte) (line, error) {
	if bytes.HasPrefix(b, []byte(recordStart)) {
		r, err := parseRecord(b)
		return line{record: r}, err
	}
	if bytes.HasPrefix(b, []byte(`{"checkpoint":{`)) {
		c, err := parseSigned(b)
		return line{checkpoint: c}, err
	}
	var h header
	if err := json.Unmarshal(b, &h); err != nil || !bytes.Equal(marshal(h), b) {
		return line{}, errLine
	}
	if h.Format != segmentFormat && h.Format != longSegmentFormat {
		return line{}, fmt.Errorf("%w: format %d is not known to this durward", errLine, h.Format)
	}
	return line{header: &h}, nil
}

func parseRecord(b []byte) (r record, err error) {
	organization, rest, ok := bytes.Cut(b[len(recordStart):], []byte(recordNext))
	if !ok || !validOrganization(organization) {
		return r, errLine
	}
	number, rest, ok := bytes.Cut(rest, []byte(recordHash))
	if !ok || len(number) == 0 || len(number) > 18 || number[0] == '0' {
		return r, errLine
	}
	for _, c := range number {
		if c < '0' || c > '9' {
			return r, errLine
		}
		r.sequence = 10*r.sequence + int64(c-'0')
	}
	const least = hashLength + len(recordEntry) + len("{}}")
	if len(rest) < least || string(rest[hashLength:hashLength+len(recordEntry)]) != recordEntry || rest[len(rest)-1] != '}' {
		return r, errLine
	}
	r.organization, r.text = organization, rest[hashLength+len(recordEntry):len(rest)-1]
	if n, err := hashText.Decode(r.hash[:], rest[:hashLength]); err != nil || n != len(r.hash) {
		return r, errLine
	}
	return r, nil
}

func parseSigned(b []byte) (*storage.AuditCheckpoint, error) {
	var s signedLine
	if err := json.Unmarshal(b, &s); err != nil || !bytes.Equal(marshal(s), b) {
		return nil, errLine
	}
	said, err := readCheckpoint(s.Checkpoint)
	if err != nil {
		return nil, err
	}
	return &storage.AuditCheckpoint{
		Node: said.Node, Segment: said.Segment, Number: said.Number, At: said.Time, Data: s.Checkpoint, Signature: s.Signature,
	}, nil
}

func appendCheckpoint(b []byte, c *storage.AuditCheckpoint) []byte {
	b = append(b, marshal(signedLine{Checkpoint: c.Data, Signature: c.Signature})...)
	return append(b, '\n')
}
