package audit

import (
	"errors"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/durward-gateway/durward/internal/audit/format"
	"github.com/durward-gateway/durward/internal/audit/former"
	"github.com/durward-gateway/durward/storage"
)

// TestFresh checks that the store has each record once, in the bytes of the file, for any mix of records shipped from
// memory and from files, and that all of it verifies.
func TestFresh(t *testing.T) {
	for seed := range uint64(15) {
		random := rand.New(rand.NewPCG(seed, 1))
		root, store := t.TempDir(), new(memory)
		j := openJournal(t, testOptions(t, root))
		ship := newShipper(j, store)
		written := 0
		for range 120 {
			organization := []string{acme, other, ""}[random.IntN(3)]
			switch random.IntN(12) {
			default:
				e := intent("create_issue")
				if err := j.Append(organization, e); err != nil {
					t.Fatal(err)
				}
				j.Later(organization, outcomeOf(e))
				written += 2
			case 0:
				if err := j.Checkpoint(); err != nil {
					t.Fatal(err)
				}
			case 1:
				if err := turn(j); err != nil {
					t.Fatal(err)
				}
			case 2, 3:
				if err := ship.ship(t.Context()); err != nil {
					t.Fatal(err)
				}
			case 4:
				store.err = errDisk
				if err := ship.ship(t.Context()); err == nil && len(ship.batch.chunks) > 0 {
					t.Error("shipped to a store that takes nothing")
				}
				store.err = nil
			case 5:
				j.mu.Lock()
				j.dropFresh()
				j.mu.Unlock()
			case 6: // another caller takes the kept part
				j.take(1+random.IntN(ship.growing()), 0)
			}
		}
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		if err := ship.ship(t.Context()); err != nil {
			t.Fatal(err)
		}
		shipped := 0
		for i := range store.chunks {
			records, err := former.ReadChunk(&store.chunks[i])
			if err != nil {
				t.Error(err)
			}
			shipped += len(records)
		}
		if report := wantClean(t, root, store); shipped != written || report.Records != written {
			t.Errorf("seed %d: %d records were written, %d are in the store, %d verify", seed, written, shipped, report.Records)
		}
	}
}

// TestFreshBounded checks that the memory for unshipped records and checkpoints is bounded while the store is
// unreachable, and that dropped records are read from files.
func TestFreshBounded(t *testing.T) {
	large := intent("create_issue")
	large.Detail = map[string]any{"much": strings.Repeat("x", 400<<10)}
	for name, write := range map[string]func(j *Journal) error{
		"records": func(j *Journal) error { return j.Append(acme, large) },
		"checkpoints": func(j *Journal) error {
			for i := range 3000 {
				j.Stored(storage.AuditChain{OrganizationID: strconv.Itoa(i), Node: j.node, Segment: storage.AuditStoreSegment, Sequence: 1 + j.last.number})
			}
			return errors.Join(j.Checkpoint(), j.Append(acme, intent("create_issue")))
		},
	} {
		t.Run(name, func(t *testing.T) {
			root, store := t.TempDir(), &memory{err: errDisk}
			j := openJournal(t, testOptions(t, root))
			leaveAlone(j)
			ship := newShipper(j, store)
			_ = ship.ship(t.Context()) // there are no records yet
			const rounds = 30
			most := 0
			for range rounds {
				if err := write(j); err != nil {
					t.Fatal(err)
				}
				most = max(most, keptBytes(j))
			}
			if most < maxFresh/2 || most > maxFresh+1<<20 {
				t.Errorf("%d bytes are kept at the most", most)
			}
			store.err = nil
			for range 2 {
				if err := errors.Join(j.Append(acme, intent("create_issue")), ship.ship(t.Context())); err != nil {
					t.Fatal(err)
				}
			}
			if keptBytes(j) != 0 || j.fresh.size != 0 {
				t.Errorf("of what is shipped, %d bytes are kept, and %d counted", keptBytes(j), j.fresh.size)
			}
			if n := stored(t, store, acme)["create_issue"]; n != rounds+2 {
				t.Errorf("%d of %d records are stored", n, rounds+2)
			}
		})
	}
}

// keptBytes returns the size of the records and checkpoints that a journal keeps for the shipper.
func keptBytes(j *Journal) (n int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, p := range j.fresh.parts {
		for _, w := range p.chunks {
			n += len(*w.body)
		}
		for i := range p.checkpoints {
			n += len(p.checkpoints[i].Data)
		}
	}
	return n
}

// TestPartsOfSegmentsThatAreGone checks that the journal keeps nothing of a segment once a later one is taken.
func TestPartsOfSegmentsThatAreGone(t *testing.T) {
	j := openJournal(t, testOptions(t, t.TempDir()))
	leaveAlone(j)
	appendSome(t, j, acme, "one", 3)
	if err := turn(j); err != nil {
		t.Fatal(err)
	}
	appendSome(t, j, acme, "one", 3)
	if p, _ := j.take(2, 0); p == nil || keptBytes(j) != 0 || j.fresh.size != 0 {
		t.Errorf("%d bytes are kept, and %d counted", keptBytes(j), j.fresh.size)
	}
}

// TestRipe checks that the journal asks for shipping once much is to be shipped, and not before.
func TestRipe(t *testing.T) {
	j := openJournal(t, testOptions(t, t.TempDir()))
	leaveAlone(j)
	large := intent("create_issue")
	large.Detail = map[string]any{"much": strings.Repeat("x", 400<<10)}
	for n := 1; n <= 20; n++ {
		if err := j.Append(acme, large); err != nil {
			t.Fatal(err)
		}
		if ripe := len(j.ripe) > 0; ripe != (keptBytes(j) > ripeFresh) {
			t.Fatalf("after %d bytes it asks: %v", keptBytes(j), ripe)
		}
	}
	if len(j.ripe) == 0 {
		t.Error("it never asks")
	}
}

// TestChunksAreBounded checks that a chain's records go into another chunk before one gets large.
func TestChunksAreBounded(t *testing.T) {
	for name, of := range map[string]func(*Journal, storage.Audits) *shipper{"from memory": newShipper, "from files": fileShipper} {
		t.Run(name, func(t *testing.T) {
			j, store := openJournal(t, testOptions(t, t.TempDir())), new(memory)
			leaveAlone(j)
			large := intent("create_issue")
			large.Detail = map[string]any{"much": strings.Repeat("x", 400<<10)}
			for range 18 {
				if err := j.Append(acme, large); err != nil {
					t.Fatal(err)
				}
			}
			if err := of(j, store).ship(t.Context()); err != nil {
				t.Fatal(err)
			}
			for i := range store.chunks {
				if size := len(unpacked(t, &store.chunks[i])); size > maxBatch+1<<20 {
					t.Errorf("a chunk has %d bytes", size)
				}
			}
			if len(store.chunks) != 2 {
				t.Errorf("%d chunks, want 2", len(store.chunks))
			}
		})
	}
}

// BenchmarkRecord measures all work for a call: its intent, its outcome, and the shipping of both, without the store.
func BenchmarkRecord(b *testing.B) {
	j := openJournal(b, testOptions(b, b.TempDir()))
	ship := newShipper(j, new(memory))
	e := intent("create_issue")
	out := plainOutcome(e)
	b.ReportAllocs()
	before := processor(b)
	defer func() { reportProcessor(b, before, 1) }()
	for n := 0; b.Loop(); n++ {
		e.ID = format.NewID(e.At)
		if err := j.Append(acme, e); err != nil {
			b.Fatal(err)
		}
		out.Call = e.ID
		j.Outcome(acme, out)
		if n%1500 == 0 { // about the backlog that is shipped at once
			ship.store = &memory{chunks: make([]storage.AuditChunk, 0, 1)}
			if err := ship.ship(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
	}
}
