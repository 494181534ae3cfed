package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// A round has slices, and every kind of request has its turn in each slice: other load of the machine then affects all
	// kinds alike.
	slicesPerRound = 20
	perSlice       = 50

	// referenceSignature is the time for checking an ES256 signature, in microseconds, on the processor for which P8's
	// gate was set.
	referenceSignature = 78
	gatewayProcessor   = 0
)

// unseenTokens measures the cost of the first request of a token (P8), in processor time of the gateway: slices of
// requests with unseen tokens, with seen ones, and through plain Caddy, one request at a time on one connection each.
// It measures processor time, because so small a difference of latencies is lost in the other load of the machine. A
// large part of the cost is the signature: on a machine where checking one takes longer than on the reference
// processor, the values are divided by that factor.
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
	var signatures []float64
	for round := range b.rounds + 1 { // the first warms up
		var costs [3]float64 // microseconds per request: unseen, seen, plain Caddy
		var signature float64
		for range slicesPerRound {
			unseen, seen, direct := make([][]byte, perSlice), make([][]byte, perSlice), make([][]byte, perSlice)
			for n := range perSlice {
				token, err := b.issuer.token(user(n%users), b.url())
				if err != nil {
					return fail(err)
				}
				unseen[n] = request(b.address, "/mcp/bench-call", token)
				seen[n] = request(b.address, "/mcp/bench-call", b.tokens[n%users])
				direct[n] = request(caddyAddress, "/mcp", "")
			}
			for i, batch := range []struct {
				*wire
				pid      int
				requests [][]byte
			}{{wires[1], gateway, unseen}, {wires[1], gateway, seen}, {wires[0], caddy, direct}} {
				cost, err := batch.cost(ctx, batch.pid, batch.requests)
				if err != nil {
					return fail(err)
				}
				costs[i] += cost / slicesPerRound
			}
			cost, err := wires[1].signatureCost(ctx, seen)
			if err != nil {
				return fail(err)
			}
			signature += cost / slicesPerRound
		}
		if round > 0 {
			slower := max(1, signature/referenceSignature)
			overSeen.values = append(overSeen.values, (costs[0]-costs[1])/slower)
			overCaddy.values = append(overCaddy.values, (costs[0]-costs[2])/slower)
			signatures = append(signatures, signature)
		}
	}
	overSeen.note = fmt.Sprintf("a signature took %.0f us", median(signatures))
	overCaddy.note = overSeen.note
	return overSeen, overCaddy
}

// signatureCost returns the microseconds of processor time for checking a signature on the gateway's processor, once
// after each of these requests. Between the checks the gateway uses the processor and its caches, as between its own
// checks. Checks in a row take less.
func (w *wire) signatureCost(ctx context.Context, requests [][]byte) (microseconds float64, err error) {
	turns, checks := make(chan struct{}), make(chan signatureCheck)
	defer close(turns)
	go checkSignatures(turns, checks)
	var sum time.Duration
	for _, r := range requests {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		if err := w.exchange(r); err != nil {
			return 0, err
		}
		turns <- struct{}{}
		check := <-checks
		if check.err != nil {
			return 0, check.err
		}
		sum += check.took
	}
	return float64(sum.Nanoseconds()) / 1e3 / float64(len(requests)), nil
}

// signatureCheck is the processor time of one check of an ES256 signature.
type signatureCheck struct {
	took time.Duration
	err  error
}

// checkSignatures checks one signature at each turn, on the gateway's processor.
func checkSignatures(turns <-chan struct{}, checks chan<- signatureCheck) {
	runtime.LockOSThread() // never unlocked: the thread cannot be used elsewhere, and ends with this function
	var only unix.CPUSet
	only.Set(gatewayProcessor)
	failed := unix.SchedSetaffinity(0, &only)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	failed = errors.Join(failed, err)
	digest := sha256.Sum256([]byte("signed"))
	var signature []byte
	if failed == nil {
		signature, failed = ecdsa.SignASN1(rand.Reader, key, digest[:])
	}
	for range turns {
		if failed != nil {
			checks <- signatureCheck{err: fmt.Errorf("preparing to check signatures: %w", failed)}
			continue
		}
		before, errBefore := threadTime()
		good := ecdsa.VerifyASN1(&key.PublicKey, digest[:], signature)
		after, errAfter := threadTime()
		check := signatureCheck{took: after - before, err: errors.Join(errBefore, errAfter)}
		if !good {
			check.err = errors.New("a good signature is refused")
		}
		checks <- check
	}
}

// threadTime returns the time that the calling thread has spent on a processor.
func threadTime() (time.Duration, error) {
	var spent unix.Timespec
	err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &spent)
	return time.Duration(spent.Nano()), err
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

// processorTime returns the time that all threads of a process have spent on a processor, in nanoseconds:
// /proc/pid/stat counts in hundredths of a second, which is too coarse for short batches.
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
