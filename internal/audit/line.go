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

// A segment is a file of lines: one header, then records, with checkpoints among them. The last line of a segment that
// has ended is its final checkpoint. A record's line is
//
//	{"o":"<organization>","n":<sequence>,"h":"<hash, base64url>","m":"<MAC, base64url>","e":<entry>}
//
// byte for byte: the reader accepts no other spelling. Node, segment and previous hash are not in it, because they follow
// from the position of the line. The organization is in every line: it must not depend on another line, which may be
// damaged. An entry with a shared part has that part, or the sequence of the record that has it (see shared.go). No line
// has a NUL byte. The first NUL byte ends the lines: former versions filled the file with zeros ahead, and a power cut
// may leave zeros.
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

// errLine reports that a line is no line of a segment.
var errLine = errors.New("malformed line")

// header is the first line of a segment.
type header struct {
	Format  int       `json:"format"`
	Node    string    `json:"node"`
	Segment string    `json:"segment"`
	Time    time.Time `json:"time"`
	// Checkpoint and Previous are the number and the hash of the node's last checkpoint before the segment. They are 0
	// and "" for the first segment.
	Checkpoint int64  `json:"checkpoint"`
	Previous   string `json:"previous,omitempty"`
}

// hash returns the hash of a header. Checkpoints contain it.
func (h *header) hash() string {
	sum := sha256.Sum256(marshal(h))
	return hex.EncodeToString(sum[:])
}

// These are the formats of segments and checkpoints. In segments of format 5 records have no MACs. In those of format 4
// ids, digests and outcomes are also written in full. In those of format 3 each outcome is a record of its own. In those
// of format 2 no entry has a shared part. In those of format 1 entries have the long form, and no bytes follow the last
// line.
const (
	segmentFormat       = 6
	bareSegmentFormat   = 5
	wholeSegmentFormat  = 4
	sharedSegmentFormat = 3
	plainSegmentFormat  = 2
	longSegmentFormat   = 1
	// A checkpoint of checkpointFormat states that each record of its node has a MAC, unless its Found is set.
	checkpointFormat     = 2
	bareCheckpointFormat = 1
)

// line is one line of a segment: a header, a checkpoint, or a record.
type line struct {
	header     *header
	checkpoint *storage.AuditCheckpoint
	record     record // when it is neither
}

// record holds the parts of a record's line. Its text is a slice of the line.
type record struct {
	organization []byte
	sequence     int64
	hash         [sha256.Size]byte
	mac          storage.AuditMAC // zero: it has none
	text         []byte           // the entry; only its own part when it has a shared part
	shared       *shared          // nil: the entry has no shared part
}

// signedLine is the line of a checkpoint. It keeps the bytes of the data, because the signature covers those.
type signedLine struct {
	Checkpoint json.RawMessage `json:"checkpoint"`
	Signature  []byte          `json:"signature"`
}

// validOrganization reports whether id can be the id of an organization: a UUID, or "" for the gateway's own events. A
// text that needs escaping cannot be an id.
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

// next adds a record with this text to the chain. It builds the bytes to hash in scratch.
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

// nextSharing does the work of next for an entry with a shared part of that hash.
func nextSharing(c *storage.AuditChain, own []byte, digest *[sha256.Size]byte, scratch []byte) (hash [sha256.Size]byte, used []byte) {
	scratch = append(appendLink(scratch[:0], c, sharedLinkMark), digest[:]...)
	scratch = append(scratch, own...)
	return link(c, scratch), scratch
}

// nextOf does the work of next for a record that was read from a segment.
func nextOf(c *storage.AuditChain, r *record, scratch []byte) (hash [sha256.Size]byte, used []byte) {
	if r.shared != nil {
		return nextSharing(c, r.text, &r.shared.digest, scratch)
	}
	return next(c, r.text, scratch)
}

// link adds a record to a chain. hashed holds the bytes to hash for it.
func link(c *storage.AuditChain, hashed []byte) [sha256.Size]byte {
	c.Hash = sha256.Sum256(hashed)
	c.Sequence++
	return c.Hash
}

// These marks separate the hashed bytes of records with short entries from those with a shared part, and from those with
// long entries. At the position of the mark, long entries have the first byte of a length, which is always 0.
const (
	linkMark       = 2
	sharedLinkMark = 3
)

// linkSize is the number of bytes that appendLink appends.
const linkSize = sha256.Size + 1 + 8

// appendLink appends the first of the bytes that are hashed for the next record of a chain when its entry is short: the
// hash before it, a mark and its sequence. The text follows. Before the first record of a chain it uses the hash of the
// chain's name, so that every hash depends on the name.
func appendLink(b []byte, c *storage.AuditChain, mark byte) []byte {
	before := c.Hash
	if c.Sequence == 0 && before == ([sha256.Size]byte{}) {
		before = c.NameHash()
	}
	b = append(append(b, before[:]...), mark)
	return binary.BigEndian.AppendUint64(b, uint64(c.Sequence+1))
}

// appendLongLink appends the bytes that are hashed for the next record of a chain when its entry is long, as
// storage.AuditChain.Next does.
func appendLongLink(b []byte, c *storage.AuditChain, text []byte) []byte {
	b = c.AppendName(append(b, c.Hash[:]...))
	b = binary.BigEndian.AppendUint64(b, uint64(len(text)))
	b = append(b, text...)
	return binary.BigEndian.AppendUint64(b, uint64(c.Sequence+1))
}

// appendRecord appends the beginning of a record's line. Its entry and lineEnd follow. mac is empty for lines of a
// durward without MACs.
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

// lineEnd is the text after the entry in a record's line.
const lineEnd = "}\n"

func appendCheckpoint(b []byte, c *storage.AuditCheckpoint) []byte {
	b = append(b, marshal(signedLine{Checkpoint: c.Data, Signature: c.Signature})...)
	return append(b, '\n')
}
