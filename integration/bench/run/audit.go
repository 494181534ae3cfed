package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
)

const (
	// samplesPerRound is the length of each profile in samples of the rounds: the profiler takes 100 samples a second, and
	// their number decides how far the values scatter.
	samplesPerRound = 4

	// auditFrames matches the functions of the audit log, by their files: those that make records of calls, the journal,
	// and those that carry it to the store. The runtime, the kernel and the store work for them further down the stack.
	auditFrames = `durward/internal/audit/|durward/modules/app/audit(call|models|names|redact)?\.go$`
	// collectorFrames matches the collector's work beside the requests.
	collectorFrames = `^runtime\.(gcBgMarkWorker|bgsweep|bgscavenge)$`
)

// auditCost measures the cost of the audit log. It cannot be turned off, so the cost is its part, in per cent, of the
// gateway's processor time under the load of P1. The collector's work counts in proportion to the audit log's part of
// the allocations. Throughput is less by this part than it would be without the audit log.
func (b *bench) auditCost(ctx context.Context, as way) (m measurement) {
	stub, err := b.startStub(ctx)
	if err != nil {
		return measurement{err: err}
	}
	defer stub.stop()
	gateway, err := b.startGatewayAs(ctx, as)
	if err != nil {
		return measurement{err: err}
	}
	defer gateway.stop()
	for range b.rounds {
		part, failed, err := b.auditPart(ctx)
		if err != nil {
			return measurement{err: err}
		}
		m.values, m.failed = append(m.values, part), m.failed+failed
	}
	return m
}

func (b *bench) auditPart(ctx context.Context) (percent float64, failed int, err error) {
	seconds := max(1, int(samplesPerRound*b.seconds))
	var said bytes.Buffer
	wait, err := b.closedLoop(ctx, seconds+1, &said)
	if err != nil {
		return 0, 0, err
	}
	processor, allocated := filepath.Join(b.directory, "cpu.pprof"), filepath.Join(b.directory, "allocs.pprof")
	err = errors.Join(
		b.fetchProfile(ctx, fmt.Sprint("profile?seconds=", seconds), processor),
		b.fetchProfile(ctx, "allocs", allocated),
		wait(),
	)
	if err != nil {
		return 0, 0, fmt.Errorf("profiling: %w", err)
	}
	var load sample
	if err := json.Unmarshal(said.Bytes(), &load); err != nil {
		return 0, 0, fmt.Errorf("reading what the load saw: %w", err)
	}
	audit, err := b.part(ctx, processor, auditFrames)
	if err != nil {
		return 0, 0, err
	}
	collector, err := b.part(ctx, processor, collectorFrames)
	if err != nil {
		return 0, 0, err
	}
	allocations, err := b.part(ctx, allocated, auditFrames)
	if err != nil {
		return 0, 0, err
	}
	return audit + collector*allocations/100, load.Bad, nil
}

// part returns the per cent of a profile's samples that have a frame, by function or file, that the pattern matches.
func (b *bench) part(ctx context.Context, profile, frames string) (percent float64, err error) {
	command := exec.CommandContext(ctx, "go", "tool", "pprof", "-top", "-nodecount=1000000", "-nodefraction=0", "-edgefraction=0",
		"-focus="+frames, b.binary, profile)
	out, err := command.Output()
	if err != nil {
		return 0, fmt.Errorf("reading a profile: %w", err)
	}
	return accountedFor(string(out))
}

var accounted = regexp.MustCompile(`Showing nodes accounting for [^,]+, ([0-9.e-]+)% of `)

// accountedFor reads from pprof's table the covered part of the profile.
func accountedFor(table string) (percent float64, err error) {
	found := accounted.FindStringSubmatch(table)
	if found == nil {
		return 0, errors.New("reading a profile: pprof does not say how much of it is shown")
	}
	return strconv.ParseFloat(found[1], 64)
}
