package expiring

import (
	"sync"
	"testing"
	"time"
)

var began = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

const lifetime = time.Minute

// TestMap checks that a value is kept for its time, for its key, and until it is deleted.
func TestMap(t *testing.T) {
	var m Map[string, int]
	if _, ok := m.Get("a", began); ok {
		t.Error("a value that nobody set")
	}
	m.Delete("a")
	m.Set("a", 1, began.Add(lifetime), began)
	for after, want := range map[time.Duration]bool{0: true, lifetime - 1: true, lifetime: false, time.Hour: false} {
		if value, ok := m.Get("a", began.Add(after)); ok != want || want && value != 1 {
			t.Errorf("after %v: %d, %v", after, value, ok)
		}
		if _, ok := m.Get("b", began.Add(after)); ok {
			t.Errorf("after %v another key has a value", after)
		}
	}
	m.Set("a", 2, began.Add(2*lifetime), began.Add(1))
	if value, ok := m.Get("a", began.Add(lifetime)); !ok || value != 2 {
		t.Errorf("the new value: %d, %v", value, ok)
	}
	if n := m.Len(); n != 1 {
		t.Errorf("%d values of one key", n)
	}
	m.Delete("a")
	if _, ok := m.Get("a", began); ok || m.Len() != 0 {
		t.Error("a deleted value")
	}
}

// TestAdd checks that only one value is added for a key at a time.
func TestAdd(t *testing.T) {
	var m Map[string, int]
	for _, step := range []struct {
		key   string
		after time.Duration
		want  bool
	}{{"a", 0, true}, {"a", 0, false}, {"b", 0, true}, {"a", lifetime - 1, false}, {"a", lifetime, true}, {"a", lifetime, false}} {
		now := began.Add(step.after)
		if got := m.Add(step.key, 0, now.Add(lifetime), now); got != step.want {
			t.Errorf("%s after %v: %v", step.key, step.after, got)
		}
	}
}

// TestOld checks that values whose time is over make room, and no others.
func TestOld(t *testing.T) {
	var m Map[int, struct{}]
	for n := range 1000 {
		m.Set(n, struct{}{}, began.Add(lifetime), began)
	}
	m.Set(0, struct{}{}, began.Add(lifetime+1), began.Add(1)) // renewed: it is the youngest now
	m.Set(1000, struct{}{}, began.Add(lifetime+1), began.Add(1))
	if n := m.Len(); n != 1001 {
		t.Fatalf("%d are kept", n)
	}
	m.Set(1001, struct{}{}, began.Add(2*lifetime), began.Add(lifetime))
	for _, key := range []int{0, 1000, 1001} {
		if _, ok := m.Get(key, began.Add(lifetime)); !ok {
			t.Errorf("%d is forgotten", key)
		}
	}
	if n := m.Len(); n != 3 {
		t.Errorf("%d are kept", n)
	}
}

// TestMost checks that the value that was set first makes room in a full map.
func TestMost(t *testing.T) {
	m := Map[int, struct{}]{Most: 3}
	for _, key := range []int{0, 1, 2, 0, 0, 3} {
		m.Set(key, struct{}{}, began.Add(lifetime), began)
	}
	for key, want := range map[int]bool{0: true, 1: false, 2: true, 3: true} {
		if _, ok := m.Get(key, began); ok != want {
			t.Errorf("%d is kept: %v", key, ok)
		}
	}
}

// TestConcurrent lets the race detector look at a map that goroutines share.
func TestConcurrent(t *testing.T) {
	m := Map[int, int]{Most: 10}
	var all sync.WaitGroup
	for worker := range 4 {
		all.Go(func() {
			for n := range 100 {
				m.Add(n%20, worker, began.Add(lifetime), began)
				m.Get(n%20, began)
				m.Set(n%20, worker, began.Add(lifetime), began)
				m.Delete(n % 7)
			}
		})
	}
	all.Wait()
	if n := m.Len(); n > m.Most {
		t.Errorf("%d values", n)
	}
}
