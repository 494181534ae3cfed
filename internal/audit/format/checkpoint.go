package format

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"github.com/durward-gateway/durward/storage"
)

// Signer signs checkpoints. It is a seal.Signer, whose keys are derived from the data keys.
type Signer interface {
	Sign(message []byte) []byte
	Verifier
}

// Verifier checks signatures of checkpoints. It is a seal.Signer, or a seal.PublicKeys for auditors who must not hold the
// master key.
type Verifier interface {
	Verify(message, signature []byte) bool
}

// Checkpoint lists the last record of each chain of a node. Checkpoints of a node are numbered across all its segments,
// and each holds the hash of the one before, so none can be left out. Each record also holds the hash of the record
// before it, so a checkpoint covers every earlier record of a chain.
type Checkpoint struct {
	Format  int       `json:"format"`
	Node    string    `json:"node"`
	Segment string    `json:"segment"`
	Number  int64     `json:"number"`
	Time    time.Time `json:"time"`
	// Previous is the hash of checkpoint Number-1. It is "" in the first checkpoint.
	Previous string `json:"previous,omitempty"`
	// Header is the hash of the segment's first line.
	Header string `json:"header,omitempty"`
	// Final reports whether the segment has ended. Chains then lists all chains of the segment, else only those with new
	// records since the last checkpoint.
	Final bool `json:"final,omitempty"`
	// Found reports whether the signer did not write the records since the checkpoint before. It found them without MACs,
	// as a version of durward without MACs leaves them when it is killed.
	Found bool `json:"found,omitempty"`
	// Cut is the length in bytes of an unfinished last line. A crash left that line, and the next start cut it away.
	Cut    int64  `json:"cut,omitempty"`
	Chains []Head `json:"chains"`
}

// Head is the last record of a chain. Its segment is the checkpoint's, or storage.AuditStoreSegment for the chain of the
// store's own records.
type Head struct {
	Organization string `json:"organization_id"`
	Segment      string `json:"segment"`
	Sequence     int64  `json:"sequence"`
	Hash         string `json:"hash"` // hex
}

// HeadOf returns the head of a chain.
func HeadOf(c *storage.AuditChain) Head {
	return Head{Organization: c.OrganizationID, Segment: c.Segment, Sequence: c.Sequence, Hash: hex.EncodeToString(c.Hash[:])}
}

// domain separates signatures of checkpoints from any other use of the key.
const domain = "durward audit checkpoint\x00"

// Sign returns the signed checkpoint.
func (c *Checkpoint) Sign(with Signer) storage.AuditCheckpoint {
	data := Marshal(c)
	return storage.AuditCheckpoint{
		Node: c.Node, Segment: c.Segment, Number: c.Number, At: c.Time, Data: data, Signature: with.Sign(append([]byte(domain), data...)),
	}
}

// ReadCheckpoint reads the data of a checkpoint. It accepts only one spelling.
func ReadCheckpoint(data []byte) (Checkpoint, error) {
	var c Checkpoint
	if err := json.Unmarshal(data, &c); err != nil || c.Number < 1 || !bytes.Equal(Marshal(c), data) {
		return Checkpoint{}, fmt.Errorf("%w: checkpoint", ErrMalformed)
	}
	if c.Format < BareCheckpointFormat || c.Format > CheckpointFormat {
		return Checkpoint{}, fmt.Errorf("%w: checkpoint of format %d is not known to this durward", ErrMalformed, c.Format)
	}
	return c, nil
}

// Sealing reports whether the checkpoint states that each record of its node has a MAC.
func (c *Checkpoint) Sealing() bool { return c.Format > BareCheckpointFormat && !c.Found }

// CheckpointHash returns the hash of a checkpoint. The next checkpoint and the header of the next segment contain it.
func CheckpointHash(c *storage.AuditCheckpoint) string {
	h := sha256.New()
	h.Write(c.Data)
	h.Write(c.Signature)
	return hex.EncodeToString(h.Sum(nil))
}

// CheckSignature reports whether the data of a checkpoint has a valid signature.
func CheckSignature(c *storage.AuditCheckpoint, keys Verifier) bool {
	return keys.Verify(append([]byte(domain), c.Data...), c.Signature)
}
