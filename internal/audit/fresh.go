package audit

import (
	"slices"

	"github.com/durward-gateway/durward/storage"
)

// maxFresh is the most memory that records take which are not shipped yet, in bytes of their chunks. When there are more,
// as while a store cannot be reached, the shipper reads them from the files again.
const maxFresh = 8 << 20

// ripeFresh is the size of unshipped records at which the journal asks the shipper to ship.
const ripeFresh = maxFresh / 2

// part holds the records and checkpoints that were written to a segment between two offsets, in the form in which they
// are shipped. So the shipper need not read and split lines that were just built. After a crash only the file counts.
type part struct {
	number      int   // of the segment
	from, to    int64 // bytes of the segment's file
	chunks      []*chunkWriter
	checkpoints []storage.AuditCheckpoint
	final       bool // the segment's final checkpoint is among them
	size        int  // of the records and checkpoints, in bytes
}

// fresh holds the parts that are not shipped yet, in the order in which they were written. Only the last one grows. The
// journal's lock guards it.
type fresh struct {
	parts []*part
	size  int // of all parts
}

// begin starts a part for the lines that are written to a segment from this offset on.
func (f *fresh) begin(number int, from int64) {
	f.parts = append(f.parts, &part{number: number, from: from, to: from})
}

// growing returns the part to which written records are added. It returns nil when the shipper must read them from the
// file.
func (f *fresh) growing() *part {
	if len(f.parts) == 0 {
		return nil
	}
	return f.parts[len(f.parts)-1]
}

// add adds a checkpoint that was written.
func (f *fresh) add(c *storage.AuditCheckpoint, final bool) {
	if p := f.growing(); p != nil {
		p.checkpoints = append(p.checkpoints, *c)
		p.final = final
		f.grow(len(c.Data) + len(c.Signature))
	}
}

// grow notes how much was added to the growing part.
func (f *fresh) grow(size int) {
	f.growing().size += size
	f.size += size
}

// collect adds the records in pending, which were written, to the growing part.
func (j *Journal) collect() {
	p := j.fresh.growing()
	if p == nil {
		return
	}
	if j.fresh.size > maxFresh {
		j.dropFresh()
		return
	}
	for i := range j.additions {
		a := &j.additions[i]
		c := a.chain
		if c.open == nil || c.open.full() {
			c.closeChunk()
			c.open = newChunk(j.node, j.segment.name, c.OrganizationID, &a.previous, a.sequence)
			c.open.expect(c.usual)
			p.chunks = append(p.chunks, c.open)
		}
		before := len(*c.open.body)
		c.open.add(a.sequence, &a.hash, j.pending[a.start:a.end], a.at)
		j.fresh.grow(len(*c.open.body) - before)
	}
	if j.fresh.size > ripeFresh {
		signal(j.ripe)
	}
}

// dropFresh drops all parts, so that the shipper reads all unshipped records from the files.
func (j *Journal) dropFresh() {
	j.fresh.parts, j.fresh.size = nil, 0
}

func (j *Journal) closeChunks() {
	for _, c := range j.segment.chains {
		c.closeChunk()
	}
}

// closeChunk ends the chain's chunk, and notes the room that the next one needs.
func (c *chain) closeChunk() {
	if c.open != nil {
		c.usual, c.open = len(*c.open.body), nil
	}
}

// take returns the part of a segment that begins at the offset from. Later records go into another part. When there is no
// such part, take returns nil, and the file has to be read: to the offset end when it is not 0, because a part begins
// there.
func (j *Journal) take(number int, from int64) (p *part, end int64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	f := &j.fresh
	at := slices.IndexFunc(f.parts, func(p *part) bool { return p.number >= number })
	if at < 0 {
		at = len(f.parts)
	}
	for _, p := range f.parts[:at] { // of segments that are gone
		f.size -= p.size
	}
	f.parts = f.parts[at:]
	if len(f.parts) > 0 && f.parts[0].number == number {
		p = f.parts[0]
		f.parts, f.size = f.parts[1:], f.size-p.size
	}
	if number == j.segment.number {
		j.closeChunks()
		f.begin(number, j.segment.size)
		end = j.segment.size
	}
	if p != nil && p.from != from {
		p = nil
	}
	return p, end
}
