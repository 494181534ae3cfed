package audit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"

	"github.com/durward-gateway/durward/internal/audit/format"
	"github.com/durward-gateway/durward/internal/audit/former"
	"github.com/durward-gateway/durward/internal/audit/segments"
	"github.com/durward-gateway/durward/storage"
)

// maxBatch is the most bytes of lines that are shipped at once, and of records in a chunk before another one is begun. The
// lines are one transaction of the store, and a query holds the texts of pageChunks chunks.
const maxBatch = 4 << 20

// shipper copies the segments of one directory to the store, and removes those that have ended and are in the store.
type shipper struct {
	dir, node string
	store     storage.Audits
	keys      *segments.Keys
	log       *slog.Logger
	// growing returns the number of the segment that is still written.
	growing func() int
	// take returns the part of a segment that the journal has kept from an offset on, see Journal.take. nil: the journal
	// keeps none.
	take func(number int, from int64) (p *part, end int64)
	// unstored counts records that stay in the files because the store cannot keep them or has others in their place.
	unstored *atomic.Int64

	mu      sync.Mutex
	primed  bool
	there   map[chainName]int64 // the last sequence that the store had at the start
	refused map[chainName]bool  // chains of which the store has different records, see examine
	at      position
	batch   batch // records that the store has not taken yet, which must be sent again unchanged
	shipped int64 // bytes of lines, since the start

	scratch []byte
}

// shipperOf returns a shipper for the journal of this process.
func shipperOf(j *Journal, store storage.Audits) *shipper {
	return &shipper{dir: j.dir, node: j.node, store: store, keys: j.keys(), log: j.options.Log, take: j.take, unstored: new(atomic.Int64), growing: func() int {
		j.mu.Lock()
		defer j.mu.Unlock()
		return j.segment.number
	}}
}

type chainName struct{ organization, segment string }

// position is the offset up to which a segment is shipped, with the state of its chains there.
type position struct {
	number  int
	offset  int64
	chains  map[string]*shippedChain // by organization
	final   bool                     // its final checkpoint has been read
	damaged bool
	bare    bool // a durward without MACs wrote it

	parser *format.Parser
}

// shippedChain is the state of a chain, with the chunk that is being made of its records.
type shippedChain struct {
	segments.ProvenChain
	there   int64 // the last sequence that the store had at the start
	refused bool  // the store has different records, or cannot keep one
	open    *chunkWriter
}

type batch struct {
	chunks      []storage.AuditChunk
	checkpoints []storage.AuditCheckpoint
}

// ship sends all records in the files. It is safe for concurrent use.
func (s *shipper) ship(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.prime(ctx); err != nil {
		return fmt.Errorf("asking where the audit log stands: %w", err)
	}
	numbers, err := segments.List(s.dir)
	if err != nil {
		return fmt.Errorf("listing audit segments: %w", err)
	}
	growing := s.growing()
	for _, number := range numbers {
		if number < s.at.number {
			continue // it has ended and is shipped, but could not be removed
		}
		if number > s.at.number {
			s.at = position{number: number, chains: make(map[string]*shippedChain), parser: former.NewParser()}
		}
		if err := s.shipSegment(ctx); err != nil {
			return fmt.Errorf("shipping audit segment %s: %w", segments.Name(number), err)
		}
		if number < growing {
			s.remove(number)
		}
	}
	return nil
}

func (s *shipper) prime(ctx context.Context) error {
	if s.primed {
		return nil
	}
	chains, err := s.store.AuditChains(ctx, s.node)
	if err != nil {
		return err
	}
	s.there = make(map[chainName]int64, len(chains))
	for _, c := range chains {
		s.there[chainName{c.OrganizationID, c.Segment}] = c.Sequence
	}
	s.primed = true
	return nil
}

func (s *shipper) remove(number int) {
	path := segments.Path(s.dir, number)
	var err error
	switch {
	case s.at.damaged || !s.at.final:
		s.log.Error("an audit segment is damaged, or the store has something else in its place or cannot keep it: it is kept; run durward audit verify", "segment", segments.Name(number))
		err = os.Rename(path, path+segments.DamagedSuffix)
	default:
		err = os.Remove(path)
	}
	if err != nil {
		s.log.Error("removing an audit segment that is in the store", "segment", segments.Name(number), "error", err.Error())
	}
}

// shipSegment sends the segment from the position to the end of the file.
func (s *shipper) shipSegment(ctx context.Context) error {
	if err := s.send(ctx); err != nil {
		return err
	}
	end := int64(0)
	if s.take != nil {
		var p *part
		p, end = s.take(s.at.number, s.at.offset)
		if p != nil {
			return s.shipPart(ctx, p)
		}
	}
	return s.shipFile(ctx, end)
}

// shipPart sends a part that the journal has kept.
func (s *shipper) shipPart(ctx context.Context, p *part) error {
	for _, w := range p.chunks {
		c := s.chain(w.chunk.OrganizationID)
		c.Sequence, c.Hash = w.chunk.Last, w.last
		if c.refused {
			s.unstored.Add(w.chunk.Last - w.chunk.First + 1)
			continue
		}
		c.open = w
		s.finish(c)
	}
	s.batch.checkpoints = append(s.batch.checkpoints, p.checkpoints...)
	s.at.final = p.final
	s.shipped += p.to - s.at.offset
	s.at.offset, s.at.parser.Format = p.to, format.SegmentFormat
	return s.send(ctx)
}

// shipFile sends the records in the file, up to the offset end when that is not 0.
func (s *shipper) shipFile(ctx context.Context, end int64) error {
	f, err := os.Open(segments.Path(s.dir, s.at.number))
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.Seek(s.at.offset, io.SeekStart); err != nil {
		return err
	}
	if end > 0 {
		return s.shipLines(ctx, io.LimitReader(f, max(end-s.at.offset, 0)))
	}
	return s.shipLines(ctx, f)
}

// shipLines sends the lines from the position on.
func (s *shipper) shipLines(ctx context.Context, r io.Reader) error {
	lines, base := format.NewLines(r), s.at.offset
	for more := true; more; {
		var err error
		more, err = s.collect(lines)
		// This is done after an error too: the collected lines are in the batch, and must not be parsed again.
		s.shipped += base + lines.Offset - s.at.offset
		s.at.offset = base + lines.Offset
		if err != nil {
			return err
		}
		if err := s.send(ctx); err != nil {
			return err
		}
	}
	return nil
}

// collect reads lines into the batch, and reports whether there may be more.
func (s *shipper) collect(lines *format.Lines) (more bool, err error) {
	var made []*shippedChain
	defer func() {
		for _, c := range made {
			s.finish(c)
		}
	}()
	for start := lines.Offset; lines.Offset-start < maxBatch; {
		text, err := lines.Next()
		if errors.Is(err, io.EOF) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		l, err := s.at.parser.Parse(text)
		switch {
		case err != nil:
			s.at.damaged = true
		case l.Header != nil:
			s.at.bare = s.keys.Bare(l.Header)
		case l.Checkpoint != nil && !s.keys.Signed(l.Checkpoint):
			s.at.damaged = true
		case l.Checkpoint != nil:
			s.batch.checkpoints = append(s.batch.checkpoints, *l.Checkpoint)
			said, err := format.ReadCheckpoint(l.Checkpoint.Data)
			s.at.final = err == nil && said.Final
		default:
			if c := s.record(&l.Record); c != nil {
				made = append(made, c)
			}
		}
	}
	return true, nil
}

// chain returns an organization's chain in the segment.
func (s *shipper) chain(organization string) *shippedChain {
	c := s.at.chains[organization]
	if c == nil {
		name := chainName{organization, segments.Name(s.at.number)}
		c = &shippedChain{ProvenChain: *segments.NewProvenChain(organization, s.node, name.segment), there: s.there[name], refused: s.refused[name]}
		s.at.chains[organization] = c
	}
	return c
}

// record adds a record to its chain's chunk. It returns the chain when a chunk was begun.
func (s *shipper) record(r *format.Record) (begun *shippedChain) {
	c := s.at.chains[string(r.Organization)]
	if c == nil {
		c = s.chain(string(r.Organization))
	}
	before := c.Hash
	proven, _ := s.keys.Proves(&c.ProvenChain, r, s.at.bare)
	s.at.damaged = s.at.damaged || !proven || c.refused
	if !proven || r.Sequence <= c.there {
		return nil
	}
	if c.refused {
		s.unstored.Add(1)
		return nil
	}
	if c.open != nil && r.Sequence != c.open.chunk.Last+1 {
		s.finish(c) // tampered with: the existing records are shipped, and a verification finds the gap
	}
	if c.open == nil {
		c.open, begun = newChunk(s.node, segments.Name(s.at.number), c.OrganizationID, &before, r.Sequence), c
	}
	c.open.add(r.Sequence, &r.Hash, r.Text, format.NanosOf(r.Text))
	return begun
}

// finish puts the chain's chunk into the batch.
func (s *shipper) finish(c *shippedChain) {
	if c.open == nil {
		return
	}
	var chunk storage.AuditChunk
	chunk, s.scratch = c.open.finish(s.scratch)
	if !s.at.bare {
		last := c.AuditChain
		last.Sequence, last.Hash = chunk.Last, c.open.last
		chunk.MAC = last.Sealed(s.keys.MACs)
	}
	s.batch.chunks = append(s.batch.chunks, chunk)
	c.open = nil
}

// send sends the batch to the store: first the records, then the checkpoints that cover them.
func (s *shipper) send(ctx context.Context) error {
	if err := s.sendChunks(ctx); err != nil {
		return err
	}
	for len(s.batch.checkpoints) > 0 {
		c := &s.batch.checkpoints[0]
		err := s.store.AddAuditCheckpoint(ctx, *c)
		if errors.Is(err, storage.ErrConflict) {
			var there storage.AuditCheckpoint
			if there, err = s.store.AuditCheckpoint(ctx, c.Node, c.Number); err == nil && format.CheckpointHash(&there) != format.CheckpointHash(c) {
				s.dispute("checkpoint", c.Number)
			} // else the store has it: it was shipped before a crash
		}
		if storage.Unstorable(err) {
			s.at.damaged = true
			s.log.Error("the store cannot keep a checkpoint of the audit journal, whose segment is kept", "node", s.node, "segment", segments.Name(s.at.number),
				"checkpoint", c.Number, "error", err.Error())
			err = nil
		}
		if err != nil {
			return err
		}
		s.batch.checkpoints = s.batch.checkpoints[1:]
	}
	return nil
}

// sendChunks sends the batch's records to the store. When the store has another chunk in the place of one, or cannot keep
// one, the chunks are sent one by one, so that no chain waits for another.
func (s *shipper) sendChunks(ctx context.Context) error {
	if len(s.batch.chunks) == 0 {
		return nil
	}
	err := s.store.AddAuditChunks(ctx, s.batch.chunks)
	if err == nil {
		s.batch.chunks = nil
	}
	if !errors.Is(err, storage.ErrConflict) && !storage.Unstorable(err) {
		return err
	}
	for len(s.batch.chunks) > 0 {
		chunk := &s.batch.chunks[0]
		chain := s.chain(chunk.OrganizationID)
		var err error
		if chain.refused {
			s.unstored.Add(chunk.Last - chunk.First + 1)
		} else {
			err = s.store.AddAuditChunks(ctx, s.batch.chunks[:1])
		}
		switch {
		case errors.Is(err, storage.ErrConflict):
			s.dispute("record", chunk.First)
		case storage.Unstorable(err):
			s.keep(chain, chunk, err)
		case err != nil:
			return err
		}
		s.batch.chunks = s.batch.chunks[1:]
	}
	return nil
}

// keep leaves records that the store cannot keep in the file, with all later records of their chain and segment.
// Otherwise a later start, which asks for the store's last sequence, could not see the gap, and would remove the file.
func (s *shipper) keep(c *shippedChain, chunk *storage.AuditChunk, cause error) {
	c.refused, s.at.damaged = true, true
	s.unstored.Add(chunk.Last - chunk.First + 1)
	s.log.Error("the store cannot keep audit records: they stay in the journal, with what follows in their chain and segment; everything else goes on",
		"organization", chunk.OrganizationID, "node", s.node, "segment", chunk.Segment, "first", chunk.First, "last", chunk.Last, "error", cause.Error())
}

// dispute notes that the store has other data than the segment. The segment's file is kept.
func (s *shipper) dispute(what string, number int64) {
	s.at.damaged = true
	s.log.Error("the store has something else in the place of what is in the audit journal, as when an older state of one of them was put back; run durward audit verify",
		"node", s.node, "segment", segments.Name(s.at.number), what, number)
}
