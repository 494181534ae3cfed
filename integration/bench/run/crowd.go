package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"
)

const (
	newUsers = 1000 // the first of the users that fill puts into the store
	// perPerson is the number of counters that one person makes whose user, agent and server are their own, with a call to
	// the server and one to a model: of requests and tokens each, of each user's, agent's and server's traffic, and of
	// their calls of a kind.
	perPerson = 16
	// keepFor is the longest time between two uses of a counter: less than the two minutes after which it is forgotten.
	keepFor = 110 * time.Second
	callers = 8 // connections at the same time
)

// crowd returns the number of people who call besides those whose calls are measured.
func (s *side) crowd() int { return max((s.size+perPerson-1)/perPerson, smallScale) }

// person returns the n-th person of the crowd, who comes with a client of their own.
func person(n int) map[string]any {
	claims := user(newUsers + n)
	client := fmt.Sprint("bench-", n+1)
	claims["client_id"], claims["azp"] = client, client
	return claims
}

// prepare adds the data to copy, a server that needs no connection, limits that make more counters, and tokens of the
// crowd.
func (s *side) prepare(ctx context.Context) error {
	gateway, err := s.startGateway(ctx)
	if err != nil {
		return err
	}
	defer gateway.stop()
	if err := s.createServer(ctx, "Bench open", map[string]any{"url": "http://" + stubAddress + "/mcp", "provider": "none"}); err != nil {
		return err
	}
	// The limits of each user's and server's traffic of all kinds exist already.
	for _, of := range [][2]string{{"user", "mcp"}, {"user", "llm"}, {"agent", "all"}, {"agent", "mcp"}, {"agent", "llm"}, {"mcp_server", "mcp"}} {
		limit := map[string]any{"name": "Bench " + of[0] + " " + of[1], "scope_type": of[0], "traffic_type": of[1], "requests_per_minute": plenty, "tokens_per_minute": plenty}
		if err := s.api(ctx, 0, limitsPath, limit, nil); err != nil {
			return err
		}
	}
	for n := range s.crowd() {
		token, err := s.issuer.token(person(n), s.url())
		if err != nil {
			return err
		}
		s.people = append(s.people, token)
	}
	return nil
}

// keepCounters makes the side's counters, or uses them again when they would otherwise be forgotten while the next
// round is measured, and waits until the gateway is at rest. None of this is measured.
func (s *side) keepCounters(ctx context.Context) error {
	if time.Since(s.kept)+s.keeping+s.round < keepFor {
		return nil
	}
	s.kept = time.Now()
	err := s.each(ctx, s.crowd(), func(w *wire, n int) error {
		if err := w.exchange(request(s.address, fmt.Sprint("/mcp/bench-open-", n+1), s.people[n])); err != nil {
			return err
		}
		return w.exchange(post(s.address, chatPath, s.people[n], chat))
	})
	if err != nil {
		return err
	}
	s.keeping = time.Since(s.kept)
	if err := s.awaitIdle(ctx); err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "%d counters in %.0f s\n", s.crowd()*perPerson, s.keeping.Seconds())
	return nil
}

// each calls do for 0 to count-1, over several connections.
func (s *side) each(ctx context.Context, count int, do func(w *wire, n int) error) error {
	failed := make([]error, callers)
	var calling sync.WaitGroup
	for c := range callers {
		calling.Go(func() {
			w, err := dial(s.address)
			if err != nil {
				failed[c] = err
				return
			}
			defer w.connection.Close()
			for n := c; n < count && failed[c] == nil && ctx.Err() == nil; n += callers {
				failed[c] = do(w, n)
			}
		})
	}
	calling.Wait()
	return errors.Join(append(failed, ctx.Err())...)
}

// awaitIdle waits until the gateway has finished its work behind requests: its processor time would count as theirs.
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
