package verify

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/durward-gateway/durward/internal/audit/format"
	"github.com/durward-gateway/durward/internal/audit/segments"
	"github.com/durward-gateway/durward/storage"
)

// page is a segment's file of node A, beside a book. It has lines of its own, which tests may change before they are written.
type page struct {
	*book
	number int
	header format.Header
	lines  [][]byte
	chains map[string]storage.AuditChain // by organization
	// times are those of records that are not shipped, and unshipped has such checkpoints.
	times     map[string][]time.Time
	unshipped []storage.AuditCheckpoint
}

// begin begins a segment behind the node's last checkpoint.
func (b *book) begin(number, version int) *page {
	p := &page{book: b, number: number, chains: make(map[string]storage.AuditChain), times: make(map[string][]time.Time)}
	last := b.last[nodeA]
	p.header = format.Header{Format: version, Node: nodeA, Segment: segments.Name(number), Time: start, Checkpoint: last.Number, Previous: last.Previous}
	p.lines = append(p.lines, append(format.Marshal(p.header), '\n'))
	return p
}

// write writes records with MACs.
func (p *page) write(organization string, times ...time.Time) {
	for _, at := range times {
		c, ok := p.chains[organization]
		if !ok {
			c = format.ChainOf(organization, nodeA, p.header.Segment)
		}
		text := entryAt(at)
		hash, _ := format.Next(&c, text, nil)
		mac := c.Sealed(gateway)
		p.lines = append(p.lines, append(append(format.AppendHead(nil, organization, c.Sequence, &hash, mac[:], len(text)), text...), '\n'))
		p.chains[organization] = c
		p.times[organization] = append(p.times[organization], at)
	}
}

// sign writes a checkpoint over the records so far. edit (nil: nothing) changes it before it is signed. It reaches the
// store with the next shipment.
func (p *page) sign(edit func(c *format.Checkpoint)) {
	last := p.last[nodeA]
	c := format.Checkpoint{Format: format.CheckpointFormat, Node: nodeA, Segment: p.header.Segment, Number: last.Number + 1, Time: start, Previous: last.Previous, Header: p.header.Hash(), Chains: []format.Head{}}
	for _, end := range p.chains {
		c.Chains = append(c.Chains, format.HeadOf(&end))
	}
	signed := p.signed(c, edit)
	p.lines = append(p.lines, format.AppendCheckpoint(nil, &signed))
	p.unshipped = append(p.unshipped, signed)
}

// ship writes all records into the store that are not there, and then the checkpoints.
func (p *page) ship() {
	for organization, times := range p.times {
		if len(times) > 0 {
			p.book.ship(organization, nodeA, p.header.Segment, gateway, times...)
		}
	}
	clear(p.times)
	p.checkpoints = append(p.checkpoints, p.unshipped...)
	p.unshipped = nil
}

// put writes the file.
func (p *page) put(t *testing.T, root string) {
	t.Helper()
	dir := filepath.Join(root, nodeA)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(segments.Path(dir, p.number), bytes.Join(p.lines, nil), 0o600); err != nil {
		t.Fatal(err)
	}
}
