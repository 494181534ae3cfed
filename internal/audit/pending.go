package audit

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"runtime"
	"slices"

	"github.com/durward-gateway/durward/internal/audit/format"
	"github.com/durward-gateway/durward/storage"
)

// Append writes a record, and all records that wait, with one write. When it returns nil the record survives the process.
// With an error (ErrUnavailable) the record does not exist. The entry must have an ID and a time. An outcome needs no ID:
// it has a Call.
//
// The first of concurrent callers waits for the others to add their records, and writes all of them: a write costs more
// than all other work for a record.
func (j *Journal) Append(organization string, e *storage.AuditEntry) error {
	j.mu.Lock()
	c, err := j.ready(organization)
	if err != nil {
		j.mu.Unlock()
		return err
	}
	j.add(c, e, 0)
	joined := j.joined
	if joined == nil {
		joined = &group{done: make(chan struct{})}
		j.joined = joined
		j.mu.Unlock()
		runtime.Gosched()
		j.mu.Lock()
		if j.joined == joined { // no other goroutine has written it meanwhile
			_ = j.flush() // the group has the error
		}
		j.mu.Unlock()
	} else {
		j.mu.Unlock()
	}
	<-joined.done
	return j.finish(joined.err, joined.mark, joined.full)
}

// full reports whether the segment must end.
func (j *Journal) full() bool { return j.segment.size >= j.options.SegmentSize }

// finish ends an Append: it returns the error of the write, asks for a new segment, and syncs when that is required.
func (j *Journal) finish(err error, mark int64, full bool) error {
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	if full {
		signal(j.rotation)
	}
	if j.syncAlways.Load() {
		if err := j.syncTo(mark); err != nil {
			return fmt.Errorf("%w: %w", ErrUnavailable, err)
		}
	}
	return nil
}

// group is the shared result for which concurrent callers of Append wait.
type group struct {
	done chan struct{} // closed when the next fields are set
	err  error
	mark int64 // the number of bytes that were written so far
	full bool  // the segment is full
}

// Later writes a record within a few milliseconds. It counts the record as lost when that is not possible.
func (j *Journal) Later(organization string, e *storage.AuditEntry) {
	j.later(organization, func(c *chain) { j.add(c, e, 1) })
}

// later calls put, which adds a record or outcome that may wait, with the journal's lock held. It then wakes the
// goroutine that writes.
func (j *Journal) later(organization string, put func(*chain)) {
	j.mu.Lock()
	c, err := j.ready(organization)
	if err == nil && j.overfull() {
		if !j.stuck { // the goroutine that writes has had no turn
			_ = j.flushAll()
		}
		if j.overfull() {
			err = ErrUnavailable
		}
	}
	if err == nil {
		put(c)
	}
	j.mu.Unlock()
	if err != nil {
		j.lost.Add(1)
		return
	}
	signal(j.wake)
}

// overfull reports whether so many records wait that no more may be added.
func (j *Journal) overfull() bool { return len(j.pending)+outcomeSize*j.grouped > maxPending }

// usable returns nil when records can be added, else an error.
func (j *Journal) usable() error {
	switch {
	case j.closed:
		return fmt.Errorf("%w: %w", ErrUnavailable, errClosed)
	case j.failure != nil:
		return fmt.Errorf("%w: %w", ErrUnavailable, j.failure)
	case j.segment.ended:
		return fmt.Errorf("%w: the next segment cannot be begun", ErrUnavailable)
	}
	return nil
}

// ready returns the chain of an organization when records can be added to it.
func (j *Journal) ready(organization string) (*chain, error) {
	if err := j.usable(); err != nil {
		return nil, err
	}
	c := j.segment.latest
	if c != nil && c.OrganizationID == organization {
		return c, nil
	}
	c = j.segment.chains[organization]
	if c == nil {
		if !format.ValidOrganization(organization) {
			return nil, fmt.Errorf("%w: organization %q is no id", ErrUnavailable, organization)
		}
		c = &chain{AuditChain: format.ChainOf(organization, j.node, j.segment.name)}
		c.name = c.NameHash()
		j.segment.chains[organization] = c
	}
	j.segment.latest = c
	return c, nil
}

// addition is a record in pending.
type addition struct {
	chain      *chain
	sequence   int64
	previous   [sha256.Size]byte
	hash       [sha256.Size]byte
	at         int64 // Unix nanoseconds
	start, end int   // the range of its text in pending
	waits      int   // number of records or outcomes that are lost without it; 0: it must not be written later
}

// add puts a record into pending.
func (j *Journal) add(c *chain, e *storage.AuditEntry, waits int) {
	a := j.addition(c)
	a.at, a.waits = e.At.UnixNano(), waits
	if e.At.After(c.latest) || c.latest.Sub(e.At) >= format.GroupSpan { // else concurrent intents overtook each other
		c.latest = e.At
	}
	if format.Sharing(e) {
		j.part = format.AppendSharedOf(j.part[:0], e)
		j.scratch = append(format.AppendLink(j.scratch[:0], &c.AuditChain, format.SharedLinkMark), j.digestOf(j.part)...)
		own := len(j.scratch)
		j.scratch = format.AppendOwnOf(j.scratch, e)
		a.hash = format.Link(&c.AuditChain, j.scratch)
		j.scratch = format.AppendShared(j.scratch, j.part)
		j.addLine(a, j.scratch[own:])
		return
	}
	j.scratch = format.AppendEntry(format.AppendLink(j.scratch[:0], &c.AuditChain, format.LinkMark), e)
	a.hash = format.Link(&c.AuditChain, j.scratch)
	j.addLine(a, j.scratch[format.LinkSize:])
}

// maxDigests is the number of shared parts whose hashes are kept.
const maxDigests = 256

// digestOf returns the hash of a shared part. The records of a user's calls with one tool have the same part.
func (j *Journal) digestOf(part []byte) []byte {
	digest, known := j.digests[string(part)]
	if !known {
		if len(j.digests) >= maxDigests {
			clear(j.digests)
		}
		made := sha256.Sum256(part)
		digest = &made
		j.digests[string(part)] = digest
	}
	return digest[:]
}

// addition adds an empty addition for the next record of this chain.
func (j *Journal) addition(c *chain) *addition {
	j.additions = append(j.additions, addition{chain: c, sequence: c.Sequence + 1, previous: c.Hash})
	return &j.additions[len(j.additions)-1]
}

// addLine adds a record to pending. The record's chain is already at it.
func (j *Journal) addLine(a *addition, text []byte) {
	c := a.chain
	j.place = c.AppendPlace(j.place[:0], &c.name)
	j.mac = j.options.MACs.AppendMAC(j.mac[:0], j.place)
	j.pending = format.AppendHead(j.pending, c.OrganizationID, c.Sequence, &a.hash, j.mac, len(text))
	a.start = len(j.pending)
	j.pending = append(j.pending, text...)
	a.end = len(j.pending)
	j.pending = append(j.pending, '\n')
	c.moved = true
}

// withdraw takes the records out of pending that could not be written. It adds those again that may be written later.
func (j *Journal) withdraw() {
	lines, additions := j.pending, j.additions
	j.pending, j.additions = nil, nil
	for i := range slices.Backward(additions) {
		a := &additions[i]
		a.chain.Sequence, a.chain.Hash = a.sequence-1, a.previous
	}
	for i := range additions {
		if a := &additions[i]; a.waits > 0 {
			again, text := j.addition(a.chain), lines[a.start:a.end]
			again.at, again.waits = a.at, a.waits
			again.hash, j.scratch = format.Next(&a.chain.AuditChain, text, j.scratch)
			j.addLine(again, text)
		}
	}
}

// Observe sets f as the function that gets every record. It is called with the journal's lock held, so it must not block.
func (j *Journal) Observe(f func(storage.AuditRecord)) { j.observer.Store(&f) }

// observed passes the written records to the observer.
func (j *Journal) observed() {
	f := j.observer.Load()
	if f == nil {
		return
	}
	for i := range j.additions {
		a := &j.additions[i]
		(*f)(storage.AuditRecord{
			OrganizationID: a.chain.OrganizationID, Node: a.chain.Node, Segment: a.chain.Segment, Sequence: a.sequence,
			Text: bytes.Clone(j.pending[a.start:a.end]), Previous: a.previous, Hash: a.hash,
		})
	}
}

// flush writes pending and wakes the callers that wait for it. On an error the file ends with its last complete line, and
// records that may be written later are still pending.
func (j *Journal) flush() error {
	if len(j.pending) == 0 {
		return nil
	}
	err := j.put(j.pending)
	j.stuck = err != nil
	if err == nil {
		j.segment.moved = true
		j.collect()
		j.observed()
		j.pending, j.additions = j.pending[:0], j.additions[:0]
	}
	if err != nil {
		j.withdraw()
	}
	j.tell(err)
	return err
}

// tell wakes the callers whose records were in pending, and gives them the result.
func (j *Journal) tell(err error) {
	if g := j.joined; g != nil {
		j.joined = nil
		g.err, g.mark, g.full = err, j.written, j.full()
		close(g.done)
	}
}

// put appends complete lines to the segment, or leaves it unchanged.
func (j *Journal) put(lines []byte) error {
	if j.torn {
		if err := j.segment.file.Truncate(j.segment.size); err != nil {
			j.noteFault(err)
			return err
		}
		j.torn = false
	}
	if n, err := j.segment.file.Write(lines); err != nil {
		j.torn = n > 0 && j.segment.file.Truncate(j.segment.size) != nil
		j.noteFault(err)
		return err
	}
	j.segment.size += int64(len(lines))
	if p := j.fresh.growing(); p != nil {
		p.to = j.segment.size
	}
	j.written += int64(len(lines))
	return nil
}
