package audit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/durward-gateway/durward/internal/audit/query"
	"github.com/durward-gateway/durward/internal/audit/segments"
	"github.com/durward-gateway/durward/storage"
)

// These are the times of shipping.
const (
	shipEvery    = 5 * time.Second
	shipCheck    = 500 * time.Millisecond
	shipBacklog  = 8 << 20 // bytes of unshipped lines that are shipped without waiting, like records in memory at ripeFresh
	shipDeadline = 30 * time.Second
	// examineDeadline is the time for which a start waits for the store's records of a journal.
	examineDeadline = 10 * time.Second
)

// Trail is a node's part of the audit log: its journal, its shipper, and the sinks. It is safe for concurrent use.
type Trail struct {
	journal *Journal
	shipper *shipper
	store   storage.Audits
	macs    storage.AuditMACs
	log     *slog.Logger

	mu     sync.Mutex
	feeds  []*feed
	former []*feed                 // feeds that are ending
	past   map[string]int64        // losses of feeds that have ended, by the sink's name
	told   map[string]int64        // losses that were logged
	taps   atomic.Pointer[[]*feed] // the feeds that get the records

	refusals *refusals
	unstored atomic.Int64 // see shipper

	stop   chan struct{}
	work   sync.WaitGroup
	closed sync.Once
}

// NewTrail opens the journal and begins to ship it to the store. It also ends and ships journals of other nodes in the
// directory that no process writes any more.
func NewTrail(o Options, store storage.Audits) (*Trail, error) {
	o = o.withDefaults()
	t := &Trail{store: store, macs: o.MACs, log: o.Log, past: make(map[string]int64), stop: make(chan struct{})}
	o.trusted = t.trusted
	j, err := Open(o)
	if err != nil {
		return nil, err
	}
	t.journal = j
	t.refusals = newRefusals(o.Now)
	t.shipper = shipperOf(j, store)
	t.shipper.unstored = &t.unstored
	t.work.Go(func() { t.run(o) })
	return t, nil
}

// Node returns this node's name in the audit log.
func (t *Trail) Node() string { return t.journal.node }

// SyncAlways makes every intent wait for the disk.
func (t *Trail) SyncAlways(on bool) { t.journal.SyncAlways(on) }

// Append records an event before it returns: see Journal.Append.
func (t *Trail) Append(organization string, e *storage.AuditEntry) error {
	return t.journal.Append(organization, e)
}

// Later records an event within a few milliseconds, or counts it as lost.
func (t *Trail) Later(organization string, e *storage.AuditEntry) { t.journal.Later(organization, e) }

// Outcome records the outcome of a call within a few milliseconds, or counts it as lost.
func (t *Trail) Outcome(organization string, o *storage.AuditOutcome) {
	t.journal.Outcome(organization, o)
}

// Audited returns the argument of storage.WithAudit. The entries are recorded in the transaction of the next write.
func (t *Trail) Audited(organization string, entries ...storage.AuditEntry) *storage.Audited {
	return &storage.Audited{OrganizationID: organization, Node: t.journal.node, Entries: entries, MACs: t.journal.options.MACs, Committed: t.committed}
}

// committed gets the records that the store itself has made.
func (t *Trail) committed(records []storage.AuditRecord) {
	for _, r := range records {
		t.journal.Stored(storage.AuditChain{OrganizationID: r.OrganizationID, Node: r.Node, Segment: r.Segment, Sequence: r.Sequence, Hash: r.Hash})
		t.offer(r)
	}
}

func (t *Trail) offer(r storage.AuditRecord) {
	if feeds := t.taps.Load(); feeds != nil {
		for _, f := range *feeds {
			f.offer(r)
		}
	}
}

// SetSinks replaces the sinks. The previous ones get a short time to take the records that wait for them.
func (t *Trail) SetSinks(sinks []Sink) {
	var feeds []*feed
	for _, s := range sinks {
		feeds = append(feeds, newFeed(s))
	}
	t.mu.Lock()
	former := t.feeds
	t.feeds, t.former = feeds, append(t.former, former...)
	t.mu.Unlock()
	t.taps.Store(&feeds)
	if len(feeds) > 0 {
		t.journal.Observe(t.offer)
	}
	for _, f := range former {
		t.work.Go(func() { t.closeFeed(f) })
	}
}

// closeFeed ends a feed, and keeps the number of its losses: a count never falls.
func (t *Trail) closeFeed(f *feed) {
	f.close()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.former = slices.DeleteFunc(t.former, func(one *feed) bool { return one == f })
	t.past[f.sink.Name()] += f.lost.Load()
}

// Losses returns the number of records and outcomes that could not be recorded or passed on since the start, by place.
func (t *Trail) Losses() map[string]int64 {
	losses := map[string]int64{"journal": t.journal.Lost(), "refusals": t.refusals.dropped.Load(), "store": t.unstored.Load()}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, f := range slices.Concat(t.feeds, t.former) {
		losses[f.sink.Name()] += f.lost.Load()
	}
	for name, n := range t.past {
		losses[name] += n
	}
	return losses
}

// Query reads one page of the audit log, newest first. It includes all records of this node.
func (t *Trail) Query(ctx context.Context, f query.Filter, page storage.PageRequest) (storage.Page[query.Row], error) {
	if err := t.Ship(ctx); err != nil {
		return storage.Page[query.Row]{}, err
	}
	return query.Page(ctx, t.store, f, page)
}

// Search reads rows of the audit log that are older than a position, newest first. It includes all records of this node.
func (t *Trail) Search(ctx context.Context, f query.Filter, after *query.Position, limit int) (query.Found, error) {
	if after == nil { // what is older was shipped when the page before was read
		if err := t.Ship(ctx); err != nil {
			return query.Found{}, err
		}
	}
	return query.Search(ctx, t.store, f, after, limit)
}

// Facets counts the newest events of the audit log by values. It includes all records of this node.
func (t *Trail) Facets(ctx context.Context, f query.Filter, facets []string) (query.Counts, error) {
	if err := t.Ship(ctx); err != nil {
		return query.Counts{}, err
	}
	return query.CountFacets(ctx, t.store, f, facets)
}

// Status tells where this node's part of the audit log stands.
type Status struct {
	Node string
	// Unshipped is the number of bytes of the journal that are not in the store yet; Segments and Aside are the numbers of
	// its files, and of those that were set aside.
	Unshipped       int64
	Segments, Aside int
	// Checkpoint is the number of the last checkpoint, 0 for none, and CheckpointAt its time.
	Checkpoint   int64
	CheckpointAt time.Time
}

// Status tells where this node's part of the audit log stands. It ships nothing.
func (t *Trail) Status() (Status, error) {
	s := Status{Node: t.journal.node, Unshipped: max(0, t.backlog())}
	numbers, err := segments.List(t.journal.dir)
	if err != nil {
		return s, fmt.Errorf("listing audit segments: %w", err)
	}
	aside, err := segments.Aside(t.journal.dir)
	if err != nil {
		return s, fmt.Errorf("listing audit segments: %w", err)
	}
	t.journal.mu.Lock()
	defer t.journal.mu.Unlock()
	s.Segments, s.Aside, s.Checkpoint, s.CheckpointAt = len(numbers), len(aside), t.journal.last.number, t.journal.last.at
	return s, nil
}

// Ship sends all records in the journal to the store.
func (t *Trail) Ship(ctx context.Context) error {
	if err := t.journal.Flush(); err != nil {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return t.shipper.ship(ctx)
}

// run ships until the trail is closed.
func (t *Trail) run(o Options) {
	ctx, cancel := context.WithCancel(context.Background())
	t.work.Go(func() { <-t.stop; cancel() })
	adopted := t.adopt(ctx, o)
	t.recall(ctx)
	tick := time.NewTicker(shipCheck)
	defer tick.Stop()
	var waited time.Duration
	var failing bool
	for {
		select {
		case <-t.stop:
			return
		case <-t.journal.ripe:
			if failing {
				continue
			}
		case <-tick.C:
			if waited += shipCheck; waited < shipEvery && (failing || t.backlog() < shipBacklog) {
				continue
			}
		}
		waited = 0
		t.recordUnrecorded()
		err := t.shipFor(ctx)
		if (err != nil) != failing {
			if failing = err != nil; failing {
				t.log.Error("the audit log stays in the journal for now", "error", err.Error())
			} else {
				t.log.Info("the audit log is shipped again")
			}
		}
		if !failing && !adopted {
			adopted = t.adopt(ctx, o)
		}
		t.report()
	}
}

func (t *Trail) shipFor(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, shipDeadline)
	defer cancel()
	return t.Ship(ctx)
}

func (t *Trail) backlog() int64 {
	t.shipper.mu.Lock()
	defer t.shipper.mu.Unlock()
	return t.journal.writtenSoFar() - t.shipper.shipped
}

// report logs new losses. It is called by run, and after run has ended.
func (t *Trail) report() {
	losses := t.Losses()
	before := t.told
	t.told = losses
	for where, n := range losses {
		if n <= before[where] {
			continue
		}
		attributes := []any{"where", where, "records", n - before[where]}
		t.mu.Lock()
		for _, f := range t.feeds {
			if text := f.failure.Load(); text != nil && f.sink.Name() == where {
				attributes = append(attributes, "error", *text)
			}
		}
		t.mu.Unlock()
		t.log.Warn("audit records are lost", attributes...)
	}
}

// recall asks the store for the last records of the store's own chains. So the next checkpoint covers records that a
// crash kept out of the last one.
func (t *Trail) recall(ctx context.Context) {
	chains, err := t.store.AuditChains(ctx, t.journal.node)
	if err != nil {
		t.log.Error("asking where the audit log stands", "error", err.Error())
		return
	}
	for _, c := range chains {
		if c.Segment != storage.AuditStoreSegment || c.Sequence == 0 {
			continue
		}
		if !c.SealedBy(t.journal.options.MACs, &c.MAC) {
			t.log.Error("the store says that an audit chain ends with a record without a MAC of this gateway; run durward audit verify", "node", c.Node, "organization", c.OrganizationID, "record", c.Sequence)
			continue
		}
		t.journal.Stored(c)
	}
}

// trusted reports whether an existing journal in a directory can be continued.
func (t *Trail) trusted(dir string) bool {
	ctx, cancel := context.WithTimeout(context.Background(), examineDeadline)
	defer cancel()
	doubt, err := examine(ctx, t.store, dir, t.macs)
	switch {
	case err != nil:
		t.log.Warn("an audit journal cannot be held against the store: another one is begun, and it is shipped later", "node", filepath.Base(dir), "error", err.Error())
	case doubt.reason != "":
		t.log.Error("an audit journal does not continue what the store has of it, as when an older state of one of them was put back: another one is begun; run durward audit verify",
			"node", filepath.Base(dir), "because", doubt.reason)
	}
	return err == nil && doubt.reason == ""
}

// adopt ends and ships journals that other nodes left in the directory: gateways that ran on this machine beside another
// one. It reports whether it is done, so that it need not run again.
func (t *Trail) adopt(ctx context.Context, o Options) bool {
	dirs, err := segments.Nodes(o.Dir)
	if err != nil {
		t.log.Error("listing audit journals", "error", err.Error())
		return true
	}
	done := true
	for _, dir := range dirs {
		// One without segments may be that of a process that is about to begin one.
		if numbers, err := segments.List(dir); dir == t.journal.dir || err != nil || len(numbers) == 0 || ofLaterFormat(dir, numbers) {
			continue
		}
		if err := t.adoptOne(ctx, o, dir); err != nil && !errors.Is(err, segments.ErrLocked) {
			t.log.Error("shipping the audit journal of another node", "node", filepath.Base(dir), "error", err.Error())
			done = done && !errors.Is(err, storage.ErrUnavailable)
		}
	}
	return done
}

func (t *Trail) adoptOne(ctx context.Context, o Options, dir string) error {
	unlock, err := segments.Lock(filepath.Join(dir, lockFile))
	if err != nil {
		return err
	}
	defer unlock()
	// When the store has different records of the journal, its missing records are still shipped, and the rest is kept.
	doubt, err := examine(ctx, t.store, dir, o.MACs)
	if err != nil {
		return err
	}
	j := &Journal{options: o, dir: dir, node: filepath.Base(dir)}
	numbers, err := segments.List(dir)
	if err != nil {
		return err
	}
	if j.former = ofFormerFormat(dir, numbers); j.former {
		if j.former, err = hasNoMACs(ctx, t.store, j.node, j.keys()); err != nil {
			return err
		}
	}
	if _, err := j.resume(); err != nil {
		return err
	}
	s := &shipper{dir: dir, node: j.node, store: t.store, keys: j.keys(), log: t.log, refused: doubt.chains, unstored: &t.unstored, growing: func() int { return segments.MaxNumber }}
	if err := s.ship(ctx); err != nil {
		return err
	}
	if entries, err := os.ReadDir(dir); err == nil && len(entries) == 1 { // only the lock is left
		return errors.Join(os.Remove(filepath.Join(dir, lockFile)), os.Remove(dir))
	}
	return nil
}

// Close ships all records that it can, and closes the journal and the sinks.
func (t *Trail) Close() (err error) {
	t.closed.Do(func() {
		close(t.stop)
		t.recordUnrecorded()
		err = t.journal.Close()
		ctx, cancel := context.WithTimeout(context.Background(), shipDeadline)
		defer cancel()
		err = errors.Join(err, t.shipper.ship(ctx))
		t.SetSinks(nil)
		t.work.Wait()
		t.report()
	})
	return err
}
