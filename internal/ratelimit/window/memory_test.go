//go:build !race

// The race detector changes the size and cost of the heap, and these tests do not look for races.

package window

import (
	"encoding/binary"
	"runtime"
	"testing"
	"time"
)

func numbered(i int) Key {
	var group, member Digest
	binary.BigEndian.PutUint64(group[:], uint64(i%100))
	binary.BigEndian.PutUint64(member[:], uint64(i))
	return NewKey(group, member)
}

// fill makes counters with charges in busy different seconds each, and returns them with the heap bytes of each.
func fill(counters, busy int) (*Counters, *clock, float64) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	c := newClock()
	w := New(c.now)
	for range busy {
		for i := range counters {
			w.Charge([]Charge{{Key: numbered(i), Amount: 1, Limit: 1 << 20}}, nil)
		}
		c.turn(time.Second)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	return w, c, float64(after.HeapAlloc-before.HeapAlloc) / float64(counters)
}

// TestMemory covers P6: at most 200 bytes for a counter with at most 12 busy seconds, 600 at worst. The numbers of
// counters are just before and just after a growth of the hash tables.
func TestMemory(t *testing.T) {
	for _, test := range []struct {
		counters, busy int
		most           float64
	}{{60_000, 1, 200}, {70_000, 1, 200}, {60_000, 12, 200}, {70_000, 12, 200}, {70_000, 70, 600}} {
		w, c, each := fill(test.counters, test.busy)
		t.Logf("%d counters, %d busy seconds: %.0f bytes each", test.counters, test.busy, each)
		if each > test.most {
			t.Errorf("%d counters, %d busy seconds: %.0f bytes each", test.counters, test.busy, each)
		}
		c.turn(3 * time.Minute)
		if n := w.Sweep(); n != test.counters {
			t.Errorf("%d swept", n)
		}
	}
}

// TestSweepGivesMemoryBack checks that a formerly busy counter needs no more memory than one that never was.
func TestSweepGivesMemoryBack(t *testing.T) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	const counters = 60_000
	w, c, _ := fill(counters, 61)
	c.turn(50 * time.Second)
	for i := range counters {
		w.Charge([]Charge{{Key: numbered(i), Amount: 1, Limit: 1 << 20}}, nil)
	}
	w.Sweep()
	runtime.GC()
	runtime.ReadMemStats(&after)
	if each := float64(after.HeapAlloc-before.HeapAlloc) / counters; each > 200 {
		t.Errorf("%.0f bytes each", each)
	}
	if w.Len() != counters || w.Used(numbered(7)) != 11 {
		t.Errorf("%d counters, one holds %d", w.Len(), w.Used(numbered(7)))
	}
}

func BenchmarkCharge(b *testing.B) {
	for _, bench := range []struct {
		name     string
		counters int
		each     int
	}{{"1of10", 10, 1}, {"4of10", 10, 4}, {"1of1M", 1_000_000, 1}, {"4of1M", 1_000_000, 4}} {
		b.Run(bench.name, func(b *testing.B) {
			w := New(nil)
			for i := range bench.counters {
				w.Charge([]Charge{{Key: numbered(i), Amount: 1, Limit: Max}}, nil)
			}
			charges := make([]Charge, bench.each)
			states := make([]State, bench.each)
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				for j := range charges {
					charges[j] = Charge{Key: numbered(i % bench.counters), Amount: 1, Limit: Max}
					i += 7919
				}
				if _, ok := w.Charge(charges, states); !ok {
					b.Fatal("refused")
				}
			}
		})
	}
}

func BenchmarkChargeParallel(b *testing.B) {
	w := New(nil)
	b.ReportAllocs()
	b.SetParallelism(4)
	b.RunParallel(func(pb *testing.PB) {
		charges := []Charge{{Key: key("org", ""), Amount: 1, Limit: Max}}
		for pb.Next() {
			w.Charge(charges, nil)
		}
	})
}

// BenchmarkMemory reports the heap bytes of a counter at a million of them.
func BenchmarkMemory(b *testing.B) {
	for _, bench := range []struct {
		name string
		busy int
	}{{"1s", 1}, {"12s", 12}, {"61s", 61}} {
		b.Run(bench.name, func(b *testing.B) {
			for b.Loop() {
				_, _, each := fill(1_000_000, bench.busy)
				b.ReportMetric(each, "B/counter")
			}
		})
	}
}

func BenchmarkSweep(b *testing.B) {
	w, c, _ := fill(1_000_000, 2)
	b.ReportAllocs()
	for b.Loop() {
		w.Sweep()
	}
	c.turn(time.Second)
}
