package audit

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/durward-gateway/durward/storage"
)

// appendSome appends records of an organization to what takes them, with tools of that name.
func appendSome(t *testing.T, to interface {
	Append(organization string, e *storage.AuditEntry) error
}, organization, tool string, n int) {
	t.Helper()
	for range n {
		if err := to.Append(organization, intent(tool)); err != nil {
			t.Fatal(err)
		}
	}
}

// stored counts what is in the store of each tool.
func stored(t *testing.T, store *memory, organization string) map[string]int {
	t.Helper()
	tools := make(map[string]int)
	for i := range store.chunks {
		if store.chunks[i].OrganizationID != organization {
			continue
		}
		records, err := ReadChunk(&store.chunks[i])
		if err != nil {
			t.Fatal(err)
		}
		for i := range records {
			if e, err := EntryOf(&records[i]); err != nil {
				t.Fatal(err)
			} else {
				tools[e.Tool]++
			}
		}
	}
	return tools
}

// keepCopy copies a journal's directory, and returns what puts the copy in its place.
func keepCopy(t *testing.T, dir string) (putBack func()) {
	t.Helper()
	kept := filepath.Join(t.TempDir(), "kept")
	if err := os.CopyFS(kept, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		if err := os.CopyFS(dir, os.DirFS(kept)); err != nil {
			t.Fatal(err)
		}
	}
}

// killShipped is a journal of which all is in the store, killed.
func killShipped(t *testing.T, root string, store *memory, tool string, n int) *Journal {
	t.Helper()
	j := openJournal(t, testOptions(t, root))
	appendSome(t, j, acme, tool, n)
	if err := j.Checkpoint(); err != nil {
		t.Fatal(err)
	}
	appendSome(t, j, acme, tool, 1) // behind the checkpoint
	if err := newShipper(j, store).ship(t.Context()); err != nil {
		t.Fatal(err)
	}
	kill(t, j)
	return j
}

// closeTrail ends a trail when all is shipped that was left by others, too.
func closeTrail(t *testing.T, trail *Trail) {
	t.Helper()
	if err := trail.Ship(t.Context()); err != nil {
		t.Fatal(err)
	}
	for {
		dirs, err := nodeDirs(filepath.Dir(trail.journal.dir))
		if err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(dirs, func(dir string) bool {
			numbers, _ := segments(dir)
			return dir != trail.journal.dir && len(numbers) > 0
		}) {
			break
		}
	}
	if err := trail.Close(); err != nil {
		t.Fatal(err)
	}
}

func wantStored(t *testing.T, store *memory, organization string, want map[string]int) {
	t.Helper()
	if got := stored(t, store, organization); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("in the store of %s: %v, want %v", organization, got, want)
	}
}

// TestOlderJournal: an older state of a journal is put back, without that of the store. What is recorded from then on would have the
// numbers of what is in the store.
func TestOlderJournal(t *testing.T) {
	root, store := t.TempDir(), new(memory)
	j := killShipped(t, root, store, "first", 4)
	putBack := keepCopy(t, j.dir)
	again := newTrail(t, testOptions(t, root), store)
	if again.Node() != j.node {
		t.Fatal("a journal that was killed is not gone on with")
	}
	appendSome(t, again, acme, "second", 10)
	closeTrail(t, again)
	wantClean(t, root, store)
	putBack()
	last := newTrail(t, testOptions(t, root), store)
	if last.Node() == j.node {
		t.Error("an older journal is gone on with")
	}
	appendSome(t, last, acme, "third", 20)
	closeTrail(t, last)
	wantStored(t, store, acme, map[string]int{"first": 5, "second": 10, "third": 20})
	findings := verify(t, root, store)
	if !slices.ContainsFunc(findings, func(f Finding) bool { return strings.Contains(f.Problem, "was set aside") }) {
		t.Errorf("%v", findings)
	}
}

// TestEmptiedSegment: the growing segment is emptied after a kill, and its ring removed. The next one has its number.
func TestEmptiedSegment(t *testing.T) {
	root, store := t.TempDir(), new(memory)
	j := killShipped(t, root, store, "first", 11)
	for _, err := range []error{os.Truncate(segmentPath(j.dir, 1), 0), os.Remove(filepath.Join(j.dir, ringName))} {
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
	}
	again := newTrail(t, testOptions(t, root), store)
	appendSome(t, again, acme, "second", 9)
	closeTrail(t, again)
	wantStored(t, store, acme, map[string]int{"first": 12, "second": 9})
	if len(verify(t, root, store)) == 0 {
		t.Error("nothing is found")
	}
}

// TestForkedJournal: of a journal that has gone on where the store has something else, what the store has no other for is shipped, and
// the rest is kept.
func TestForkedJournal(t *testing.T) {
	root, store := t.TempDir(), new(memory)
	j := killShipped(t, root, store, "first", 4)
	putBack := keepCopy(t, j.dir)
	killShipped(t, root, store, "second", 3)
	putBack()
	fork := openJournal(t, testOptions(t, root)) // asks no store
	appendSome(t, fork, acme, "lost", 3)
	appendSome(t, fork, other, "kept", 3)
	kill(t, fork)
	again := newTrail(t, testOptions(t, root), store)
	if again.Node() == j.node {
		t.Error("a forked journal is gone on with")
	}
	closeTrail(t, again)
	wantStored(t, store, acme, map[string]int{"first": 5, "second": 4})
	wantStored(t, store, other, map[string]int{"kept": 3})
	if kept := readFile(t, segmentPath(j.dir, 2)+damagedSuffix); strings.Count(kept, `"lost"`) != 3 {
		t.Errorf("%q", kept)
	}
}

// TestDisputed: the store gets something else in the place of what is in the journal while the gateway runs. The segment is kept.
func TestDisputed(t *testing.T) {
	for name, put := range map[string]func(j *Journal, store *memory) error{
		"records": func(j *Journal, store *memory) error {
			w := newChunk(j.node, "00000001", acme, new([32]byte), 1, nil)
			w.add(&record{sequence: 1, text: []byte(`{"i":"","t":1}`)}, 1)
			chunk, _ := w.finish(nil)
			return store.AddAuditChunks(t.Context(), []storage.AuditChunk{chunk})
		},
		"checkpoints": func(j *Journal, store *memory) error {
			return store.AddAuditCheckpoint(t.Context(), storage.AuditCheckpoint{Node: j.node, Segment: "00000001", Number: 1, Data: []byte("{}")})
		},
	} {
		t.Run(name, func(t *testing.T) {
			store := new(memory)
			j := openJournal(t, testOptions(t, t.TempDir()))
			leaveAlone(j)
			ship := newShipper(j, store)
			appendSome(t, j, acme, "lost", 3)
			appendSome(t, j, other, "kept", 3)
			if err := errors.Join(ship.prime(t.Context()), put(j, store)); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if err := ship.ship(t.Context()); err != nil {
					t.Fatal(err)
				}
				if err := turn(j); err != nil {
					t.Fatal(err)
				}
			}
			if n := stored(t, store, other)["kept"]; n != 3 {
				t.Errorf("%d of 3 are shipped", n)
			}
			if kept := readFile(t, segmentPath(j.dir, 1)+damagedSuffix); strings.Count(kept, `"lost"`) != 3 {
				t.Errorf("%q", kept)
			}
		})
	}
}

// awayStore is a store that sometimes is away.
type awayStore struct {
	*memory
	away atomic.Bool
}

func (s *awayStore) AuditChains(ctx context.Context, node string) ([]storage.AuditChain, error) {
	if s.away.Load() {
		return nil, storage.ErrUnavailable
	}
	return s.memory.AuditChains(ctx, node)
}

// TestNoStore: when the store cannot say what it has of a journal, another one is begun, and it is shipped when the store is there again.
func TestNoStore(t *testing.T) {
	root, store := t.TempDir(), new(memory)
	j := openJournal(t, testOptions(t, root))
	appendSome(t, j, acme, "first", 4)
	kill(t, j)
	away := &awayStore{memory: store}
	away.away.Store(true)
	trail := newTrail(t, testOptions(t, root), away)
	if trail.Node() == j.node {
		t.Error("a journal is gone on with that could not be held against the store")
	}
	away.away.Store(false)
	closeTrail(t, trail)
	wantStored(t, store, acme, map[string]int{"first": 4})
	wantClean(t, root, store)
}
