package audit

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/durward-gateway/durward/storage"
)

// remote is a store that is away at times.
type remote struct {
	*memory
	mu    sync.Mutex
	away  error // of every question about chains, and of every chunk
	hangs int   // so many calls wait for the end of their context
	tries int   // to send chunks
}

func (r *remote) set(set func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	set()
}

func (r *remote) AuditChains(ctx context.Context, node string) ([]storage.AuditChain, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.away != nil {
		return nil, r.away
	}
	return r.memory.AuditChains(ctx, node)
}

func (r *remote) AddAuditChunks(ctx context.Context, chunks []storage.AuditChunk) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	var away error
	var hang bool
	r.set(func() {
		r.tries++
		away, hang = r.away, r.hangs > 0
		r.hangs--
	})
	if hang {
		<-ctx.Done()
		return ctx.Err()
	}
	if away != nil {
		return away
	}
	return r.memory.AddAuditChunks(ctx, chunks)
}

// pass lets time pass in a bubble of synctest.
func pass(d time.Duration) {
	time.Sleep(d) //nolint:forbidigo // the clock of synctest
	synctest.Wait()
}

// TestShippedByItself checks that records are in the store five seconds later, or sooner when they are many, and that
// operators learn once that they are not, and that they are again.
func TestShippedByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, log := loggedOptions(t, t.TempDir())
		store := &remote{memory: new(memory)}
		trail := newTrail(t, o, store)
		want := func(when string, n int) {
			t.Helper()
			if got := stored(t, store.memory, acme)["tool"]; got != n {
				t.Errorf("%s: %d are in the store, want %d", when, got, n)
			}
		}
		appendSome(t, trail, acme, "tool", 1)
		pass(shipEvery - time.Millisecond)
		want("too early", 0)
		pass(2 * time.Millisecond)
		want("in time", 1)

		away := func(err error) { store.set(func() { store.away, store.tries = err, 0 }) }
		away(storage.ErrUnavailable)
		appendSome(t, trail, acme, "tool", 1)
		pass(4 * shipEvery)
		if log.count("stays in the journal for now") != 1 || log.count("is shipped again") != 0 {
			t.Errorf("%s", &log.text)
		}
		away(nil)
		pass(2 * shipEvery)
		want("again", 2)
		if log.count("stays in the journal for now") != 1 || log.count("is shipped again") != 1 {
			t.Errorf("%s", &log.text)
		}

		many := intent("tool")
		many.Detail = map[string]any{"much": strings.Repeat("x", 1<<20)}
		appendMany := func() {
			for range shipBacklog>>20 + 1 {
				if err := trail.Append(acme, many); err != nil {
					t.Fatal(err)
				}
			}
		}
		appendMany()
		pass(shipCheck + time.Millisecond)
		if got := stored(t, store.memory, acme)["tool"]; got < 5 {
			t.Errorf("many: %d are in the store", got)
		}
		pass(shipEvery)
		away(storage.ErrUnavailable)
		appendSome(t, trail, acme, "tool", 1)
		pass(shipEvery)
		appendMany() // behind the one with which it tries
		pass(3 * shipEvery)
		var tries int
		if store.set(func() { tries = store.tries }); tries < 3 || tries > 5 {
			t.Errorf("the store is tried %d times in 20 seconds", tries)
		}
	})
}

// TestClosedWhileShipping checks that closing does not wait for a store that does not answer.
func TestClosedWhileShipping(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &remote{memory: new(memory), hangs: 1}
		trail := newTrail(t, testOptions(t, t.TempDir()), store)
		appendSome(t, trail, acme, "tool", 1)
		pass(shipEvery + time.Millisecond)
		if err := trail.Close(); err != nil {
			t.Error(err)
		}
		if n := stored(t, store.memory, acme)["tool"]; n != 1 || store.tries != 2 {
			t.Errorf("%d are in the store after %d tries", n, store.tries)
		}
	})
}

// TestAdoptedLater checks that a journal that another process has left is shipped as soon as the store answers.
func TestAdoptedLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		root, store := t.TempDir(), &remote{memory: new(memory), away: storage.ErrUnavailable}
		left := openJournal(t, testOptions(t, root))
		appendSome(t, left, acme, "left", 2)
		kill(t, left)
		o, log := loggedOptions(t, root)
		trail := newTrail(t, o, store)
		pass(2 * shipEvery)
		if trail.Node() == left.Node() {
			t.Error("a journal is continued that was not held against the store")
		}
		if n := log.count("shipping the audit journal of another node"); n != 1 {
			t.Errorf("it is said %d times, while the store is away", n)
		}
		store.set(func() { store.away = nil })
		pass(2 * shipEvery)
		if _, err := os.Stat(left.dir); stored(t, store.memory, acme)["left"] != 2 || !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%v are shipped; its directory: %v", stored(t, store.memory, acme), err)
		}
	})
}

// TestStoresOwnRecords checks that the next checkpoint covers the store's own records, also those of the time before a
// crash, and that sinks get them.
func TestStoresOwnRecords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		root, store, sink := t.TempDir(), new(memory), new(counting)
		before := openJournal(t, testOptions(t, root))
		kill(t, before)
		record := func(a *storage.Audited) {
			if err := store.RecordAudit(storage.WithAudit(t.Context(), a)); err != nil {
				t.Fatal(err)
			}
		}
		record(&storage.Audited{OrganizationID: acme, Node: before.node, Entries: []storage.AuditEntry{*intent("policy.update")}, MACs: sharedGateway().macs})
		trail := newTrail(t, testOptions(t, root), store)
		if trail.Node() != before.Node() {
			t.Fatal("another journal is begun")
		}
		trail.SetSinks([]Sink{sink})
		record(trail.Audited(other, *intent("policy.update"), *intent("policy.delete")))
		pass(defaultCheckpointEvery + time.Second)
		covered := make(map[string]int64)
		for _, c := range checkpointsOf(t, trail.journal, trail.journal.segment.number) {
			for _, h := range c.Chains {
				if h.Segment != storage.AuditStoreSegment {
					t.Errorf("the journal has a record of its own: %+v", h)
				}
				covered[h.Organization] = h.Sequence
			}
		}
		if len(covered) != 2 || covered[acme] != 1 || covered[other] != 2 {
			t.Errorf("covered are %v", covered)
		}
		if n := sink.total(); n != 2 {
			t.Errorf("the sink is given %d", n)
		}
	})
}

// TestLossesAreLogged checks that operators learn of losses while the gateway runs and when it ends, each time of the new
// ones, with the last error of the sink that has lost them.
func TestLossesAreLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, log := loggedOptions(t, t.TempDir())
		store := new(memory)
		store.poison = func(c *storage.AuditChunk) bool { return c.OrganizationID == other }
		trail := newTrail(t, o, store)
		one, two, works := &counting{name: "one", err: errDisk}, &counting{name: "two", err: errFault}, &counting{name: "works"}
		trail.SetSinks([]Sink{one, two, works})
		appendSome(t, trail, acme, "tool", 3)
		appendSome(t, trail, other, "tool", 2)
		pass(shipEvery + time.Millisecond)
		told := func() (lines []string) {
			log.mu.Lock()
			defer log.mu.Unlock()
			for line := range strings.Lines(log.text.String()) {
				if _, line, ok := strings.Cut(line, `msg="audit records are lost" `); ok {
					lines = append(lines, strings.TrimSpace(line))
				}
			}
			log.text.Reset()
			slices.Sort(lines)
			return lines
		}
		want := []string{`where=one records=5 error="no space left on device"`, "where=store records=2", `where=two records=5 error="` + errFault.Error() + `"`}
		if got := told(); !slices.Equal(got, want) {
			t.Errorf("it says %q, want %q", got, want)
		}
		pass(shipEvery)
		if got := told(); got != nil {
			t.Errorf("it says again %q", got)
		}
		appendSome(t, trail, acme, "tool", 1)
		if err := trail.Close(); err != nil {
			t.Error(err)
		}
		want = []string{`where=one records=1`, "where=two records=1"}
		if got := told(); !slices.Equal(got, want) {
			t.Errorf("at the end it says %q, want %q", got, want)
		}
	})
}
