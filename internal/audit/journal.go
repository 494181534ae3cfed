// Package audit keeps the audit log: a journal on this node's disk, to which a record of every call is written before a
// credential leaves, hash-chained and sealed by signed checkpoints; its shipping to the store behind the requests; sinks
// that get a copy; and the verification of all of it.
//
// A journal is a directory of segments, files of lines (see line.go). There is one chain for each organization, node and
// segment. What a journal acknowledged survives the process, because the kernel has it, and the machine after at most SyncEvery, or at once
// with sync always.
package audit

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
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
	// Signer signs checkpoints, and checks those that are found.
	Signer Signer
	// MACs makes the MACs of records, and checks those that are found.
	MACs storage.AuditMACs
	// Now is the clock. Default: time.Now.
	Now func() time.Time
	// Log gets what operators need to know. Default: nothing is logged.
	Log *slog.Logger

	// SegmentSize and SegmentAge are when a segment ends; CheckpointEvery is the time between checkpoints of one that
	// grows. Defaults: 16 MiB, an hour, 10 seconds.
	SegmentSize     int64
	SegmentAge      time.Duration
	CheckpointEvery time.Duration

	create  func(path string) (file, error) // for tests: a disk with faults
	trusted func(dir string) bool           // whether a journal that was left is gone on with; nil: always
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
	// Truncate takes away what is behind size, which is within what the last Write has added.
	Truncate(size int64) error
	// Sync forces the file to the disk. It may run beside Write.
	Sync() error
	Close() error
}

func createFile(path string) (file, error) {
	return os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL|os.O_APPEND, 0o600)
}

// Journal is a node's journal. It is safe for concurrent use.
type Journal struct {
	options Options
	dir     string
	node    string
	unlock  func()

	syncAlways atomic.Bool
	observer   atomic.Pointer[func(storage.AuditRecord)]
	lost       atomic.Int64 // records and outcomes that were to be written later and were not

	// What every record touches stands together: between two calls little of it stays in the processor's cache.
	mu        sync.Mutex
	closed    bool
	former    bool   // a durward before MACs has left it: its records have none
	waiting   bool   // somebody has been told to write pending
	torn      bool   // the disk may hold a part of a line behind segment.size
	failure   error  // the disk could not be synced: nothing more is put into this segment
	joined    *group // who waits for what is pending; nil: nobody
	written   int64  // bytes of lines, of all segments
	grouped   int    // how many outcomes are in no record yet
	segment   segment
	pending   []byte     // lines that are not written yet
	additions []addition // the records in them
	scratch   []byte     // what is hashed of a record
	place     []byte     // what its MAC is over
	mac       []byte
	fresh     fresh // what is not shipped yet

	grouping []*chain // those with outcomes that are in no record yet; one may stand here twice, or have none any more
	spare    [][]storage.AuditOutcome
	last     lastCheckpoint
	stored   map[string]storage.AuditChain // of the store's own records, moved since the last checkpoint
	wake     chan struct{}                 // pending waits to be written
	rotation chan struct{}                 // the segment is full
	ripe     chan struct{}                 // much is to be shipped
	recent   recentShared

	// syncing is held while a segment is synced, and taken before mu: beside one that fails, of which the kernel tells once, another
	// sync of the same file would succeed.
	syncing sync.Mutex
	synced  atomic.Int64 // how much of all that was written is known to be on the disk, or was given up
	unsure  unsure       // mu guards it

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
	size   int64
	latest *chain            // the one that was looked for last; nil: none yet
	chains map[string]*chain // by organization
	moved  bool              // something was written since the last checkpoint
	ended  bool              // it has its final checkpoint
	number int
	name   string
	header string // the hash of its first line
	began  time.Time
	path   string
	at     os.FileInfo // what its path led to when it began; nil: not known
}

type chain struct {
	storage.AuditChain
	name  [sha256.Size]byte // its NameHash
	moved bool
	parts sharedParts
	open  *chunkWriter // the chunk of the growing part that its records go into; nil: none yet

	outcomes []storage.AuditOutcome // that are in no record yet
	latest   time.Time              // of the records so far, but for those of a clock that was put back since
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
	if j.dir, j.unlock, err = claim(o.Dir, o.Log, o.trusted); err != nil {
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

// Lost is how many records and outcomes that could wait were given up, because the disk took nothing for too long.
func (j *Journal) Lost() int64 { return j.lost.Load() }

// writtenSoFar is how much was written to all segments.
func (j *Journal) writtenSoFar() int64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.written
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
	return j.flushAll()
}

// Checkpoint makes a checkpoint now, if anything was recorded since the last one.
func (j *Journal) Checkpoint() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if err := j.usable(); err != nil {
		return err
	}
	if err := j.flushAll(); err != nil || (!j.segment.moved && len(j.stored) == 0) {
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
	j.syncing.Lock()
	defer j.syncing.Unlock()
	j.mu.Lock()
	defer j.mu.Unlock()
	err := j.end()
	if err != nil {
		j.giveUp()
		j.tell(err)
	}
	err = errors.Join(err, j.segment.file.Close())
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
