package overload

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
)

// inherited is the limit that the process was started with: GOMEMLIMIT, or what its host set for the container.
var inherited = sync.OnceValue(func() int64 { return debug.SetMemoryLimit(-1) })

// Process is this process under a limit in bytes; 0: the one it was started with, which the first call finds out. The
// garbage collector is held to the limit from the first look at the figures on, because with another one it would let
// garbage fill what this limit leaves. A configuration that never serves a request changes nothing that way.
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

// used is the memory that the last collection found alive, and what the runtime holds beside the heap. The heap's size
// would not do: garbage fills it up to the limit, and is no shortage.
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
