package main

import (
	"runtime"
	"testing"
)

// TestCollector checks that more garbage is allowed where the live heap is large, and that live memory is counted,
// not garbage.
func TestCollector(t *testing.T) {
	for alive, want := range map[uint64]int{0: 200, largeHeap - 1: 200, largeHeap: 400, 64 << 30: 400} {
		if got := gcPercentOf(alive); got != want {
			t.Errorf("%d bytes: %d, want %d", alive, got, want)
		}
	}
	runtime.GC()
	before := alive()
	kept := make([]byte, 64<<20)
	runtime.GC()
	if grown := alive() - before; grown < uint64(len(kept)/2) || grown > uint64(2*len(kept)) {
		t.Errorf("%d bytes more are alive, want %d", grown, len(kept))
	}
	runtime.KeepAlive(kept)
}
