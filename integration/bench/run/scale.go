package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	smallAddress = "127.0.0.1:9301"
	largeAddress = "127.0.0.1:9302"
	smallScale   = 10
	// newPerCall is how many counters a call makes whose user and server are new: two limits of each, of requests and tokens.
	newPerCall    = 8
	newUsers      = 1000 // the first of the users that fill puts into the store
	callsPerRound = 4000
)

// scale measures what a call costs a gateway with as many policies, servers, keys and live counters as the options say, over
// what it costs one with ten of each, and the memory of a counter (P6).
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
	for i := range sides {
		if sides[i].wire, err = dial(sides[i].address); err != nil {
			return fail(err)
		}
		defer sides[i].wire.connection.Close()
	}
	var m measurement
	for round := range b.rounds + 1 { // the first warms up
		var costs [2]float64
		for i, s := range sides {
			if costs[i], err = s.wire.cost(ctx, s.process.Process.Pid, s.requests); err != nil {
				return fail(err)
			}
		}
		if round > 0 {
			m.values = append(m.values, costs[1]/costs[0])
		}
	}
	live, err := sides[1].liveCounters(ctx)
	if err != nil {
		return fail(err)
	}
	if live < b.options.scale*9/10 {
		return fail(fmt.Errorf("only %d counters were live: the others were made more than two minutes before", live))
	}
	m.note = fmt.Sprintf("%d policies, servers and keys, %d live counters, against %d of each", b.options.scale, live, smallScale)
	return m
}

// side is one of the two gateways that are compared, with calls of its users.
type side struct {
	*bench
	process  *process
	wire     *wire
	requests [][]byte
}

// newSide sets up a gateway with that many rows and live counters. Its store is thrown away with b's directory.
func (b *bench) newSide(ctx context.Context, address string, size int) (s side, err error) {
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
	fill := exec.CommandContext(ctx, "python3", filepath.Join(b.bench, "fill"), filepath.Join(directory, "durward.db"), strconv.Itoa(size))
	fill.Stdout, fill.Stderr = os.Stderr, os.Stderr
	if err := fill.Run(); err != nil {
		return s, fmt.Errorf("filling the store: %w", err)
	}
	if s.process, err = s.startGateway(ctx); err != nil {
		return s, err
	}
	if err := s.makeCounters(ctx, size); err != nil {
		return s, fmt.Errorf("making counters: %w", err)
	}
	if err := s.awaitIdle(ctx); err != nil {
		return s, err
	}
	for n := range callsPerRound {
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

// prepare adds what is copied, a server that needs no connection, and limits that make more counters per call.
func (s *side) prepare(ctx context.Context) error {
	gateway, err := s.startGateway(ctx)
	if err != nil {
		return err
	}
	defer gateway.stop()
	if err := s.createServer(ctx, "Bench open", map[string]any{"url": "http://" + stubAddress + "/mcp", "provider": "none"}); err != nil {
		return err
	}
	for _, scope := range []string{"user", "mcp_server"} {
		limit := map[string]any{"name": "Bench " + scope + " again", "scope_type": scope, "traffic_type": "mcp", "requests_per_minute": plenty, "tokens_per_minute": plenty}
		if err := s.api(ctx, 0, limitsPath, limit, nil); err != nil {
			return err
		}
	}
	return nil
}

// makeCounters calls copies of the open server, each as another user.
func (s *side) makeCounters(ctx context.Context, size int) error {
	calls, connections := (size+newPerCall-1)/newPerCall, 8
	failed := make([]error, connections)
	var calling sync.WaitGroup
	for c := range connections {
		calling.Go(func() {
			w, err := dial(s.address)
			if err != nil {
				failed[c] = err
				return
			}
			defer w.connection.Close()
			for n := c; n < calls && failed[c] == nil && ctx.Err() == nil; n += connections {
				token, err := s.issuer.token(user(newUsers+n), s.url())
				if err == nil {
					err = w.exchange(request(s.address, fmt.Sprint("/mcp/bench-open-", n+1), token))
				}
				failed[c] = err
			}
		})
	}
	calling.Wait()
	return errors.Join(append(failed, ctx.Err())...)
}

// awaitIdle waits until the gateway has done what it does behind requests: its processor time would count as theirs.
func (s *side) awaitIdle(ctx context.Context) error {
	const pause, idle = 500 * time.Millisecond, 10 * time.Millisecond
	before, err := processorTime(s.process.Process.Pid)
	for until := time.Now().Add(time.Minute); err == nil && time.Now().Before(until); {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
		var after int64
		if after, err = processorTime(s.process.Process.Pid); err == nil && time.Duration(after-before) < idle {
			return nil
		}
		before = after
	}
	return errors.Join(errors.New("the gateway has not come to rest"), err)
}

// sweep is how often the gateway counts its counters, and a second.
const sweep = 21 * time.Second

// liveCounters is how many counters the gateway keeps. Those that it made for what was measured are few.
func (s *side) liveCounters(ctx context.Context) (int, error) {
	select {
	case <-ctx.Done():
		return 0, ctx.Err()
	case <-time.After(sweep):
	}
	text, err := s.fetchAdmin(ctx, "/metrics")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, "durward_limit_counters "); ok {
			n, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
			return int(n), err
		}
	}
	return 0, errors.New("the metrics do not tell of counters")
}

var bytesPerCounter = regexp.MustCompile(`([0-9.]+) B/counter`)

// counterMemory runs the benchmark of the package that has the counters: a million of them.
func (b *bench) counterMemory(ctx context.Context) measurement {
	command := exec.CommandContext(ctx, "go", "test", "-trimpath", "-tags=nobadger,nomysql,nopgx", "-run", "^$", "-bench", "^BenchmarkMemory$/^12s$", "-benchtime", "1x",
		"-count", strconv.Itoa(min(b.rounds, 3)), "./internal/window")
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
