package format

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"

	"github.com/durward-gateway/durward/storage"
)

// A segment is a file of lines: one header, then records, with checkpoints among them. The last line of a segment that
// has ended is its final checkpoint. The header and the checkpoints are JSON. For a record's line see line.go. Node, segment
// and previous hash are not in it, because they follow from the position of the line. The organization is in every
// record: it must not depend on another line, which may be damaged. No line has a NUL byte. The first NUL byte ends the
// lines: a power cut may leave zeros, and former versions filled the file with zeros ahead.

// Header is the first line of a segment.
type Header struct {
	Format  int       `json:"format"`
	Node    string    `json:"node"`
	Segment string    `json:"segment"`
	Time    time.Time `json:"time"`
	// Checkpoint and Previous are the number and the hash of the node's last checkpoint before the segment. They are 0
	// and "" for the first segment.
	Checkpoint int64  `json:"checkpoint"`
	Previous   string `json:"previous,omitempty"`
}

// Hash returns the hash of a header. Checkpoints contain it.
func (h *Header) Hash() string {
	sum := sha256.Sum256(Marshal(h))
	return hex.EncodeToString(sum[:])
}

// These are the formats of segments and checkpoints. In segments of format 6 records are lines of JSON, which package former
// reads. In those of format 5 they have no MACs. In those of format 4 ids, digests and outcomes are also written in full.
// In those of format 3 each outcome is a record of its own. In those of format 2 no entry has a shared part. In those of
// format 1 entries have the long form, and no bytes follow the last line.
const (
	SegmentFormat     = 7
	JSONSegmentFormat = 6
	BareSegmentFormat = 5
	LongSegmentFormat = 1
	// A checkpoint of CheckpointFormat states that each record of its node has a MAC, unless its Found is set.
	CheckpointFormat     = 2
	BareCheckpointFormat = 1
)

// Line is one line of a segment: a header, a checkpoint, or a record.
type Line struct {
	Header     *Header
	Checkpoint *storage.AuditCheckpoint
	Record     Record // when it is neither
}

// signedLine is the line of a checkpoint. It keeps the bytes of the data, because the signature covers those.
type signedLine struct {
	Checkpoint json.RawMessage `json:"checkpoint"`
	Signature  []byte          `json:"signature"`
}

// AppendCheckpoint appends the line of a checkpoint.
func AppendCheckpoint(b []byte, c *storage.AuditCheckpoint) []byte {
	b = append(b, Marshal(signedLine{Checkpoint: c.Data, Signature: c.Signature})...)
	return append(b, '\n')
}

// Bare reports whether a durward without MACs wrote the segment. A segment without a first line is not bare: an attacker
// who removes that line must not get rid of the MACs by it.
func (h *Header) Bare() bool { return h != nil && h.Format <= BareSegmentFormat }
