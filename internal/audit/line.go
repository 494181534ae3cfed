package audit

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"time"

	"github.com/durward-gateway/durward/internal/audit/format"
	"github.com/durward-gateway/durward/storage"
)

// A segment is a file of lines: one header, then records, with checkpoints among them. The last line of a segment that
// has ended is its final checkpoint. The header and the checkpoints are JSON. Package format has the form of a record. Node,
// segment and previous hash are not in it, because they follow from the position of the line. The organization is in
// every record: it must not depend on another line, which may be damaged. No line has a NUL byte. The first NUL byte ends
// the lines: a power cut may leave zeros, and former versions filled the file with zeros ahead.

// maxLine bounds a line of a segment. A checkpoint of 10,000 organizations takes 1.5 MB.
const maxLine = 64 << 20

// hashText spells a digest in an entry.
var hashText = base64.RawURLEncoding.Strict()

// errLine reports that a line is no line of a segment.
var errLine = format.ErrMalformed

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

// These are the formats of segments and checkpoints. In segments of format 6 records are lines of JSON, which package former
// reads. In those of format 5 they have no MACs. In those of format 4 ids, digests and outcomes are also written in full. In those of format 3 each outcome is a record of its own. In those
// of format 2 no entry has a shared part. In those of format 1 entries have the long form, and no bytes follow the last
// line.
const (
	segmentFormat       = 7
	jsonSegmentFormat   = 6
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
	record     format.Record // when it is neither
}

// signedLine is the line of a checkpoint. It keeps the bytes of the data, because the signature covers those.
type signedLine struct {
	Checkpoint json.RawMessage `json:"checkpoint"`
	Signature  []byte          `json:"signature"`
}

// next adds a record with this text to the chain. It builds the bytes to hash in scratch.
func next(c *storage.AuditChain, text, scratch []byte) (hash [sha256.Size]byte, used []byte) {
	own, part := format.SplitShared(text)
	switch {
	case part != nil:
		digest := sha256.Sum256(part)
		scratch = append(appendLink(scratch[:0], c, sharedLinkMark), digest[:]...)
		scratch = append(scratch, own...)
	case isShort(text):
		scratch = append(appendLink(scratch[:0], c, linkMark), text...)
	default:
		scratch = appendLongLink(scratch[:0], c, text)
	}
	return link(c, scratch), scratch
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

func appendCheckpoint(b []byte, c *storage.AuditCheckpoint) []byte {
	b = append(b, marshal(signedLine{Checkpoint: c.Data, Signature: c.Signature})...)
	return append(b, '\n')
}
