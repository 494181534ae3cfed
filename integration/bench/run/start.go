package main

import (
	"context"
	"errors"
	"time"
)

// firstAnswer measures the time from the start of the process to an answered tools/call (P10). It uses the embedded
// store, which was read before, so that the disk cache is warm. The key set of the issuer is fetched within it.
func (b *bench) firstAnswer(ctx context.Context) (m measurement) {
	stub, err := b.startStub(ctx)
	if err != nil {
		return measurement{err: err}
	}
	defer stub.stop()
	for round := range b.rounds + 1 { // the first warms the disk
		took, err := b.startToAnswer(ctx)
		if err != nil {
			return measurement{err: err}
		}
		if round > 0 {
			m.values = append(m.values, float64(took.Microseconds())/1e3)
		}
	}
	return m
}

func (b *bench) startToAnswer(ctx context.Context) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	started := time.Now()
	p, err := b.launch(narrow)
	if err != nil {
		return 0, err
	}
	defer p.stop()
	ticker := time.NewTicker(time.Millisecond)
	defer ticker.Stop()
	for {
		if w, err := dial(b.address); err == nil {
			err = w.exchange(request(b.address, "/mcp/bench-call", b.tokens[0]))
			w.connection.Close()
			return time.Since(started), err
		}
		select {
		case <-p.exited:
			return 0, errors.New("the gateway has ended; its log is in the rig's out/")
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-ticker.C:
		}
	}
}
