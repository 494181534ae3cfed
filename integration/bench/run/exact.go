package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"sync"
	"time"
)

// P9 does this to one limit: connections that send at the same time, more calls than pass.
const (
	contenders  = 8
	attempts    = 200 // of each
	letThrough  = 1000
	settledSoon = 5 * time.Second // a call is settled when its answer has passed, which its client may see earlier
)

// contended is one kind of calls that P9 counts.
type contended struct {
	limit  map[string]any
	call   func(n int) []byte // of the n-th connection
	tokens int64              // that each counts
}

func (b *bench) contended() []contended {
	return []contended{
		{
			limit:  map[string]any{"scope_type": "mcp_server", "scope_id": b.servers["Bench call"], "traffic_type": "mcp"},
			call:   func(n int) []byte { return request(b.address, "/mcp/bench-call", b.tokens[n]) },
			tokens: 15, // the stub's result: 56 bytes of text and 4 that say so, through four
		},
		{
			limit: map[string]any{"scope_type": "model_alias", "scope_value": "bench-chat", "traffic_type": "llm"},
			call: func(n int) []byte {
				return post(b.address, chatPath, b.keys[n], chat)
			},
			tokens: 41, // the stub's usage
		},
	}
}

// exactness measures by how many calls and tokens limits are wrong when eight connections contend for them (P9): it
// compares the passed calls with the limit, and the numbers of the status with the passed calls. The gateway has every
// processor here, and more threads than there are.
func (b *bench) exactness(ctx context.Context) measurement {
	fail := func(err error) measurement { return measurement{err: fmt.Errorf("contending for a limit: %w", err)} }
	stub, err := b.startStub(ctx)
	if err != nil {
		return fail(err)
	}
	defer stub.stop()
	gateway, err := b.launch(way{processors: "0,1", threads: contenders, file: "Caddyfile"})
	if err != nil {
		return fail(err)
	}
	defer gateway.stop()
	if err := gateway.await(ctx, b.address); err != nil {
		return fail(err)
	}
	wrong, limits := int64(0), 0
	for range b.rounds {
		for _, c := range b.contended() {
			n, err := b.contend(ctx, c)
			if err != nil {
				return fail(err)
			}
			wrong += n
			limits++
		}
	}
	return measurement{values: []float64{float64(wrong)}, note: fmt.Sprintf("%d limits of %d, %d calls at each", limits, letThrough, contenders*attempts)}
}

// contend makes a limit, sends more calls than it lets pass, and returns the error of the count.
func (b *bench) contend(ctx context.Context, c contended) (wrong int64, err error) {
	var made struct {
		ID string `json:"id"`
	}
	c.limit["name"], c.limit["requests_per_minute"], c.limit["tokens_per_minute"] = "Bench contended", letThrough, plenty
	if err := b.api(ctx, 0, limitsPath, c.limit, &made); err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, b.ask(ctx, http.MethodDelete, 0, limitsPath+"/"+made.ID, nil, nil)) }()

	passed, err := b.fire(c)
	if err != nil {
		return 0, err
	}
	for until := time.Now().Add(settledSoon); ; {
		requests, tokens, err := b.counted(ctx, made.ID)
		if err != nil {
			return 0, err
		}
		wrong = apart(passed, letThrough) + apart(requests, passed) + apart(tokens, passed*c.tokens)
		if wrong == 0 {
			return 0, nil
		}
		if time.Now().After(until) {
			fmt.Fprintf(os.Stderr, "P9: of %v passed %d, counted were %d calls and %d tokens\n", c.limit["scope_type"], passed, requests, tokens)
			return wrong, nil
		}
	}
}

// fire sends the calls, all connections at the same time, and returns how many passed.
func (b *bench) fire(c contended) (passed int64, err error) {
	var mu sync.Mutex
	var sending sync.WaitGroup
	ready, started := make(chan struct{}), time.Now()
	for n := range contenders {
		w, dialErr := dial(b.address)
		if dialErr != nil {
			err = dialErr
			break
		}
		sending.Go(func() {
			defer w.connection.Close()
			<-ready
			mine, sendErr := w.passing(c.call(n))
			mu.Lock()
			defer mu.Unlock()
			passed, err = passed+mine, errors.Join(err, sendErr)
		})
	}
	close(ready)
	sending.Wait()
	if err == nil && time.Since(started) > 50*time.Second {
		err = errors.New("the calls took so long that some may have left the limit's minute")
	}
	return passed, err
}

// passing sends one request again and again and returns the number that no limit refused.
func (w *wire) passing(request []byte) (passed int64, err error) {
	for range attempts {
		status, err := w.status(request)
		switch {
		case err != nil:
			return passed, err
		case status == http.StatusOK:
			passed++
		case status != http.StatusTooManyRequests:
			return passed, fmt.Errorf("answered with status %d", status)
		}
	}
	return passed, nil
}

// counted returns the numbers of the status endpoint for a limit.
func (b *bench) counted(ctx context.Context, id string) (requests, tokens int64, err error) {
	var status []struct {
		Policy struct {
			ID string `json:"id"`
		} `json:"policy"`
		Requests int64 `json:"rpm_used"`
		Tokens   int64 `json:"tpm_used"`
	}
	if err := b.ask(ctx, http.MethodGet, 0, limitsPath+"/status", nil, &status); err != nil {
		return 0, 0, err
	}
	for _, s := range status {
		if s.Policy.ID == id {
			return s.Requests, s.Tokens, nil
		}
	}
	return 0, 0, errors.New("the status does not tell of the limit")
}

func apart(a, b int64) int64 { return max(a-b, b-a) }
