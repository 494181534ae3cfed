package connection

import (
	"fmt"
	"testing"
	"time"

	"github.com/durward-gateway/durward/storage"
)

// TestMemoryEnds checks that facts about providers are remembered for their time, for their subject, and until they are
// forgotten.
func TestMemoryEnds(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	var p proofs
	if p.recent("server", "client", now) {
		t.Error("a proof that nobody noted")
	}
	p.note("server", "client", now)
	for at, want := range map[time.Time]bool{now: true, now.Add(proofLifetime - 1): true, now.Add(proofLifetime): false} {
		if p.recent("server", "client", at) != want || p.recent("server", "another", at) || p.recent("another", "client", at) {
			t.Errorf("a proof after %v", at.Sub(now))
		}
	}
	p.forget("server")
	if p.recent("server", "client", now) {
		t.Error("a proof that was forgotten")
	}

	var l sightings
	s := sight{url: "https://a.test"}
	if l.recent("server", sight{}, now) {
		t.Error("a discovery that nobody noted")
	}
	l.note("server", s, now)
	for at, want := range map[time.Time]bool{now: true, now.Add(sightingLifetime - 1): true, now.Add(sightingLifetime): false} {
		if l.recent("server", s, at) != want || l.recent("server", sight{url: "https://b.test"}, at) || l.recent("another", s, at) {
			t.Errorf("a discovery after %v", at.Sub(now))
		}
	}
	l.forget("server")
	if l.recent("server", s, now) {
		t.Error("a discovery that was forgotten")
	}

	var w wants
	key := storage.ConnectionKey{UserID: "alice"}
	for _, step := range []struct {
		after time.Duration
		due   bool
	}{{0, true}, {0, false}, {wantEvery - 1, false}, {wantEvery, true}, {wantEvery, false}} {
		if w.due(key, now.Add(step.after)) != step.due {
			t.Errorf("after %v a permission is due: %v", step.after, !step.due)
		}
	}
	w.forget(key)
	if !w.due(key, now.Add(wantEvery)) {
		t.Error("a permission was forgotten, and is not due")
	}
}

// TestMemoryIsBounded checks that only expired facts are dropped when too many are remembered.
func TestMemoryIsBounded(t *testing.T) {
	began := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for name, memory := range map[string]struct {
		lifetime time.Duration
		make     func() (note func(n int, now time.Time), size func() int)
	}{
		"proofs": {proofLifetime, func() (func(int, time.Time), func() int) {
			p := new(proofs)
			return func(n int, now time.Time) { p.note(fmt.Sprint(n), "client", now) }, func() int { return len(p.seen) }
		}},
		"sightings": {sightingLifetime, func() (func(int, time.Time), func() int) {
			l := new(sightings)
			return func(n int, now time.Time) { l.note(fmt.Sprint(n), sight{}, now) }, func() int { return len(l.seen) }
		}},
		"wants": {wantEvery, func() (func(int, time.Time), func() int) {
			w := new(wants)
			return func(n int, now time.Time) { w.due(storage.ConnectionKey{UserID: fmt.Sprint(n)}, now) }, func() int { return len(w.noted) }
		}},
	} {
		t.Run(name, func(t *testing.T) {
			note, size := memory.make()
			note(-1, began.Add(1)) // lives a moment longer than the others
			for n := range tooMany - 2 {
				note(n, began)
			}
			over := began.Add(memory.lifetime)
			if note(-2, over); size() != tooMany {
				t.Errorf("%d are left where there was room", size())
			}
			if note(-3, over); size() != 3 {
				t.Errorf("%d are left", size())
			}
			note, size = memory.make()
			for n := range tooMany + 1 {
				note(n, began)
			}
			if size() != tooMany+1 {
				t.Errorf("%d are left of those that are not over", size())
			}
		})
	}
}
