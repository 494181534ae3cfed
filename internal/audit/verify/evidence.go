package verify

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	"github.com/durward-gateway/durward/internal/audit/format"
	"github.com/durward-gateway/durward/storage"
)

// chainName names a chain of a node.
type chainName struct{ organization, segment string }

// nodeEvidence collects all facts about a node.
type nodeEvidence struct {
	name        string
	local       bool // its journal is in the directory, or should be
	files       map[string]*fileEvidence
	checkpoints map[int64]*checkpointEvidence
	chains      map[chainName]*chainEvidence
	finals      map[string]*checkpointEvidence // by segment
	// newest is the number of the segment that grew when the reading began. meanwhile has the segments that may have
	// begun since.
	newest    int
	meanwhile map[int]bool

	sealing bool      // reports whether its records have MACs
	signed  time.Time // time of the last checkpoint over records that the node itself wrote
}

// fileEvidence collects the facts about a segment's file.
type fileEvidence struct {
	header     *format.Header
	checkpoint int64 // the number of the last checkpoint; 0: none
	final      bool
	blank      bool // it had no whole line
}

type checkpointEvidence struct {
	storage.AuditCheckpoint
	said   format.Checkpoint
	stored bool
}

// chainEvidence collects all facts about a chain.
type chainEvidence struct {
	journal []journalRun          // the records in the journal
	spans   []span                // the records in the store
	heads   map[int64][]statement // the statements of checkpoints about it
	bare    []bareRun
}

// journalRun holds the hashes of consecutive records. A line's sequence may be forged. So a gap takes no memory: one edit
// must not take memory for all records that it skips.
type journalRun struct {
	first  int64
	hashes [][sha256.Size]byte
}

func (r *journalRun) last() int64 { return r.first + int64(len(r.hashes)) - 1 }

// add adds a record of the journal. Its sequence must be after the earlier ones.
func (c *chainEvidence) add(sequence int64, hash [sha256.Size]byte) {
	if n := len(c.journal); n == 0 || c.journal[n-1].last() != sequence-1 {
		c.journal = append(c.journal, journalRun{first: sequence})
	}
	r := &c.journal[len(c.journal)-1]
	r.hashes = append(r.hashes, hash)
}

// at returns the hash of a record in the journal.
func (c *chainEvidence) at(sequence int64) (hash [sha256.Size]byte, ok bool) {
	i, found := slices.BinarySearchFunc(c.journal, sequence, func(r journalRun, sequence int64) int { return cmp.Compare(r.first, sequence) })
	if !found {
		i--
	}
	if i < 0 || sequence > c.journal[i].last() {
		return hash, false
	}
	return c.journal[i].hashes[sequence-c.journal[i].first], true
}

// inJournal returns the sequence of the last record in the journal, or 0.
func (c *chainEvidence) inJournal() int64 {
	if n := len(c.journal); n > 0 {
		return c.journal[n-1].last()
	}
	return 0
}

// span is a run of consecutive records in the store.
type span struct {
	first, last    int64
	previous, hash [sha256.Size]byte
}

// statement is the hash that a checkpoint has for one record.
type statement struct {
	hash       string
	checkpoint int64
	found      bool // see Checkpoint.Found
}

func (v *verification) node(name string) *nodeEvidence {
	n := v.nodes[name]
	if n == nil {
		n = &nodeEvidence{
			name: name, local: v.all || v.here[name], files: make(map[string]*fileEvidence), checkpoints: make(map[int64]*checkpointEvidence),
			chains: make(map[chainName]*chainEvidence), finals: make(map[string]*checkpointEvidence),
		}
		v.nodes[name] = n
	}
	return n
}

func (n *nodeEvidence) chain(organization, segment string) *chainEvidence {
	name := chainName{organization, segment}
	c := n.chains[name]
	if c == nil {
		c = &chainEvidence{heads: make(map[int64][]statement)}
		n.chains[name] = c
	}
	return c
}

// meet compares a record with the statements of checkpoints about it.
func (v *verification) meet(n *nodeEvidence, c *chainEvidence, organization, segment string, sequence int64, hash [sha256.Size]byte) {
	for _, said := range c.heads[sequence] {
		if said.hash != hex.EncodeToString(hash[:]) {
			v.find(Finding{
				Node: n.name, Segment: segment, Organization: organization, Sequence: sequence,
				Problem: fmt.Sprintf("is not the record that checkpoint %d was signed over", said.checkpoint),
			})
		}
	}
}

// stored reports whether the store has records or checkpoints of a segment.
func (n *nodeEvidence) stored(segment string) bool {
	for _, c := range n.checkpoints {
		if c.stored && c.Segment == segment {
			return true
		}
	}
	for name, c := range n.chains {
		if name.segment == segment && len(c.spans) > 0 {
			return true
		}
	}
	return false
}

func (c *chainEvidence) last() int64 {
	last := c.inJournal()
	for _, s := range c.spans {
		last = max(last, s.last)
	}
	return last
}
