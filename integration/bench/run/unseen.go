package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
)

// Requests of each kind in one round, and before the first round, which are not counted.
const (
	unseenPerRound = 1000
	unseenWarmUp   = 200
)

// unseenTokens measures what the first request of a token costs (P8), in processor time of the gateway: batches of requests
// with unseen tokens, with seen ones, and through plain Caddy, one request at a time on one connection each. Processor time,
// because a difference of latencies this small drowns in whatever else the machine does.
func (b *bench) unseenTokens(ctx context.Context) (overSeen, overCaddy measurement) {
	fail := func(err error) (measurement, measurement) { return measurement{err: err}, measurement{err: err} }
	var watched [3]*process // the stub, Caddy, the gateway
	for i, start := range []func(context.Context) (*process, error){b.startStub, b.startCaddy, b.startGateway} {
		p, err := start(ctx)
		if err != nil {
			return fail(err)
		}
		defer p.stop()
		watched[i] = p
	}
	var wires [2]*wire // to Caddy, to the gateway
	for i, address := range []string{caddyAddress, b.address} {
		w, err := dial(address)
		if err != nil {
			return fail(err)
		}
		defer w.connection.Close()
		wires[i] = w
	}
	caddy, gateway := watched[1].Process.Pid, watched[2].Process.Pid
	for round := range b.rounds + 1 {
		count := unseenPerRound
		if round == 0 {
			count = unseenWarmUp
		}
		unseen, seen, direct := make([][]byte, count), make([][]byte, count), make([][]byte, count)
		for n := range count {
			token, err := b.issuer.token(user(n%users), b.url())
			if err != nil {
				return fail(err)
			}
			unseen[n] = request(b.address, "/mcp/bench-call", token)
			seen[n] = request(b.address, "/mcp/bench-call", b.tokens[n%users])
			direct[n] = request(caddyAddress, "/mcp", "")
		}
		var costs [3]float64 // microseconds per request: unseen, seen, plain Caddy
		for i, batch := range []struct {
			*wire
			pid      int
			requests [][]byte
		}{{wires[1], gateway, unseen}, {wires[1], gateway, seen}, {wires[0], caddy, direct}} {
			cost, err := batch.cost(ctx, batch.pid, batch.requests)
			if err != nil {
				return fail(err)
			}
			costs[i] = cost
		}
		if round > 0 {
			overSeen.values = append(overSeen.values, costs[0]-costs[1])
			overCaddy.values = append(overCaddy.values, costs[0]-costs[2])
		}
	}
	return overSeen, overCaddy
}

// cost sends requests one after the other and returns the microseconds of processor time that a process spent on each.
func (w *wire) cost(ctx context.Context, pid int, requests [][]byte) (float64, error) {
	before, err := processorTime(pid)
	if err != nil {
		return 0, err
	}
	for _, r := range requests {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		if err := w.exchange(r); err != nil {
			return 0, err
		}
	}
	after, err := processorTime(pid)
	return float64(after-before) / 1e3 / float64(len(requests)), err
}

// processorTime is what all threads of a process have spent on a processor, in nanoseconds: /proc/pid/stat counts in
// hundredths of a second, which is too coarse for short batches.
func processorTime(pid int) (int64, error) {
	paths, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	if err != nil || len(paths) == 0 {
		return 0, fmt.Errorf("reading the processor time of %d: no schedstat", pid)
	}
	var sum int64
	for _, path := range paths {
		content, err := os.ReadFile(path)
		if err != nil {
			continue // the thread has ended
		}
		var spent int64
		if _, err := fmt.Sscan(string(content), &spent); err != nil {
			return 0, fmt.Errorf("reading the processor time of %d: %w", pid, err)
		}
		sum += spent
	}
	return sum, nil
}
