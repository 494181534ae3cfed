package audit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/durward-gateway/durward/internal/audit/format"
	"github.com/durward-gateway/durward/internal/audit/former"
	"github.com/durward-gateway/durward/internal/audit/segments"
	"github.com/durward-gateway/durward/storage"
)

// endedJournal returns a journal whose first segment has ended, with three records of each organization, and nothing is
// shipped. before runs while the segment is written, after two records of each.
func endedJournal(t *testing.T, before func(j *Journal)) (*Journal, *lockedText) {
	t.Helper()
	o, log := loggedOptions(t, t.TempDir())
	j := openJournal(t, o)
	leaveAlone(j)
	for i := range 3 {
		appendSome(t, j, acme, "one", 1)
		appendSome(t, j, other, "another", 1)
		if i == 1 && before != nil {
			before(j)
		}
	}
	if err := turn(j); err != nil {
		t.Fatal(err)
	}
	return j, log
}

// wantKept checks that the first segment was kept, and that the log says so, or that it was removed.
func wantKept(t *testing.T, j *Journal, log *lockedText, kept bool) {
	t.Helper()
	path := segments.Path(j.dir, 1)
	if _, err := os.Stat(path); err == nil {
		t.Error("the segment is still to be shipped")
	}
	if _, err := os.Stat(path + segments.DamagedSuffix); (err == nil) != kept {
		t.Errorf("kept: %v, want %v", err == nil, kept)
	}
	if told := log.count("an audit segment is damaged") > 0; told != kept {
		t.Errorf("told: %v, want %v", told, kept)
	}
}

// TestShippedSegments checks that a segment goes once the store has all of it, and that it is kept when anything in it
// is not the gateway's, or its end is not known.
func TestShippedSegments(t *testing.T) {
	foreign := func(j *Journal) {
		c := format.Checkpoint{Format: format.CheckpointFormat, Node: j.node, Number: 1, Segment: "00000001", Chains: []format.Head{}}
		signed := c.Sign(newGatewayKeys().signer)
		appendFile(t, segments.Path(j.dir, 1), string(format.AppendCheckpoint(nil, &signed)))
	}
	periodic := func(j *Journal) {
		if err := j.Checkpoint(); err != nil {
			t.Fatal(err)
		}
	}
	for name, tc := range map[string]struct {
		before func(j *Journal)
		after  func(j *Journal, s *shipper)
		kept   bool
		stored map[string]int // of acme
	}{
		"whole":                                {nil, nil, false, map[string]int{"one": 3}},
		"with a checkpoint in it":              {periodic, nil, false, map[string]int{"one": 3}},
		"with a checkpoint of another gateway": {foreign, nil, true, map[string]int{"one": 3}},
		"with a line that nobody can read":     {func(j *Journal) { appendFile(t, segments.Path(j.dir, 1), "#\n") }, nil, true, map[string]int{"one": 3}},
		"without its final checkpoint": {periodic, func(j *Journal, _ *shipper) {
			path := segments.Path(j.dir, 1)
			lines := strings.SplitAfter(readFile(t, path), "\n")
			if err := os.WriteFile(path, []byte(strings.Join(lines[:len(lines)-2], "")), 0o600); err != nil {
				t.Fatal(err)
			}
		}, true, map[string]int{"one": 3}},
		"with a chain that the store has otherwise": {nil, func(_ *Journal, s *shipper) {
			s.refused = map[chainName]bool{{acme, "00000001"}: true}
		}, true, map[string]int{}},
	} {
		t.Run(name, func(t *testing.T) {
			j, log := endedJournal(t, tc.before)
			store := new(memory)
			s := fileShipper(j, store)
			if tc.after != nil {
				tc.after(j, s)
			}
			if err := s.ship(t.Context()); err != nil {
				t.Fatal(err)
			}
			wantKept(t, j, log, tc.kept)
			wantStored(t, store, acme, tc.stored)
			wantStored(t, store, other, map[string]int{"another": 3})
			if unstored := int64(3 - tc.stored["one"]); s.unstored.Load() != unstored {
				t.Errorf("%d records are counted as not stored, want %d", s.unstored.Load(), unstored)
			}
		})
	}
}

// removing is a store that removes a file when it gets a checkpoint.
type removing struct {
	*memory
	path string
}

func (r *removing) AddAuditCheckpoint(ctx context.Context, c storage.AuditCheckpoint) error {
	return errors.Join(os.Remove(r.path), r.memory.AddAuditCheckpoint(ctx, c))
}

// TestSegmentThatCannotBeRemoved checks that the log has the reason.
func TestSegmentThatCannotBeRemoved(t *testing.T) {
	j, log := endedJournal(t, nil)
	if err := fileShipper(j, &removing{new(memory), segments.Path(j.dir, 1)}).ship(t.Context()); err != nil {
		t.Fatal(err)
	}
	if log.count("removing an audit segment") != 1 {
		t.Error("the log says nothing")
	}
}

// TestGap checks that records after a damaged line go into a chunk of their own, and that each chunk is sealed at its own
// last record.
func TestGap(t *testing.T) {
	root, store := t.TempDir(), new(memory)
	j := openJournal(t, testOptions(t, root))
	leaveAlone(j)
	appendSome(t, j, acme, "one", 6)
	path := segments.Path(j.dir, 1)
	lines := bytes.SplitAfter([]byte(readFile(t, path)), []byte("\n"))
	lines[3][0] = '#' // the third record
	if err := os.WriteFile(path, bytes.Join(lines, nil), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := fileShipper(j, store).ship(t.Context()); err != nil {
		t.Fatal(err)
	}
	found := ""
	for i := range store.chunks {
		c := &store.chunks[i]
		records, err := former.ReadChunk(c)
		if err != nil || len(records) == 0 {
			t.Fatalf("records %d to %d: %v", c.First, c.Last, err)
		}
		last := storage.AuditChain{OrganizationID: c.OrganizationID, Node: c.Node, Segment: c.Segment, Sequence: c.Last, Hash: records[len(records)-1].Hash}
		if !last.SealedBy(j.options.MACs, &c.MAC) {
			t.Errorf("records %d to %d are not sealed", c.First, c.Last)
		}
		found += fmt.Sprintf("%d-%d ", c.First, c.Last)
	}
	if found != "1-2 5-6 " { // the fourth is not proven: the hash before it is gone
		t.Errorf("the store has records %s", found)
	}
}

// TestManyCheckpoints checks that checkpoints between long records are shipped as they stand in the file.
func TestManyCheckpoints(t *testing.T) {
	root, store := t.TempDir(), new(memory)
	j := openJournal(t, testOptions(t, root))
	leaveAlone(j)
	e := intent("create_issue")
	e.Detail = map[string]any{"much": strings.Repeat("x", 50<<10)}
	for range 12 {
		if err := errors.Join(j.Append(acme, e), j.Append(acme, e), j.Checkpoint()); err != nil {
			t.Fatal(err)
		}
	}
	if err := fileShipper(j, store).ship(t.Context()); err != nil {
		t.Fatal(err)
	}
	if report := wantClean(t, root, store); len(store.checkpoints) != 12 || report.Records != 24 {
		t.Errorf("%d checkpoints, %+v", len(store.checkpoints), report)
	}
}

// pickyStore is a store that counts the chunks that it gets, and does what it is told with them and with checkpoints.
type pickyStore struct {
	*memory
	got        int
	refuses    func(organization string) error
	checkpoint func(number int64) error
	unread     error
}

func (c *pickyStore) AddAuditChunks(ctx context.Context, chunks []storage.AuditChunk) error {
	c.got += len(chunks)
	for i := range chunks {
		if c.refuses != nil {
			if err := c.refuses(chunks[i].OrganizationID); err != nil {
				return err
			}
		}
	}
	return c.memory.AddAuditChunks(ctx, chunks)
}

func (c *pickyStore) AddAuditCheckpoint(ctx context.Context, checkpoint storage.AuditCheckpoint) error {
	if c.checkpoint != nil {
		if err := c.checkpoint(checkpoint.Number); err != nil {
			return err
		}
	}
	return c.memory.AddAuditCheckpoint(ctx, checkpoint)
}

func (c *pickyStore) AuditCheckpoint(ctx context.Context, node string, number int64) (storage.AuditCheckpoint, error) {
	if c.unread != nil {
		return storage.AuditCheckpoint{}, c.unread
	}
	return c.memory.AuditCheckpoint(ctx, node, number)
}

// TestSentOnce checks that the store gets each record once.
func TestSentOnce(t *testing.T) {
	j := openJournal(t, testOptions(t, t.TempDir()))
	leaveAlone(j)
	store := &pickyStore{memory: new(memory)}
	s := newShipper(j, store)
	for range 3 {
		appendSome(t, j, acme, "one", 1)
		if err := s.ship(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if store.got != 3 {
		t.Errorf("the store got %d chunks, want 3", store.got)
	}
}

// TestStoreGoesAwayBesidePoison checks that records wait for a store that goes away while it is asked for each chunk,
// and that what it cannot keep is told once.
func TestStoreGoesAwayBesidePoison(t *testing.T) {
	o, log := loggedOptions(t, t.TempDir())
	j := openJournal(t, o)
	leaveAlone(j)
	away := true
	store := &pickyStore{memory: new(memory), refuses: func(organization string) error {
		switch {
		case organization == acme:
			return storage.ErrValue
		case away:
			return storage.ErrUnavailable
		}
		return nil
	}}
	appendSome(t, j, acme, "poison", 2)
	appendSome(t, j, other, "waits", 2)
	s := newShipper(j, store)
	if err := s.ship(t.Context()); !errors.Is(err, storage.ErrUnavailable) {
		t.Fatalf("the store is away: %v", err)
	}
	away = false
	if err := s.ship(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantStored(t, store.memory, acme, map[string]int{})
	wantStored(t, store.memory, other, map[string]int{"waits": 2})
	if s.unstored.Load() != 2 || log.count("the store cannot keep audit records") != 1 {
		t.Errorf("%d records are counted, told %d times", s.unstored.Load(), log.count("the store cannot keep audit records"))
	}
}

// TestChunksAfterPoison checks that the chunks of a chain that follow one which the store cannot keep stay in the
// journal too, and are counted.
func TestChunksAfterPoison(t *testing.T) {
	j := openJournal(t, testOptions(t, t.TempDir()))
	leaveAlone(j)
	store := new(memory)
	store.poison = func(c *storage.AuditChunk) bool { return c.First == 1 }
	e := intent("create_issue")
	e.Detail = map[string]any{"much": string(make([]byte, 64<<10))}
	const records = 20 // two chunks
	for range records {
		if err := j.Append(acme, e); err != nil {
			t.Fatal(err)
		}
	}
	s := newShipper(j, store)
	if err := s.ship(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(store.chunks) != 0 || s.unstored.Load() != records {
		t.Errorf("%d chunks are stored, and %d records counted", len(store.chunks), s.unstored.Load())
	}
}

// TestCheckpointThatCannotBeStored checks that later checkpoints are stored, that the segment is kept, and that it is told.
func TestCheckpointThatCannotBeStored(t *testing.T) {
	j, log := endedJournal(t, func(j *Journal) {
		if err := j.Checkpoint(); err != nil {
			t.Fatal(err)
		}
	})
	store := &pickyStore{memory: new(memory), checkpoint: func(number int64) error {
		if number == 1 {
			return storage.ErrValue
		}
		return nil
	}}
	if err := fileShipper(j, store).ship(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantKept(t, j, log, true)
	if len(store.checkpoints) != 1 || store.checkpoints[0].Number != 2 || log.count("the store cannot keep a checkpoint") != 1 {
		t.Errorf("%d checkpoints, told %d times", len(store.checkpoints), log.count("the store cannot keep a checkpoint"))
	}
}

// TestCheckpointThatIsThere checks that a checkpoint which the store has is not sent again, and that nothing is disputed
// while the store cannot say what it has.
func TestCheckpointThatIsThere(t *testing.T) {
	o, log := loggedOptions(t, t.TempDir())
	j := openJournal(t, o)
	leaveAlone(j)
	store := &pickyStore{memory: new(memory)}
	appendSome(t, j, acme, "one", 1)
	if err := errors.Join(j.Checkpoint(), fileShipper(j, store).ship(t.Context())); err != nil {
		t.Fatal(err)
	}
	again := fileShipper(j, store) // as after a crash
	store.unread = storage.ErrUnavailable
	if err := again.ship(t.Context()); !errors.Is(err, storage.ErrUnavailable) {
		t.Errorf("the store cannot be asked: %v", err)
	}
	store.unread = nil
	if err := again.ship(t.Context()); err != nil {
		t.Error(err)
	}
	if again.at.damaged || log.count("something else in the place") != 0 {
		t.Error("the store's own checkpoint is disputed")
	}
}
