package audit

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"github.com/durward-gateway/durward/storage"
)

// Signer signs checkpoints: seal.Signer, whose keys are derived from the data keys.
type Signer interface {
	Sign(message []byte) []byte
	Verifier
}

// Verifier checks signatures of checkpoints: seal.Signer, or seal.PublicKeys for auditors who must not hold the master key.
type Verifier interface {
	Verify(message, signature []byte) bool
}

// Checkpoint says where chains of a node stand. Checkpoints of a node are numbered over all its segments, and each holds
// the hash of the one before: none can be left out, and what one says covers every earlier record of a chain, because each
// record holds the hash of the one before it.
type Checkpoint struct {
	Format  int       `json:"format"`
	Node    string    `json:"node"`
	Segment string    `json:"segment"`
	Number  int64     `json:"number"`
	Time    time.Time `json:"time"`
	// Previous is the hash of checkpoint Number-1, "" in the first one.
	Previous string `json:"previous,omitempty"`
	// Header is the hash of the segment's first line.
	Header string `json:"header,omitempty"`
	// Final: the segment has ended. Chains are all of its chains then, else those that moved since the last checkpoint.
	Final bool `json:"final,omitempty"`
	// Found: who signed it has not written the records since the checkpoint before, and found them without MACs, as a durward before
	// MACs leaves them when it is killed.
	Found bool `json:"found,omitempty"`
	// Cut is the length in bytes of an unfinished last line that a crash left and the next start cut away.
	Cut    int64  `json:"cut,omitempty"`
	Chains []Head `json:"chains"`
}

// Head is where a chain stands. Its segment is the checkpoint's, or storage.AuditStoreSegment for the chain of what the
// store itself records.
type Head struct {
	Organization string `json:"organization_id"`
	Segment      string `json:"segment"`
	Sequence     int64  `json:"sequence"`
	Hash         string `json:"hash"` // hex
}

func headOf(c *storage.AuditChain) Head {
	return Head{Organization: c.OrganizationID, Segment: c.Segment, Sequence: c.Sequence, Hash: hex.EncodeToString(c.Hash[:])}
}

// domain keeps signatures of checkpoints apart from any other use of the key.
const domain = "durward audit checkpoint\x00"

func (c *Checkpoint) sign(with Signer) storage.AuditCheckpoint {
	data := marshal(c)
	return storage.AuditCheckpoint{
		Node: c.Node, Segment: c.Segment, Number: c.Number, At: c.Time, Data: data, Signature: with.Sign(append([]byte(domain), data...)),
	}
}

// readCheckpoint reads the data of a checkpoint, which has one spelling.
func readCheckpoint(data []byte) (Checkpoint, error) {
	var c Checkpoint
	if err := json.Unmarshal(data, &c); err != nil || c.Number < 1 || !bytes.Equal(marshal(c), data) {
		return Checkpoint{}, fmt.Errorf("%w: checkpoint", errLine)
	}
	if c.Format < bareCheckpointFormat || c.Format > checkpointFormat {
		return Checkpoint{}, fmt.Errorf("%w: checkpoint of format %d is not known to this durward", errLine, c.Format)
	}
	return c, nil
}

// sealing reports whether each record of the node has a MAC.
func (c *Checkpoint) sealing() bool { return c.Format > bareCheckpointFormat && !c.Found }

// checkpointHash is what the next checkpoint, and the next segment, know a checkpoint by.
func checkpointHash(c *storage.AuditCheckpoint) string {
	h := sha256.New()
	h.Write(c.Data)
	h.Write(c.Signature)
	return hex.EncodeToString(h.Sum(nil))
}

// checkSignature reports whether the data of a checkpoint is signed.
func checkSignature(c *storage.AuditCheckpoint, keys Verifier) bool {
	return keys.Verify(append([]byte(domain), c.Data...), c.Signature)
}
