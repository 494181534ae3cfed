package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// collection describes a garbage collection of a gateway with that much live memory.
type collection struct {
	cost float64 // of one, in microseconds of processor time
	room float64 // bytes that are allocated from one to the next
}

// collect makes the gateway collect its garbage while nobody calls, and leaves it at rest.
func (s *side) collect(ctx context.Context) (c collection, err error) {
	const profile = "/debug/pprof/heap"
	var costs [2]float64 // of the profile alone, and behind a collection
	for i, path := range []string{profile, profile + "?gc=1"} {
		if err := s.awaitIdle(ctx); err != nil {
			return c, err
		}
		before, err := processorTime(s.process.Process.Pid)
		if err != nil {
			return c, err
		}
		if _, err := s.fetchAdmin(ctx, path); err != nil {
			return c, err
		}
		after, err := processorTime(s.process.Process.Pid)
		if err != nil {
			return c, err
		}
		costs[i] = float64(after-before) / 1e3
	}
	memory, err := s.metrics(ctx, "go_memstats_next_gc_bytes", "go_memstats_heap_alloc_bytes")
	if err != nil {
		return c, err
	}
	return collection{cost: costs[1] - costs[0], room: memory[0] - memory[1]}, s.awaitIdle(ctx)
}

// sweep is the interval at which the gateway counts its counters, and one second more.
const sweep = 21 * time.Second

// rest waits for a sweep and returns the processor time that each side took meanwhile.
func rest(ctx context.Context, sides []side) (took [2]time.Duration, err error) {
	for i := range sides {
		before, err := processorTime(sides[i].process.Process.Pid)
		if err != nil {
			return took, err
		}
		took[i] = -time.Duration(before)
	}
	select {
	case <-ctx.Done():
		return took, ctx.Err()
	case <-time.After(sweep):
	}
	for i := range sides {
		after, err := processorTime(sides[i].process.Process.Pid)
		if err != nil {
			return took, err
		}
		took[i] += time.Duration(after)
	}
	return took, nil
}

// liveCounters returns the number of counters that the gateway kept at its last sweep.
func (s *side) liveCounters(ctx context.Context) (int, error) {
	live, err := s.metrics(ctx, "durward_limit_counters")
	if err != nil {
		return 0, err
	}
	return int(live[0]), nil
}

// metrics returns the values of the gateway's metrics of those names.
func (s *side) metrics(ctx context.Context, names ...string) ([]float64, error) {
	text, err := s.fetchAdmin(ctx, "/metrics")
	if err != nil {
		return nil, err
	}
	values := make([]float64, 0, len(names))
	for _, name := range names {
		_, value, found := strings.Cut("\n"+string(text), "\n"+name+" ")
		if !found {
			return nil, fmt.Errorf("the metrics do not tell of %s", name)
		}
		value, _, _ = strings.Cut(value, "\n")
		n, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", name, err)
		}
		values = append(values, n)
	}
	return values, nil
}

// memory returns the gateway's share of the machine's memory, in MiB; 0 when it is not known.
func (s *side) memory() (mib int) {
	for line := range strings.Lines(readFile(fmt.Sprintf("/proc/%d/status", s.process.Process.Pid))) {
		if value, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			_, _ = fmt.Sscan(value, &mib)
		}
	}
	return mib >> 10
}
