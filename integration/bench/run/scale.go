package main

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"time"
)

const (
	smallAddress = "127.0.0.1:9301"
	largeAddress = "127.0.0.1:9302"
	smallScale   = 10
	// A round has batches of calls to each side in turn.
	batchesPerRound = 10
	callsPerBatch   = 2000
)

// scale measures the cost of a call at a gateway with as many policies, servers, keys and live counters as the options
// set, divided by the cost at one with ten of each. It also measures the memory of a counter (P6).
func (b *bench) scale(ctx context.Context) (call, counter measurement) {
	return b.callAtScale(ctx), b.counterMemory(ctx)
}

func (b *bench) callAtScale(ctx context.Context) measurement {
	fail := func(err error) measurement { return measurement{err: err} }
	stub, err := b.startStub(ctx)
	if err != nil {
		return fail(err)
	}
	defer stub.stop()
	var sides [2]side // small, large
	for i, of := range []struct {
		address string
		size    int
	}{{smallAddress, smallScale}, {largeAddress, b.options.scale}} {
		s, err := b.newSide(ctx, of.address, of.size)
		if err != nil {
			return fail(fmt.Errorf("setting up a gateway with %d of each: %w", of.size, err))
		}
		defer s.stop()
		sides[i] = s
	}
	var m measurement
	var spent [2][]cost
	live := math.MaxInt               // the fewest counters of the large side
	for round := range b.rounds + 1 { // the first warms up
		costs, err := costsOf(ctx, sides[:])
		if err != nil {
			return fail(err)
		}
		counters, err := sides[1].liveCounters(ctx)
		if err != nil {
			return fail(err)
		}
		fmt.Fprintf(os.Stderr, "round %d: %.1f against %.1f us a call; a collection of %.0f ms in %.0f calls against %.1f ms in %.0f; %d counters\n", round,
			costs[1].call, costs[0].call, costs[1].collection/1e3, costs[1].every, costs[0].collection/1e3, costs[0].every, counters)
		if round == 0 {
			continue
		}
		live = min(live, counters)
		m.values = append(m.values, costs[1].call/costs[0].call)
		for i := range spent {
			spent[i] = append(spent[i], costs[i])
		}
	}
	resting, err := rest(ctx, sides[:])
	if err != nil {
		return fail(err)
	}
	if live < b.options.scale {
		return fail(fmt.Errorf("only %d counters were live in a round, not %d", live, b.options.scale))
	}
	m.note = fmt.Sprintf("%d policies, servers and keys, %d live counters, against %d of each; a collection of garbage takes %s against %s; "+
		"in %v without calls %v of processor time against %v; %d MiB of memory against %d", b.options.scale, live, smallScale,
		collecting(spent[1]), collecting(spent[0]), sweep, resting[1].Round(time.Millisecond), resting[0].Round(time.Millisecond),
		sides[1].memory(), sides[0].memory())
	return m
}

// cost is the processor time that a call takes of a gateway, in microseconds, with its part of the collections of
// garbage.
type cost struct {
	call       float64
	collection float64 // what one takes
	every      float64 // calls from one to the next
}

// collecting returns the median cost of collections for a call, for people.
func collecting(rounds []cost) string {
	var part, every []float64
	for _, c := range rounds {
		part, every = append(part, c.collection/c.every), append(every, c.every)
	}
	return fmt.Sprintf("%.1f us of a call, one in %.0f calls,", median(part), median(every))
}

// costsOf measures one round. The large gateway collects its garbage so seldom that a round has too many collections or
// none. The cost of a collection is measured by itself, before the calls, and missing or surplus ones among the calls
// are added or subtracted.
func costsOf(ctx context.Context, sides []side) (costs [2]cost, err error) {
	var collections [2]collection
	var before [2][]float64
	var wires [2]*wire
	for i := range sides {
		if err := sides[i].keepCounters(ctx); err != nil {
			return costs, err
		}
	}
	kept := time.Now()
	for i := range sides {
		if collections[i], err = sides[i].collect(ctx); err != nil {
			return costs, err
		}
		if before[i], err = sides[i].metrics(ctx, allocated, collected); err != nil {
			return costs, err
		}
		if wires[i], err = dial(sides[i].address); err != nil {
			return costs, err
		}
		defer wires[i].connection.Close()
	}
	for range batchesPerRound {
		for i := range sides {
			batch, err := wires[i].cost(ctx, sides[i].process.Process.Pid, sides[i].requests)
			if err != nil {
				return costs, err
			}
			costs[i].call += batch / batchesPerRound
		}
	}
	for i := range sides {
		after, err := sides[i].metrics(ctx, allocated, collected)
		if err != nil {
			return costs, err
		}
		const calls = batchesPerRound * callsPerBatch
		due := (after[0] - before[i][0]) / collections[i].room
		costs[i].collection, costs[i].every = collections[i].cost, calls/due
		costs[i].call += (due - (after[1] - before[i][1])) * collections[i].cost / calls
		sides[i].round = time.Since(kept)
	}
	return costs, nil
}

// These are metrics of the collector.
const (
	allocated = "go_memstats_alloc_bytes_total"
	collected = "go_gc_duration_seconds_count"
)

// side is one of the two gateways that are compared, with calls of its users.
type side struct {
	*bench
	process  *process
	requests [][]byte
	size     int           // the number of its policies, servers, keys and live counters
	people   []string      // tokens of the crowd
	kept     time.Time     // when the last run over all its counters began
	keeping  time.Duration // duration of that run
	round    time.Duration // duration of the measurement after it
}

// newSide sets up a gateway with that many rows and live counters. Its store is thrown away with b's directory.
func (b *bench) newSide(ctx context.Context, address string, size int) (s side, err error) {
	s.size = size
	directory := filepath.Join(b.directory, "with-"+strconv.Itoa(size))
	if err := os.Mkdir(directory, 0o700); err != nil {
		return s, err
	}
	if s.bench, err = newBench(ctx, b.options, directory, address); err != nil {
		return s, err
	}
	defer func() {
		if err != nil {
			s.stop()
		}
	}()
	if err := s.prepare(ctx); err != nil {
		return s, err
	}
	fill := exec.CommandContext(ctx, "python3", filepath.Join(b.bench, "fill"), filepath.Join(directory, "durward.db"), strconv.Itoa(size), strconv.Itoa(s.crowd()))
	fill.Stdout, fill.Stderr = os.Stderr, os.Stderr
	if err := fill.Run(); err != nil {
		return s, fmt.Errorf("filling the store: %w", err)
	}
	if s.process, err = s.startGateway(ctx); err != nil {
		return s, err
	}
	if err := s.keepCounters(ctx); err != nil {
		return s, fmt.Errorf("making counters: %w", err)
	}
	for n := range callsPerBatch {
		s.requests = append(s.requests, request(address, "/mcp/bench-call", s.tokens[n%users]))
	}
	return s, nil
}

func (s *side) stop() {
	if s.process != nil {
		s.process.stop()
	}
	s.issuer.close()
}

var bytesPerCounter = regexp.MustCompile(`([0-9.]+) B/counter`)

// counterMemory runs the benchmark of the package with the counters: a million of them.
func (b *bench) counterMemory(ctx context.Context) measurement {
	command := exec.CommandContext(ctx, "go", "test", "-trimpath", "-tags=nobadger,nomysql,nopgx", "-run", "^$", "-bench", "^BenchmarkMemory$/^12s$", "-benchtime", "1x",
		"-count", strconv.Itoa(min(b.rounds, 3)), "./internal/ratelimit/window")
	command.Dir, command.Env = filepath.Join(b.bench, "..", ".."), append(os.Environ(), "CGO_ENABLED=0")
	out, err := command.CombinedOutput()
	if err != nil {
		return measurement{err: fmt.Errorf("running the counters' benchmark: %w: %s", err, bytes.TrimSpace(out))}
	}
	m := measurement{note: "1000000 counters"}
	for _, found := range bytesPerCounter.FindAllSubmatch(out, -1) {
		value, err := strconv.ParseFloat(string(found[1]), 64)
		if err != nil {
			return measurement{err: err}
		}
		m.values = append(m.values, value)
	}
	return m
}
