// Package audit keeps the audit log. A journal on this node's disk holds a record of every call, which is written before
// a credential leaves. Its records are hash-chained and sealed by signed checkpoints. The package ships the journal to
// the store outside the requests, and copies records to sinks.
//
// A journal is a directory of segments, which are files of lines (see package format). There is one chain for each
// organization, node and segment. Acknowledged records survive the end of the process, because the kernel has them. They
// survive the end of the machine after at most SyncEvery, or at once with sync always.
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

	"github.com/durward-gateway/durward/internal/audit/format"
	"github.com/durward-gateway/durward/storage"
)

// SyncEvery is the interval at which written records are forced to the disk.
const SyncEvery = 50 * time.Millisecond

// These are the defaults of Options, and bounds.
const (
	defaultSegmentSize     = 16 << 20
	defaultSegmentAge      = time.Hour
	defaultCheckpointEvery = 10 * time.Second
	// laterDelay is the time for which a record that may wait does wait. Under load the next record that may not wait
	// takes it along.
	laterDelay = 5 * time.Millisecond
	// maxPending is the most bytes that wait for a disk which takes no writes.
	maxPending = 4 << 20
)

// These are the errors of a journal.
var (
	// ErrUnavailable reports that the journal cannot be written. The record does not exist.
	ErrUnavailable = errors.New("audit journal cannot be written")
	errClosed      = errors.New("audit journal is closed")
	// errFault reports that an existing part of a file cannot be written.
	errFault = errors.New("the file was cut off, or its disk fails")
)

// Options holds the options of a journal. Members without a default must be set.
type Options struct {
	// Dir is the directory of journals, with one directory for each node in it. It is made when it is missing.
	Dir string
	// Signer signs new checkpoints and checks existing ones.
	Signer format.Signer
	// MACs makes the MACs of new records and checks existing ones.
	MACs storage.AuditMACs
	// Now is the clock. Default: time.Now.
	Now func() time.Time
	// Log receives messages for operators. Default: nothing is logged.
	Log *slog.Logger

	// SegmentSize and SegmentAge are the size in bytes and the age at which a segment ends. CheckpointEvery is the time
	// between two checkpoints of a segment that grows. Defaults: 16 MiB, an hour, 10 seconds.
	SegmentSize     int64
	SegmentAge      time.Duration
	CheckpointEvery time.Duration

	create  func(path string) (file, error) // for tests: a disk with faults
	trusted func(dir string) bool           // reports whether an existing journal is continued; nil: always
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

// file is the open file of a segment that is written.
type file interface {
	// Write appends. The kernel has the bytes when it returns.
	Write([]byte) (int, error)
	// Truncate removes the bytes after size. size is within the bytes that the last Write has added.
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
	lost       atomic.Int64 // records and outcomes that were to be written later and are lost

	// The fields that every record uses are next to each other: between two calls little of them stays in the processor's
	// cache.
	mu        sync.Mutex
	closed    bool
	former    bool   // an older durward has left it, whose records have no MACs
	torn      bool   // the file may have a part of a line after segment.size
	stuck     bool   // the last write failed; only the writing goroutine tries again what waits
	failure   error  // the disk could not be synced: no more records go into this segment
	joined    *group // the callers that wait for pending; nil: there are none
	written   int64  // bytes of lines, of all segments
	grouped   int    // number of outcomes that are in no record yet
	segment   segment
	pending   []byte                        // lines that are not written yet
	additions []addition                    // the records in them
	scratch   []byte                        // the bytes of a record that are hashed
	digests   map[string]*[sha256.Size]byte // of shared parts, see digestOf
	part      []byte                        // the shared part of a record
	place     []byte                        // the bytes that its MAC covers
	mac       []byte
	fresh     fresh // the records that are not shipped yet

	grouping []*chain // chains with outcomes that are in no record yet; a chain may be here twice, or have no such outcome any more
	spare    [][]storage.AuditOutcome
	last     lastCheckpoint
	stored   map[string]storage.AuditChain // chains of the store's own records with new ones since the last checkpoint
	wake     chan struct{}                 // signals that pending waits to be written
	rotation chan struct{}                 // signals that the segment is full
	ripe     chan struct{}                 // signals that much is to be shipped

	// syncing is held while a segment is synced. It is taken before mu. The kernel reports a failed sync only once, so a
	// second sync of the same file beside a failing one would succeed.
	syncing sync.Mutex
	synced  atomic.Int64 // up to which of the written bytes the disk has those that it has not lost; set with syncing held
	unsure  unsure       // mu guards it

	stop chan struct{}
	work sync.WaitGroup
}

// lastCheckpoint is the checkpoint that the next one follows.
type lastCheckpoint struct {
	number int64
	hash   string
	at     time.Time
}

// segment is the segment that grows.
type segment struct {
	file   file
	size   int64
	latest *chain            // the chain that was looked up last; nil: none yet
	chains map[string]*chain // by organization
	moved  bool              // records were written since the last checkpoint
	ended  bool              // it has its final checkpoint
	number int
	name   string
	header string // the hash of its first line
	began  time.Time
	path   string
	at     os.FileInfo // the file at its path when it began; nil: not known
}

type chain struct {
	storage.AuditChain
	name  [sha256.Size]byte // its NameHash
	moved bool
	open  *chunkWriter // the chunk of the growing part for its records; nil: none yet
	usual int          // the size of the last such chunk

	outcomes []storage.AuditOutcome // that are in no record yet
	latest   time.Time              // the latest time of a record, without times from before the clock was put back
}

// Open takes the first journal in the directory that no process uses, or makes one. It ends the segments that a crash has
// left open in it. Records can be appended at once.
func Open(o Options) (*Journal, error) {
	o = o.withDefaults()
	j := &Journal{
		digests: make(map[string]*[sha256.Size]byte),
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

// Node returns the journal's name among the nodes.
func (j *Journal) Node() string { return j.node }

// SyncAlways makes every Append wait for the disk.
func (j *Journal) SyncAlways(on bool) { j.syncAlways.Store(on) }

// Lost returns the number of records and outcomes that could wait and were given up, because the disk took no writes for
// too long.
func (j *Journal) Lost() int64 { return j.lost.Load() }

// writtenSoFar returns the number of bytes that were written to all segments.
func (j *Journal) writtenSoFar() int64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.written
}

// Stored notes the last record of a chain of the store's own records, for the next checkpoint.
func (j *Journal) Stored(c storage.AuditChain) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.stored[c.OrganizationID].Sequence < c.Sequence {
		j.stored[c.OrganizationID] = c
	}
}

// Flush writes the records and outcomes that wait.
func (j *Journal) Flush() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed {
		return errClosed
	}
	return j.flushAll()
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
