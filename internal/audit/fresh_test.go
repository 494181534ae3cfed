package audit

import (
	"math/rand/v2"
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
				j.take(1+random.IntN(ship.growing()), 0, nil)
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

// TestFreshBounded checks that the memory for unshipped records is bounded while the store is unreachable, and that
// dropped records are read from files.
func TestFreshBounded(t *testing.T) {
	root, store := t.TempDir(), &memory{err: errDisk}
	j := openJournal(t, testOptions(t, root))
	ship := newShipper(j, store)
	_ = ship.ship(t.Context()) // there are no records yet
	e := intent("create_issue")
	e.Detail = map[string]any{"much": string(make([]byte, 64<<10))}
	const records = 40
	for range records {
		if err := j.Append(acme, e); err != nil {
			t.Fatal(err)
		}
		j.mu.Lock()
		kept := j.fresh.size
		j.mu.Unlock()
		if kept > maxFresh+1<<20 {
			t.Fatalf("%d bytes are kept", kept)
		}
	}
	store.err = nil
	for range 2 {
		if err := j.Append(acme, intent("create_issue")); err != nil {
			t.Fatal(err)
		}
		if err := ship.ship(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if report := wantClean(t, root, store); report.Records != records+2 {
		t.Errorf("%+v", report)
	}
	chains, err := store.AuditChains(t.Context(), j.node)
	if err != nil || len(chains) != 1 || chains[0].Sequence != records+2 {
		t.Errorf("%+v, %v", chains, err)
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

// TestBuffers checks that a buffer is used again, and that the buffer after a full chunk is not grown in steps.
func TestBuffers(t *testing.T) {
	var f fresh
	if b := f.buffer(false); cap(b) != 0 {
		t.Errorf("%d bytes for a chunk that may stay small", cap(b))
	}
	whole := f.buffer(true)
	if cap(whole) < maxBatch || len(whole) != 0 {
		t.Errorf("after a full chunk: %d of %d bytes", len(whole), cap(whole))
	}
	f.giveBack(whole)
	if again := f.buffer(true); cap(again) != cap(whole) || &again[:1][0] != &whole[:1][0] {
		t.Error("a buffer that was given back is not used")
	}
	for range 2 * keptBuffers {
		f.giveBack(whole)
	}
	if len(f.buffers) != keptBuffers {
		t.Errorf("%d buffers are kept", len(f.buffers))
	}
}
