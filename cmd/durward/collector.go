package main

import (
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// How much garbage may pile up beside what is alive, in percent of it, when GOGC does not say. What is alive is little next
// to what every request leaves behind, and `run` limits the memory of the process anyway (GOMEMLIMIT, else nine tenths of
// what the container or the machine has), near which the collector runs as often as it must.
const (
	gcPercent = 200
	// Where much is alive, the collector goes through memory that is in no cache of the processor, and takes three times as
	// long for each byte of it.
	gcPercentLarge = 400
	largeHeap      = 256 << 20
	adaptEvery     = 10 * time.Second
)

// adaptCollector sets how much garbage may pile up, now and whenever what is alive has grown or shrunk, unless GOGC does.
func adaptCollector() {
	if os.Getenv("GOGC") != "" {
		return
	}
	debug.SetGCPercent(gcPercent)
	go func() {
		present := gcPercent
		for range time.Tick(adaptEvery) {
			if wanted := gcPercentOf(alive()); wanted != present {
				debug.SetGCPercent(wanted)
				present = wanted
			}
		}
	}()
}

// gcPercentOf is what suits so many bytes that are alive.
func gcPercentOf(alive uint64) int {
	if alive >= largeHeap {
		return gcPercentLarge
	}
	return gcPercent
}

// alive is how many bytes of the heap were left by the last collection.
func alive() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
