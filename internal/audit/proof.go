package audit

import (
	"crypto/sha256"

	"github.com/durward-gateway/durward/storage"
)

// lineKeys tell which lines of a segment a gateway with the master key has written. A nil one takes all. Only one may use them at a time.
type lineKeys struct {
	macs       storage.AuditMACs
	signatures Verifier
	scratch    []byte
}

// keys are those of the journal's gateway.
func (j *Journal) keys() *lineKeys {
	return &lineKeys{macs: j.options.MACs, signatures: j.options.Signer}
}

// provenChain is where a chain stands, as far as it is proven.
type provenChain struct {
	storage.AuditChain
	name [sha256.Size]byte // its NameHash
}

func newProvenChain(organization, node, segment string) *provenChain {
	c := &provenChain{AuditChain: chainOf(organization, node, segment)}
	c.name = c.NameHash()
	return c
}

// signed reports whether a checkpoint is one of the gateway.
func (k *lineKeys) signed(c *storage.AuditCheckpoint) bool {
	return k == nil || checkSignature(c, k.signatures)
}

// proves moves the chain on by a record that the gateway has written at this place, which sealed tells. proven tells that also the
// record's text is what was written: a record behind one that is gone has a MAC, and what its hash was made of is not known. In a
// bare segment, of a durward before MACs, nothing can be told, and what stands there is taken.
func (k *lineKeys) proves(c *provenChain, r *record, bare bool) (proven, sealed bool) {
	if k == nil || bare {
		c.Sequence, c.Hash = r.sequence, r.hash
		return true, true
	}
	if r.sequence <= c.Sequence {
		return false, false // as when a line was written twice
	}
	follows := c.AuditChain
	var hash [sha256.Size]byte
	hash, k.scratch = nextOf(&follows, r, k.scratch)
	proven = follows.Sequence == r.sequence && hash == r.hash
	place := c.AuditChain
	place.Sequence, place.Hash = r.sequence, r.hash
	if !k.macs.CheckMAC(place.AppendPlace(nil, &c.name), r.mac[:]) {
		return false, false
	}
	c.AuditChain = place
	return proven, true
}

// bare reports whether the segment is of a durward before MACs. One without a first line is not: who takes that away must not get rid of
// the MACs by it.
func (h *header) bare() bool { return h != nil && h.Format <= bareSegmentFormat }
