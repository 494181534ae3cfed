package audit

import (
	"crypto/sha256"

	"github.com/durward-gateway/durward/internal/audit/format"
	"github.com/durward-gateway/durward/storage"
)

// lineKeys check which lines of a segment were written by a gateway with the master key. A nil *lineKeys accepts all
// lines. It must not be used concurrently.
type lineKeys struct {
	macs       storage.AuditMACs
	signatures format.Verifier
	scratch    []byte
}

// keys returns the keys of the journal's gateway.
func (j *Journal) keys() *lineKeys {
	return &lineKeys{macs: j.options.MACs, signatures: j.options.Signer}
}

// provenChain is a chain up to its last proven record.
type provenChain struct {
	storage.AuditChain
	name [sha256.Size]byte // its NameHash
}

func newProvenChain(organization, node, segment string) *provenChain {
	c := &provenChain{AuditChain: format.ChainOf(organization, node, segment)}
	c.name = c.NameHash()
	return c
}

// signed reports whether the gateway signed a checkpoint.
func (k *lineKeys) signed(c *storage.AuditCheckpoint) bool {
	return k == nil || format.CheckSignature(c, k.signatures)
}

// proves checks a record and moves the chain to it when the gateway wrote the record at this place. sealed reports that.
// proven also reports that the record's text is unchanged. A record after a missing one has a valid MAC, but the input of
// its hash is not known, so it is sealed and not proven. A bare segment, of a durward without MACs, has nothing to check,
// and all its records are accepted.
func (k *lineKeys) proves(c *provenChain, r *format.Record, bare bool) (proven, sealed bool) {
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
	if !k.macs.CheckMAC(place.AppendPlace(nil, &c.name), r.MAC[:]) {
		return false, false
	}
	c.AuditChain = place
	return proven, true
}
