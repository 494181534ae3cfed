package connection

import (
	"testing"
	"time"

	"github.com/durward-gateway/durward/storage"
)

// TestMemoryEnds checks that facts about providers are remembered for their time, for their subject, and until they are
// forgotten.
func TestMemoryEnds(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	var p proofs
	if p.recent(ofO("server"), "client", now) {
		t.Error("a proof that nobody noted")
	}
	p.note(ofO("server"), "client", now)
	for at, want := range map[time.Time]bool{now: true, now.Add(proofLifetime - 1): true, now.Add(proofLifetime): false} {
		if p.recent(ofO("server"), "client", at) != want || p.recent(ofO("server"), "another", at) || p.recent(ofO("another"), "client", at) {
			t.Errorf("a proof after %v", at.Sub(now))
		}
	}
	p.forget(ofO("server"))
	if p.recent(ofO("server"), "client", now) {
		t.Error("a proof that was forgotten")
	}

	var l sightings
	s := sight{url: "https://a.test"}
	if l.recent(ofO("server"), sight{}, now) {
		t.Error("a discovery that nobody noted")
	}
	l.note(ofO("server"), s, now)
	for at, want := range map[time.Time]bool{now: true, now.Add(sightingLifetime - 1): true, now.Add(sightingLifetime): false} {
		if l.recent(ofO("server"), s, at) != want || l.recent(ofO("server"), sight{url: "https://b.test"}, at) || l.recent(ofO("another"), s, at) {
			t.Errorf("a discovery after %v", at.Sub(now))
		}
	}
	l.forget(ofO("server"))
	if l.recent(ofO("server"), s, now) {
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
