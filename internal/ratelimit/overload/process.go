package overload

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
)

// inherited returns the limit that the process was started with: GOMEMLIMIT, or the one that its host set for the
// container.
var inherited = sync.OnceValue(func() int64 { return debug.SetMemoryLimit(-1) })

// Process returns the memory of this process under a limit in bytes. With 0 the limit is the one that the process was
// started with, which the first call reads. From the first use of the figures on, the garbage collector has the same
// limit. With another one it would let garbage fill the room under this limit. So a configuration that never serves a
// request changes nothing.
func Process(limit int64) Memory {
	if start := inherited(); limit == 0 {
		limit = start
	}
	return Memory{Limit: limit, Collect: runtime.GC, Used: func() int64 {
		if debug.SetMemoryLimit(-1) != limit {
			debug.SetMemoryLimit(limit)
		}
		return used()
	}}
}

// used returns the memory that the last collection found alive, and the memory that the runtime holds beside the heap.
// The heap's size would be wrong: garbage fills it up to the limit, and garbage is no shortage.
func used() int64 {
	samples := []metrics.Sample{
		{Name: "/gc/heap/live:bytes"},
		{Name: "/memory/classes/total:bytes"},
		{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/unused:bytes"},
		{Name: "/memory/classes/heap/free:bytes"}, {Name: "/memory/classes/heap/released:bytes"},
	}
	metrics.Read(samples)
	sum := samples[0].Value.Uint64() + samples[1].Value.Uint64()
	for _, heap := range samples[2:] {
		sum -= heap.Value.Uint64()
	}
	return int64(sum)
}
