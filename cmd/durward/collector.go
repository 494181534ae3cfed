package main

import (
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// Bounds of the garbage, in percent of the live heap, when GOGC is not set. The live heap is small compared to the
// garbage of the requests. `run` limits the memory of the process anyway (GOMEMLIMIT, else nine tenths of the memory
// of the container or machine), and near that limit the collector runs as often as it must.
const (
	gcPercent = 200
	// gcPercentLarge is for a large live heap: the collector then reads memory that is in no cache of the processor,
	// and takes three times as long for each byte of it.
	gcPercentLarge = 400
	largeHeap      = 256 << 20
	adaptEvery     = 10 * time.Second
)

// adaptCollector sets the bound of the garbage, now and whenever the live heap has grown or shrunk, unless GOGC is
// set.
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

// gcPercentOf returns the percentage for a live heap of so many bytes.
func gcPercentOf(alive uint64) int {
	if alive >= largeHeap {
		return gcPercentLarge
	}
	return gcPercent
}

// alive returns the number of bytes of the heap that the last collection left.
func alive() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
