package segments

import (
	"crypto/sha256"

	"github.com/durward-gateway/durward/internal/audit/format"
	"github.com/durward-gateway/durward/storage"
)

// Keys check which lines of a segment were written by a gateway with the master key. A nil *Keys accepts all
// lines. It must not be used concurrently.
type Keys struct {
	MACs       storage.AuditMACs
	Signatures format.Verifier
	// Former reports whether a durward without MACs wrote the journal. A header is no evidence of that: an attacker can write
	// one.
	Former bool

	scratch []byte
}

// ProvenChain is a chain up to its last proven record.
type ProvenChain struct {
	storage.AuditChain
	name [sha256.Size]byte // its NameHash
}

// NewProvenChain returns a chain that has no record yet.
func NewProvenChain(organization, node, segment string) *ProvenChain {
	c := &ProvenChain{AuditChain: format.ChainOf(organization, node, segment)}
	c.name = c.NameHash()
	return c
}

// Bare reports whether the records of a segment with this header need no MACs.
func (k *Keys) Bare(h *format.Header) bool { return k != nil && k.Former && h.Bare() }

// Signed reports whether the gateway signed a checkpoint.
func (k *Keys) Signed(c *storage.AuditCheckpoint) bool {
	return k == nil || format.CheckSignature(c, k.Signatures)
}

// Proves checks a record and moves the chain to it when the gateway wrote the record at this place. sealed reports that.
// proven also reports that the record's text is unchanged. A record after a missing one has a valid MAC, but the input of
// its hash is not known, so it is sealed and not proven. A bare segment, of a durward without MACs, has nothing to check,
// and all its records are accepted.
func (k *Keys) Proves(c *ProvenChain, r *format.Record, bare bool) (proven, sealed bool) {
	if k == nil || bare {
		c.Sequence, c.Hash = r.Sequence, r.Hash
		return true, true
	}
	if r.Sequence <= c.Sequence {
		return false, false // for example, a line was written twice
	}
	follows := c.AuditChain
	var hash [sha256.Size]byte
	hash, k.scratch = format.Next(&follows, r.Text, k.scratch)
	proven = follows.Sequence == r.Sequence && hash == r.Hash
	place := c.AuditChain
	place.Sequence, place.Hash = r.Sequence, r.Hash
	if !k.MACs.CheckMAC(place.AppendPlace(nil, &c.name), r.MAC[:]) {
		return false, false
	}
	c.AuditChain = place
	return proven, true
}
