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

	"github.com/durward-gateway/durward/internal/audit/format"
	"github.com/durward-gateway/durward/internal/audit/former"
	"github.com/durward-gateway/durward/internal/audit/segments"
	"github.com/durward-gateway/durward/internal/audit/verify"
	"github.com/durward-gateway/durward/storage"
)

// appendSome appends records of an organization to a journal or trail. tool is the tool in them.
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

// stored counts the records in the store for each tool.
func stored(t *testing.T, store *memory, organization string) map[string]int {
	t.Helper()
	tools := make(map[string]int)
	chunks := chunksOf(store)
	for i := range chunks {
		if chunks[i].OrganizationID != organization {
			continue
		}
		records, err := former.ReadChunk(&chunks[i])
		if err != nil {
			t.Fatal(err)
		}
		for i := range records {
			if e, err := format.EntryOf(&records[i]); err != nil {
				t.Fatal(err)
			} else {
				tools[e.Tool]++
			}
		}
	}
	return tools
}

// keepCopy copies a journal's directory, and returns a function that puts the copy in its place.
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

// killShipped returns a killed journal of which all records are in the store.
func killShipped(t *testing.T, root string, store *memory, tool string, n int) *Journal {
	t.Helper()
	j := openJournal(t, testOptions(t, root))
	appendSome(t, j, acme, tool, n)
	if err := j.Checkpoint(); err != nil {
		t.Fatal(err)
	}
	appendSome(t, j, acme, tool, 1) // after the checkpoint
	if err := newShipper(j, store).ship(t.Context()); err != nil {
		t.Fatal(err)
	}
	kill(t, j)
	return j
}

// closeTrail closes a trail when all records are shipped, also those of other journals in the directory.
func closeTrail(t *testing.T, trail *Trail) {
	t.Helper()
	if err := trail.Ship(t.Context()); err != nil {
		t.Fatal(err)
	}
	for {
		dirs, err := segments.Nodes(filepath.Dir(trail.journal.dir))
		if err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(dirs, func(dir string) bool {
			numbers, _ := segments.List(dir)
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

// TestOlderJournal checks that the gateway does not continue an older state of a journal that was put back without the
// store. Its next records would have the numbers of records in the store.
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
	findings := findings(t, root, store)
	if !slices.ContainsFunc(findings, func(f verify.Finding) bool { return strings.Contains(f.Problem, "was set aside") }) {
		t.Errorf("%v", findings)
	}
}

// TestEmptiedSegment checks a growing segment that is emptied after a kill, with its ring removed. The next segment has
// its number.
func TestEmptiedSegment(t *testing.T) {
	root, store := t.TempDir(), new(memory)
	j := killShipped(t, root, store, "first", 11)
	for _, err := range []error{os.Truncate(segments.Path(j.dir, 1), 0), os.Remove(filepath.Join(j.dir, former.RingName))} {
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
	}
	again := newTrail(t, testOptions(t, root), store)
	appendSome(t, again, acme, "second", 9)
	closeTrail(t, again)
	wantStored(t, store, acme, map[string]int{"first": 12, "second": 9})
	if len(findings(t, root, store)) == 0 {
		t.Error("nothing is found")
	}
}

// TestForkedJournal checks a journal that was continued although the store has different records. Records are shipped
// where the store has no others, and the rest is kept.
func TestForkedJournal(t *testing.T) {
	root, store := t.TempDir(), new(memory)
	j := killShipped(t, root, store, "first", 4)
	putBack := keepCopy(t, j.dir)
	killShipped(t, root, store, "second", 3)
	putBack()
	fork := openJournal(t, testOptions(t, root)) // does not ask the store
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
	if kept := readFile(t, segments.Path(j.dir, 2)+segments.DamagedSuffix); strings.Count(kept, `"lost"`) != 3 {
		t.Errorf("%q", kept)
	}
}

// TestDisputed checks that a segment is kept when the store gets different records in its place while the gateway runs.
func TestDisputed(t *testing.T) {
	for name, put := range map[string]func(j *Journal, store *memory) error{
		"records": func(j *Journal, store *memory) error {
			w := newChunk(j.node, "00000001", acme, new([32]byte), 1)
			w.add(1, new([32]byte), []byte(`{"i":"","t":1}`), 1)
			chunk, _ := w.finish(nil)
			return store.AddAuditChunks(t.Context(), []storage.AuditChunk{chunk})
		},
		"checkpoints": func(j *Journal, store *memory) error {
			return store.AddAuditCheckpoint(t.Context(), storage.AuditCheckpoint{Node: j.node, Segment: "00000001", Number: 1, Data: []byte("{}")})
		},
	} {
		t.Run(name, func(t *testing.T) {
			store := new(memory)
			o, log := loggedOptions(t, t.TempDir())
			j := openJournal(t, o)
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
			if kept := readFile(t, segments.Path(j.dir, 1)+segments.DamagedSuffix); strings.Count(kept, `"lost"`) != 3 {
				t.Errorf("%q", kept)
			}
			if log.count("the store has something else in the place") != 1 {
				t.Error("it is not told once")
			}
		})
	}
}

// awayStore is a store that can be made unreachable.
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

// TestNoStore checks that a new journal is begun when the store cannot list its records of an existing one. The existing
// journal is shipped when the store is reachable again.
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

// failingStore is a store that fails at one of the questions about its records.
type failingStore struct {
	*memory
	chains, chunks, checkpoint, checkpoints error
}

func (s *failingStore) AuditChains(ctx context.Context, node string) ([]storage.AuditChain, error) {
	if s.chains != nil {
		return nil, s.chains
	}
	return s.memory.AuditChains(ctx, node)
}

func (s *failingStore) AuditChunks(ctx context.Context, f storage.AuditFilter) ([]storage.AuditChunk, error) {
	if s.chunks != nil {
		return nil, s.chunks
	}
	return s.memory.AuditChunks(ctx, f)
}

func (s *failingStore) AuditCheckpoint(ctx context.Context, node string, number int64) (storage.AuditCheckpoint, error) {
	if s.checkpoint != nil {
		return storage.AuditCheckpoint{}, s.checkpoint
	}
	return s.memory.AuditCheckpoint(ctx, node, number)
}

func (s *failingStore) AuditCheckpoints(ctx context.Context, node string) ([]storage.AuditCheckpoint, error) {
	if s.checkpoints != nil {
		return nil, s.checkpoints
	}
	return s.memory.AuditCheckpoints(ctx, node)
}

// otherChunk replaces the records of a chunk by others with the same times.
func otherChunk(t *testing.T, c *storage.AuditChunk) {
	t.Helper()
	records, err := former.ReadChunk(c)
	if err != nil {
		t.Fatal(err)
	}
	w := newChunk(c.Node, c.Segment, c.OrganizationID, new([32]byte), c.First)
	chain := format.ChainOf(c.OrganizationID, c.Node, c.Segment)
	chain.Sequence = c.First - 1
	for i := range records {
		e, err := format.EntryOf(&records[i])
		if err != nil {
			t.Fatal(err)
		}
		e.Tool = "another"
		text := format.AppendEntry(nil, &e)
		hash, _ := format.Next(&chain, text, nil)
		w.add(chain.Sequence, &hash, text, format.NanosOf(records[i].Text))
	}
	mac := c.MAC
	*c, _ = w.finish(nil)
	c.MAC = mac
}

// TestExamine checks when a journal is continued: the journal and the store must agree on certain records, and no other
// difference keeps the journal from being continued.
func TestExamine(t *testing.T) {
	// The journal has records 1 to 4, a checkpoint over them, and record 5. The store has a chunk for each record.
	shipped := func(t *testing.T, store *failingStore) *Journal {
		j := openJournal(t, testOptions(t, t.TempDir()))
		leaveAlone(j) // the checkpoint is made below
		ship := newShipper(j, store)
		appendSome(t, j, acme, "tool", 4)
		if err := errors.Join(j.Checkpoint(), ship.ship(t.Context())); err != nil {
			t.Fatal(err)
		}
		appendSome(t, j, acme, "tool", 1)
		if err := ship.ship(t.Context()); err != nil {
			t.Fatal(err)
		}
		if len(store.memory.chunks) != 2 || len(store.memory.checkpoints) != 1 {
			t.Fatalf("%d chunks, %d checkpoints", len(store.memory.chunks), len(store.memory.checkpoints))
		}
		return j
	}
	withoutLast := func(store *failingStore) { store.memory.chunks = store.memory.chunks[:1] }
	for name, c := range map[string]struct {
		change func(t *testing.T, j *Journal, store *failingStore)
		want   string // the reason, or the error
		chain  bool   // the chain is one of which the store has different records
	}{
		"nothing": {func(*testing.T, *Journal, *failingStore) {}, "", false},
		"a record of the store itself": {func(t *testing.T, j *Journal, store *failingStore) {
			trail := &Trail{journal: j, store: store}
			if err := store.RecordAudit(storage.WithAudit(t.Context(), trail.Audited(acme, *intent("policy.update")))); err != nil {
				t.Fatal(err)
			}
		}, "", false},
		"a record of the store itself without a MAC": {func(t *testing.T, j *Journal, store *failingStore) {
			chain := format.ChainOf(acme, j.node, storage.AuditStoreSegment)
			store.records = append(store.records, chain.Next(format.Marshal(intent("forged"))))
		}, "record 1 of the store itself, with which the chain of organization \"" + acme + "\" is said to end, has no MAC", false},
		"a chain of the store itself without a record": {func(_ *testing.T, j *Journal, store *failingStore) {
			store.heads = func(all []storage.AuditChain) []storage.AuditChain {
				return append(all, format.ChainOf(acme, j.node, storage.AuditStoreSegment))
			}
		}, "", false},
		"a record of a segment that is to come": {func(_ *testing.T, j *Journal, store *failingStore) {
			store.memory.chunks = append(store.memory.chunks, storage.AuditChunk{OrganizationID: other, Node: j.node, Segment: "00000002", First: 1, Last: 1})
		}, "the store has records of segment 00000002", false},
		"a record of a segment that was set aside": {func(t *testing.T, j *Journal, store *failingStore) {
			store.memory.chunks = append(store.memory.chunks, storage.AuditChunk{OrganizationID: other, Node: j.node, Segment: "00000002", First: 1, Last: 1})
			appendFile(t, segments.Path(j.dir, 2)+segments.DamagedSuffix, "x")
		}, "", false},
		"a record too many": {func(_ *testing.T, _ *Journal, store *failingStore) {
			store.heads = func(all []storage.AuditChain) []storage.AuditChain { all[0].Sequence++; return all }
		}, "the store has more records of segment 00000001", false},
		"another last record": {func(t *testing.T, _ *Journal, store *failingStore) { otherChunk(t, &store.memory.chunks[1]) }, "the store has other records of segment 00000001", true},
		"a last record that is not to be read": {func(_ *testing.T, _ *Journal, store *failingStore) {
			store.memory.chunks[1].Data = []byte{format.ChunkFormat, 0xff}
		}, "the store has other records of segment 00000001", true},
		"another record under a checkpoint that both have": {func(t *testing.T, _ *Journal, store *failingStore) {
			withoutLast(store)
			otherChunk(t, &store.memory.chunks[0])
		}, "", false},
		"another record under a checkpoint that the store has not": {func(t *testing.T, _ *Journal, store *failingStore) {
			withoutLast(store)
			otherChunk(t, &store.memory.chunks[0])
			store.memory.checkpoints = nil
		}, "the store has other records of segment 00000001", true},
		"another record under two checkpoints of which both have the first": {func(t *testing.T, j *Journal, store *failingStore) {
			withoutLast(store)
			otherChunk(t, &store.memory.chunks[0])
			if err := j.Checkpoint(); err != nil {
				t.Fatal(err)
			}
		}, "", false},
		"another record beside a checkpoint of the store's own": {func(t *testing.T, j *Journal, store *failingStore) {
			j.Stored(storage.AuditChain{OrganizationID: acme, Node: j.node, Segment: storage.AuditStoreSegment, Sequence: 99})
			if err := errors.Join(turn(j), newShipper(j, store).ship(t.Context())); err != nil {
				t.Fatal(err)
			}
			j.Stored(storage.AuditChain{OrganizationID: acme, Node: j.node, Segment: storage.AuditStoreSegment, Sequence: 100})
			if err := j.Checkpoint(); err != nil {
				t.Fatal(err)
			}
			appendSome(t, j, acme, "tool", 1)
			if err := newShipper(j, store).ship(t.Context()); err != nil {
				t.Fatal(err)
			}
			otherChunk(t, &store.memory.chunks[2])
		}, "the store has other records of segment 00000002", false},
		"a checkpoint too many": {func(_ *testing.T, j *Journal, store *failingStore) {
			store.memory.checkpoints = append(store.memory.checkpoints, storage.AuditCheckpoint{Node: j.node, Number: 2})
		}, "the store has checkpoint 2, which the journal has not", false},
		"another checkpoint": {func(_ *testing.T, _ *Journal, store *failingStore) { store.memory.checkpoints[0].Signature[0] ^= 1 }, "the store has another checkpoint 1", false},
		"records of another node, another segment and other numbers at the same time": {func(t *testing.T, j *Journal, store *failingStore) {
			appendFile(t, segments.Path(j.dir, 2)+segments.DamagedSuffix, "x")
			last := store.memory.chunks[1]
			for _, change := range []func(c *storage.AuditChunk){
				func(c *storage.AuditChunk) { c.Node = "0123456789abcdef" },
				func(c *storage.AuditChunk) { c.Segment = "00000002" },
				func(c *storage.AuditChunk) { c.First, c.Last = 2, 2 },
			} {
				one := last
				otherChunk(t, &one)
				change(&one)
				store.memory.chunks = append(store.memory.chunks, one)
			}
		}, "", false},
		"nothing of the records": {func(t *testing.T, j *Journal, store *failingStore) {
			store.memory.chunks = nil
			appendFile(t, segments.Path(j.dir, 2), "") // the next segment, killed before its first line
		}, "", false},
		"all of a segment that is gone": {func(t *testing.T, j *Journal, store *failingStore) {
			if err := errors.Join(turn(j), newShipper(j, store).ship(t.Context())); err != nil {
				t.Fatal(err)
			}
		}, "", false},
		"all of several segments": {func(t *testing.T, j *Journal, store *failingStore) {
			for range 3 {
				if err := turn(j); err != nil {
					t.Fatal(err)
				}
				appendSome(t, j, acme, "tool", 1)
			}
			putBack := keepCopy(t, j.dir)
			if err := newShipper(j, store).ship(t.Context()); err != nil {
				t.Fatal(err)
			}
			putBack()
		}, "", false},
		"no journal": {func(t *testing.T, j *Journal, store *failingStore) {
			if err := os.Remove(segments.Path(j.dir, 1)); err != nil {
				t.Fatal(err)
			}
		}, "", false},
		"no answer about chains":      {func(_ *testing.T, _ *Journal, store *failingStore) { store.chains = errDisk }, errDisk.Error(), false},
		"no answer about checkpoints": {func(_ *testing.T, _ *Journal, store *failingStore) { store.checkpoint = errDisk }, errDisk.Error(), false},
		"no answer about records":     {func(_ *testing.T, _ *Journal, store *failingStore) { store.chunks = errDisk }, errDisk.Error(), false},
	} {
		t.Run(name, func(t *testing.T) {
			store := &failingStore{memory: new(memory)}
			j := shipped(t, store)
			c.change(t, j, store)
			d, err := examine(t.Context(), store, j.dir, sharedGateway().macs)
			reason := d.reason
			if err != nil {
				reason = err.Error()
			}
			if (c.want == "") != (reason == "") || !strings.HasPrefix(reason, c.want) {
				t.Errorf("%q, want %q", reason, c.want)
			}
			if d.chains[chainName{acme, "00000001"}] != c.chain {
				t.Errorf("chains with other records: %v", d.chains)
			}
		})
	}
}

// TestHasNoMACs checks that a node counts as one of a durward without MACs unless the store has a MAC or a checkpoint of
// it that states MACs. When the store does not answer, the result is an error.
func TestHasNoMACs(t *testing.T) {
	const node = "00112233445566ff"
	keys := &segments.Keys{MACs: sharedGateway().macs, Signatures: sharedSigner()}
	at := func(version int, found bool, signer format.Signer) storage.AuditCheckpoint {
		c := format.Checkpoint{Format: version, Node: node, Segment: "00000001", Number: 1, Found: found, Chains: []format.Head{}}
		return c.Sign(signer)
	}
	chain := format.ChainOf(acme, node, storage.AuditStoreSegment)
	bare := chain.Next(format.Marshal(intent("policy.update")))
	sealed := bare
	sealed.MAC = chain.Sealed(keys.MACs)
	foreign := bare
	foreign.MAC = chain.Sealed(newGatewayKeys().macs)
	for name, c := range map[string]struct {
		store failingStore
		want  bool
		err   error
	}{
		"nothing is known":                 {failingStore{memory: new(memory)}, true, nil},
		"a record without a MAC":           {failingStore{memory: &memory{records: []storage.AuditRecord{bare}}}, true, nil},
		"a record with a MAC":              {failingStore{memory: &memory{records: []storage.AuditRecord{sealed}}}, false, nil},
		"a record with another MAC":        {failingStore{memory: &memory{records: []storage.AuditRecord{foreign}}}, true, nil},
		"a former checkpoint":              {failingStore{memory: &memory{checkpoints: []storage.AuditCheckpoint{at(format.BareCheckpointFormat, false, sharedSigner())}}}, true, nil},
		"a checkpoint":                     {failingStore{memory: &memory{checkpoints: []storage.AuditCheckpoint{at(format.CheckpointFormat, false, sharedSigner())}}}, false, nil},
		"a checkpoint over what was found": {failingStore{memory: &memory{checkpoints: []storage.AuditCheckpoint{at(format.CheckpointFormat, true, sharedSigner())}}}, true, nil},
		"a checkpoint of somebody else":    {failingStore{memory: &memory{checkpoints: []storage.AuditCheckpoint{at(format.CheckpointFormat, false, newGatewayKeys().signer)}}}, true, nil},
		"a checkpoint that is none":        {failingStore{memory: &memory{checkpoints: []storage.AuditCheckpoint{{Node: node, Number: 1, Data: []byte("{}")}}}}, true, nil},
		"no answer about chains":           {failingStore{memory: new(memory), chains: errDisk}, false, errDisk},
		"no answer about checkpoints":      {failingStore{memory: new(memory), checkpoints: errDisk}, false, errDisk},
	} {
		if got, err := hasNoMACs(t.Context(), &c.store, node, keys); got != c.want || !errors.Is(err, c.err) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}
