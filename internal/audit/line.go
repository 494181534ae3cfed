package audit

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"strconv"
	"time"

	"github.com/durward-gateway/durward/storage"
)

// A segment is a file of lines: one header, then records, then checkpoints among them. The last line of a segment that
// has ended is its final checkpoint. A record's line is
//
//	{"o":"<organization>","n":<sequence>,"h":"<hash, base64url>","m":"<MAC, base64url>","e":<entry>}
//
// byte for byte: the reader accepts no other spelling. Node, segment and previous hash are not repeated, they follow from
// where the line stands. The organization is: whose a line is must not hang on another line, which may be damaged. An entry
// with a shared part has it, or the sequence of the record that has it (see shared.go). No line has a NUL byte: where one stands, nothing has been
// written yet (see file_linux.go).
const (
	recordStart = `{"o":"`
	recordNext  = `","n":`
	recordHash  = `,"h":"`
	recordMAC   = `","m":"`
	recordEntry = `","e":`
	hashLength  = 43
	macLength   = 27
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

// hash is what checkpoints know a header by.
func (h *header) hash() string {
	sum := sha256.Sum256(marshal(h))
	return hex.EncodeToString(sum[:])
}

// Formats. In segments of format 5 records have no MACs. In those of format 4 ids, digests and outcomes are whole, in those of format 3 each outcome is a record of its own, in
// those of format 2 no entry has a shared part. In those of format 1 entries have the long form, and nothing stands behind
// the last line.
const (
	segmentFormat       = 6
	bareSegmentFormat   = 5
	wholeSegmentFormat  = 4
	sharedSegmentFormat = 3
	plainSegmentFormat  = 2
	longSegmentFormat   = 1
	// Of a node of which a checkpoint has this format each record has a MAC, unless that is a checkpoint over what was found.
	checkpointFormat     = 2
	bareCheckpointFormat = 1
)

// line is one line of a segment: a header, a checkpoint, or a record.
type line struct {
	header     *header
	checkpoint *storage.AuditCheckpoint
	record     record // when it is neither
}

// record is what a line says of a record. Its text is a part of the line.
type record struct {
	organization []byte
	sequence     int64
	hash         [sha256.Size]byte
	mac          storage.AuditMAC // zero: there is none
	text         []byte           // of the entry; only its own part when there is a shared one
	shared       *shared          // nil: there is none
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
	if own, part := splitShared(text); part != nil {
		digest := sha256.Sum256(part)
		return nextSharing(c, own, &digest, scratch)
	}
	if isShort(text) {
		scratch = append(appendLink(scratch[:0], c, linkMark), text...)
	} else {
		scratch = appendLongLink(scratch[:0], c, text)
	}
	return link(c, scratch), scratch
}

// nextSharing is next for an entry with a shared part of that hash.
func nextSharing(c *storage.AuditChain, own []byte, digest *[sha256.Size]byte, scratch []byte) (hash [sha256.Size]byte, used []byte) {
	scratch = append(appendLink(scratch[:0], c, sharedLinkMark), digest[:]...)
	scratch = append(scratch, own...)
	return link(c, scratch), scratch
}

// nextOf is next for a record as it stands in a segment.
func nextOf(c *storage.AuditChain, r *record, scratch []byte) (hash [sha256.Size]byte, used []byte) {
	if r.shared != nil {
		return nextSharing(c, r.text, &r.shared.digest, scratch)
	}
	return next(c, r.text, scratch)
}

// link moves a chain on by a record of which this is hashed.
func link(c *storage.AuditChain, hashed []byte) [sha256.Size]byte {
	c.Hash = sha256.Sum256(hashed)
	c.Sequence++
	return c.Hash
}

// Marks keep apart what is hashed of records with short entries, of those that have a shared part, and of those with long
// entries, where the first byte of a length, always 0, stands here.
const (
	linkMark       = 2
	sharedLinkMark = 3
)

// linkSize is the length of what appendLink appends.
const linkSize = sha256.Size + 1 + 8

// appendLink begins what is hashed of the next record of a chain when its entry is short: the hash before it, a mark and
// its sequence; the text follows. In front of the first record the chain's name is hashed, so that every hash depends on it.
func appendLink(b []byte, c *storage.AuditChain, mark byte) []byte {
	before := c.Hash
	if c.Sequence == 0 && before == ([sha256.Size]byte{}) {
		before = c.NameHash()
	}
	b = append(append(b, before[:]...), mark)
	return binary.BigEndian.AppendUint64(b, uint64(c.Sequence+1))
}

// appendLongLink is what is hashed of the next record of a chain when its entry is long, as storage.AuditChain.Next does.
func appendLongLink(b []byte, c *storage.AuditChain, text []byte) []byte {
	b = c.AppendName(append(b, c.Hash[:]...))
	b = binary.BigEndian.AppendUint64(b, uint64(len(text)))
	b = append(b, text...)
	return binary.BigEndian.AppendUint64(b, uint64(c.Sequence+1))
}

// appendRecord begins a record's line; its entry and lineEnd follow. A durward before MACs gave none.
func appendRecord(b []byte, organization string, sequence int64, hash *[sha256.Size]byte, mac []byte) []byte {
	b = append(b, recordStart...)
	b = append(b, organization...)
	b = append(b, recordNext...)
	b = strconv.AppendInt(b, sequence, 10)
	b = append(b, recordHash...)
	var text [hashLength]byte
	putDigest(&text, hash)
	if b = append(b, text[:]...); len(mac) > 0 {
		b = hashText.AppendEncode(append(b, recordMAC...), mac)
	}
	return append(b, recordEntry...)
}

// lineEnd follows the entry in a record's line.
const lineEnd = "}\n"

func appendCheckpoint(b []byte, c *storage.AuditCheckpoint) []byte {
	b = append(b, marshal(signedLine{Checkpoint: c.Data, Signature: c.Signature})...)
	return append(b, '\n')
}
