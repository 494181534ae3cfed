// Package audit keeps the audit log: a journal on this node's disk, to which a record of every call is written before a
// credential leaves, hash-chained and sealed by signed checkpoints; its shipping to the store behind the requests; sinks
// that get a copy; and the verification of all of it.
//
// A journal is a directory of segments, files of lines (see line.go). There is one chain for each organization, node and
// segment. What a journal acknowledged survives the process (it is in the kernel's hands: written, or copied into a shared
// mapping of the file), and the machine after at most SyncEvery, or at once with sync always.
package audit

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/durward-gateway/durward/storage"
)

// SyncEvery is how often what was written is forced to the disk.
const SyncEvery = 50 * time.Millisecond

// Defaults of Options, and bounds.
const (
	defaultSegmentSize     = 16 << 20
	defaultSegmentAge      = time.Hour
	defaultCheckpointEvery = 10 * time.Second
	// laterDelay is how long a record that may wait does; under load it goes with the next one that may not.
	laterDelay = 5 * time.Millisecond
	// maxPending bounds what waits for a disk that takes nothing.
	maxPending = 4 << 20
)

// Errors of a journal.
var (
	// ErrUnavailable: the journal cannot be written. The record does not exist.
	ErrUnavailable = errors.New("audit journal cannot be written")
	errClosed      = errors.New("audit journal is closed")
	// errFault: a part of a file that was there cannot be written.
	errFault = errors.New("the file was cut off, or its disk fails")
)

// Options of a journal. Members without a default must be given.
type Options struct {
	// Dir is the directory of journals, one directory for each node in it. It is made when it is missing.
	Dir string
	// Signer signs checkpoints.
	Signer Signer
	// Now is the clock. Default: time.Now.
	Now func() time.Time
	// Log gets what operators need to know. Default: nothing is logged.
	Log *slog.Logger

	// SegmentSize and SegmentAge are when a segment ends; CheckpointEvery is the time between checkpoints of one that
	// grows. Defaults: 16 MiB, an hour, 10 seconds.
	SegmentSize     int64
	SegmentAge      time.Duration
	CheckpointEvery time.Duration

	create func(path string) (file, error) // for tests: a disk with faults
}

func (o Options) withDefaults() Options {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.SegmentSize == 0 {
		o.SegmentSize = defaultSegmentSize
	}
	if o.SegmentAge == 0 {
		o.SegmentAge = defaultSegmentAge
	}
	if o.CheckpointEvery == 0 {
		o.CheckpointEvery = defaultCheckpointEvery
	}
	if o.create == nil {
		o.create = createFile
	}
	return o
}

// file is what a segment is written to.
type file interface {
	// Write appends. What it took is in the kernel's hands.
	Write([]byte) (int, error)
	// Cheap reports whether Write costs so little that concurrent callers need not share it.
	Cheap() bool
	// Truncate takes away what is behind size, which is within what the last Write has added.
	Truncate(size int64) error
	Sync() error
	// Close ends the file; Release leaves it as it is.
	Close() error
	Release() error
}

// plainFile is written with a system call for each Write.
type plainFile struct{ *os.File }

// Cheap implements file.
func (plainFile) Cheap() bool { return false }

// Release implements file.
func (f plainFile) Release() error { return f.Close() }

// Journal is a node's journal. It is safe for concurrent use.
type Journal struct {
	options Options
	dir     string
	node    string
	unlock  func()

	syncAlways atomic.Bool
	observer   atomic.Pointer[func(storage.AuditRecord)]
	lost       atomic.Int64 // records that were to be written later and were not

	mu        sync.Mutex
	segment   segment
	pending   []byte     // lines that are not written yet
	additions []addition // the records in them
	joined    *group     // who waits for them; nil: nobody
	waiting   bool       // somebody has been told to write pending
	torn      bool       // the disk may hold a part of a line behind segment.size
	scratch   []byte     // what is hashed of a record
	last      lastCheckpoint
	stored    map[string]storage.AuditChain // of the store's own records, moved since the last checkpoint
	failure   error                         // the disk could not be synced: nothing more is put into this segment
	fresh     fresh                         // what is not shipped yet
	closed    bool
	wake      chan struct{} // pending waits to be written
	rotation  chan struct{} // the segment is full
	ripe      chan struct{} // much is to be shipped

	syncing sync.Mutex
	synced  atomic.Int64 // how much of all that was written is known to be on the disk
	written atomic.Int64

	stop chan struct{}
	work sync.WaitGroup
}

// lastCheckpoint is what the next one follows.
type lastCheckpoint struct {
	number int64
	hash   string
	at     time.Time
}

// segment is the file that grows.
type segment struct {
	file   file
	number int
	name   string
	size   int64
	began  time.Time
	chains map[string]*chain // by organization
	moved  bool              // something was written since the last checkpoint
	ended  bool              // it has its final checkpoint
	at     os.FileInfo       // what its path led to when it began; nil: not known
}

type chain struct {
	storage.AuditChain
	moved bool
	open  *chunkWriter // the chunk of the growing part that its records go into; nil: none yet
}

// Open takes the first journal in the directory that no process has, or makes one, and ends what a crash has left open in
// it. Records can be appended at once.
func Open(o Options) (*Journal, error) {
	o = o.withDefaults()
	j := &Journal{
		options: o, stored: make(map[string]storage.AuditChain), wake: make(chan struct{}, 1), rotation: make(chan struct{}, 1),
		ripe: make(chan struct{}, 1), stop: make(chan struct{}),
	}
	var err error
	if j.dir, j.unlock, err = claim(o.Dir); err != nil {
		return nil, fmt.Errorf("opening the audit journal: %w", err)
	}
	j.node = filepath.Base(j.dir)
	if err := j.begin(); err != nil {
		j.unlock()
		return nil, fmt.Errorf("opening the audit journal: %w", err)
	}
	j.work.Go(j.write)
	j.work.Go(j.maintain)
	return j, nil
}

// Node is the journal's name among those of all nodes.
func (j *Journal) Node() string { return j.node }

// SyncAlways makes every Append wait for the disk.
func (j *Journal) SyncAlways(on bool) { j.syncAlways.Store(on) }

// Lost is how many records that could wait were given up, because the disk took nothing for too long.
func (j *Journal) Lost() int64 { return j.lost.Load() }

// Append writes a record, and whatever waits to be written, with one write. When it returns nil the record survives the
// process; with an error (ErrUnavailable) the record does not exist. ID and time of the entry must be set; an outcome, whose
// Call is, needs no ID.
//
// Where a write is a system call, the first of concurrent callers lets the others add their records and writes all of
// them: it costs more than all else that is done for a record.
func (j *Journal) Append(organization string, e *storage.AuditEntry) error {
	j.mu.Lock()
	if err := j.ready(); err != nil {
		j.mu.Unlock()
		return err
	}
	if err := j.add(organization, e, false); err != nil {
		j.mu.Unlock()
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	joined := j.joined
	if joined == nil && j.segment.file.Cheap() {
		err := j.flush()
		mark, full := j.written.Load(), j.full()
		j.mu.Unlock()
		return j.settle(err, mark, full)
	}
	if joined == nil {
		joined = &group{done: make(chan struct{})}
		j.joined = joined
		j.mu.Unlock()
		runtime.Gosched()
		j.mu.Lock()
		if j.joined == joined { // nobody has written meanwhile
			_ = j.flush() // told through the group
		}
		j.mu.Unlock()
	} else {
		j.mu.Unlock()
	}
	<-joined.done
	return j.settle(joined.err, joined.mark, joined.full)
}

// full reports whether the segment is to end.
func (j *Journal) full() bool { return j.segment.size >= j.options.SegmentSize }

// settle is what is left to do for a record that was written, or was not.
func (j *Journal) settle(err error, mark int64, full bool) error {
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

// group is what concurrent callers of Append wait for.
type group struct {
	done chan struct{} // closed when what follows is set
	err  error
	mark int64 // of what was written
	full bool  // the segment is
}

// Later writes a record within a few milliseconds. It is counted as lost when that is not possible.
func (j *Journal) Later(organization string, e *storage.AuditEntry) {
	j.mu.Lock()
	err := j.ready()
	if err == nil && len(j.pending) > maxPending {
		err = ErrUnavailable
	}
	if err == nil {
		err = j.add(organization, e, true)
	}
	wake := err == nil && !j.waiting
	j.waiting = j.waiting || wake
	j.mu.Unlock()
	if err != nil {
		j.lost.Add(1)
		return
	}
	if wake {
		signal(j.wake)
	}
}

// Stored notes where a chain of the store's own records stands, for the next checkpoint.
func (j *Journal) Stored(c storage.AuditChain) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.stored[c.OrganizationID].Sequence < c.Sequence {
		j.stored[c.OrganizationID] = c
	}
}

// Flush writes what waits to be written.
func (j *Journal) Flush() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed {
		return errClosed
	}
	return j.flush()
}

func (j *Journal) ready() error {
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

// addition is a record in pending.
type addition struct {
	chain      *chain
	before     storage.AuditChain
	hash       [sha256.Size]byte
	start, end int // of its text in pending
	later      bool
}

// add puts a record into pending.
func (j *Journal) add(organization string, e *storage.AuditEntry, later bool) error {
	c := j.segment.chains[organization]
	if c == nil {
		if !validOrganization(organization) {
			return fmt.Errorf("organization %q is no id", organization)
		}
		c = &chain{AuditChain: storage.AuditChain{OrganizationID: organization, Node: j.node, Segment: j.segment.name}}
		j.segment.chains[organization] = c
	}
	before := c.AuditChain
	j.scratch = appendEntry(appendLink(j.scratch[:0], &before), e)
	j.addLine(c, link(&c.AuditChain, j.scratch), j.scratch[linkSize:], before, later)
	return nil
}

func (j *Journal) addLine(c *chain, hash [sha256.Size]byte, text []byte, before storage.AuditChain, later bool) {
	a := addition{chain: c, before: before, hash: hash, later: later}
	j.pending = appendRecord(j.pending, c.OrganizationID, c.Sequence, &hash, text)
	a.end = len(j.pending) - len("}\n")
	a.start = a.end - len(text)
	j.additions = append(j.additions, a)
	c.moved = true
}

// withdraw takes out of pending what could not be written and must not be later.
func (j *Journal) withdraw() {
	lines, additions := j.pending, j.additions
	j.pending, j.additions = nil, nil
	for i := range slices.Backward(additions) {
		additions[i].chain.AuditChain = additions[i].before
	}
	for _, a := range additions {
		if a.later {
			text, before := lines[a.start:a.end], a.chain.AuditChain
			var hash [sha256.Size]byte
			hash, j.scratch = next(&a.chain.AuditChain, text, j.scratch)
			j.addLine(a.chain, hash, text, before, true)
		}
	}
}

// Observe lets f see every record. It is called with the journal's lock held: it must not block.
func (j *Journal) Observe(f func(storage.AuditRecord)) { j.observer.Store(&f) }

// observed shows the observer what was written.
func (j *Journal) observed() {
	f := j.observer.Load()
	if f == nil {
		return
	}
	for i := range j.additions {
		a := &j.additions[i]
		text := bytes.Clone(j.pending[a.start:a.end])
		after := a.before
		hash, scratch := next(&after, text, j.scratch)
		j.scratch = scratch
		(*f)(storage.AuditRecord{
			OrganizationID: after.OrganizationID, Node: after.Node, Segment: after.Segment, Sequence: after.Sequence, Text: text,
			Previous: a.before.Hash, Hash: hash,
		})
	}
}

// flush writes pending, and tells those who wait for it. On an error the file ends with its last whole line, and what may
// be written later is still pending.
func (j *Journal) flush() error {
	if len(j.pending) == 0 {
		return nil
	}
	err := j.put(j.pending)
	if err == nil {
		j.segment.moved = true
		j.collect()
		j.observed()
		j.additions = j.additions[:0]
		if j.pending = j.pending[:0]; cap(j.pending) > 1<<20 {
			j.pending, j.additions = nil, nil
		}
	}
	if err != nil {
		j.withdraw()
	}
	j.tell(err)
	return err
}

// tell ends the waiting of those whose records were in pending.
func (j *Journal) tell(err error) {
	if g := j.joined; g != nil {
		j.joined = nil
		g.err, g.mark, g.full = err, j.written.Load(), j.full()
		close(g.done)
	}
}

// put appends whole lines to the segment or leaves it as it was.
func (j *Journal) put(lines []byte) error {
	if j.torn {
		if err := j.segment.file.Truncate(j.segment.size); err != nil {
			return err
		}
		j.torn = false
	}
	if n, err := j.segment.file.Write(lines); err != nil {
		j.torn = n > 0 && j.segment.file.Truncate(j.segment.size) != nil
		if errors.Is(err, errFault) && j.failure == nil {
			j.failure = err
			j.options.Log.Error("a file of the audit journal was cut off, or its disk fails", "segment", j.segment.name)
			signal(j.rotation)
		}
		return err
	}
	j.segment.size += int64(len(lines))
	if p := j.fresh.growing(); p != nil {
		p.to = j.segment.size
	}
	j.written.Add(int64(len(lines)))
	return nil
}

// syncTo returns when all that was written up to mark is on the disk. Who waits while another one syncs shares the next
// sync with all others who wait.
func (j *Journal) syncTo(mark int64) error {
	j.syncing.Lock()
	defer j.syncing.Unlock()
	if j.synced.Load() >= mark {
		return nil
	}
	j.mu.Lock()
	current, target, failure := j.segment.file, j.written.Load(), j.failure
	j.mu.Unlock()
	if failure != nil {
		return failure
	}
	if err := current.Sync(); err != nil {
		if j.synced.Load() >= mark {
			return nil // the segment ended meanwhile, and was synced then
		}
		// What was written since the last sync may be gone, whatever a second sync says: this segment is over.
		j.mu.Lock()
		if j.failure == nil && current == j.segment.file {
			j.failure = fmt.Errorf("syncing: %w", err)
			j.options.Log.Error("the audit journal cannot be synced", "error", err.Error())
		}
		j.mu.Unlock()
		signal(j.rotation)
		return err
	}
	j.noteSynced(target)
	return nil
}

func (j *Journal) noteSynced(mark int64) {
	for {
		known := j.synced.Load()
		if known >= mark || j.synced.CompareAndSwap(known, mark) {
			return
		}
	}
}

// write writes what may wait.
func (j *Journal) write() {
	timer := time.NewTimer(0)
	<-timer.C
	for {
		select {
		case <-j.stop:
			return
		case <-j.wake:
		}
		timer.Reset(laterDelay)
		select {
		case <-j.stop:
			return
		case <-timer.C:
		}
		j.mu.Lock()
		j.waiting = false
		if err := j.flush(); err != nil {
			j.waiting = true
			signal(j.wake)
		}
		j.mu.Unlock()
	}
}

// maintain syncs, makes checkpoints and begins new segments.
func (j *Journal) maintain() {
	tick := time.NewTicker(SyncEvery)
	defer tick.Stop()
	for {
		select {
		case <-j.stop:
			return
		case <-j.rotation:
		case <-tick.C:
		}
		if mark := j.written.Load(); mark > j.synced.Load() {
			_ = j.syncTo(mark) // noted there
		}
		if err := j.advance(); err != nil {
			j.options.Log.Error("the audit journal cannot go on", "error", err.Error())
			// A full disk is not asked twenty times a second.
			select {
			case <-j.stop:
				return
			case <-time.After(time.Second):
			}
		}
	}
}

// advance makes the checkpoint or the segment that is due.
func (j *Journal) advance() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.notice()
	now := j.options.Now()
	full := j.full() || (len(j.segment.chains) > 0 && now.Sub(j.segment.began) >= j.options.SegmentAge)
	switch {
	case full || j.failure != nil || j.segment.ended:
		return j.rotate()
	case (j.segment.moved || len(j.stored) > 0) && now.Sub(j.last.at) >= j.options.CheckpointEvery:
		return j.checkpoint(false)
	}
	return nil
}

// Checkpoint makes a checkpoint now, if anything was recorded since the last one.
func (j *Journal) Checkpoint() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if err := j.ready(); err != nil {
		return err
	}
	if err := j.flush(); err != nil || (!j.segment.moved && len(j.stored) == 0) {
		return err
	}
	return j.checkpoint(false)
}

// Close ends the segment with its final checkpoint.
func (j *Journal) Close() error {
	j.mu.Lock()
	if j.closed {
		j.mu.Unlock()
		return nil
	}
	j.closed = true
	j.mu.Unlock()
	close(j.stop)
	j.work.Wait()
	j.mu.Lock()
	defer j.mu.Unlock()
	err := errors.Join(j.end(), j.segment.file.Close())
	j.unlock()
	if err != nil {
		return fmt.Errorf("closing the audit journal: %w", err)
	}
	return nil
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
