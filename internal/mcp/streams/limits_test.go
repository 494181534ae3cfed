package streams

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"
)

// TestLimits checks that streams beyond the bounds are refused, that each user has an own bound, that calls are not
// counted, and that a closed stream gives its place back.
func TestLimits(t *testing.T) {
	alice := Owner{Organization: "a", User: "alice", Server: "s1"}
	limits := Limits{PerUser: 2, Total: 4}
	var r Registry
	open := func(o Owner, kind Kind, want Reason) func() {
		t.Helper()
		ctx, done := r.Open(context.Background(), o, kind, time.Time{}, limits, nil)
		if reason, _ := EndedFor(ctx); reason != want {
			t.Fatalf("%+v: %q, want %q", o, reason, want)
		}
		return done
	}
	first := open(alice, Listen, "")
	second := open(Owner{Organization: "a", User: "alice", Server: "s2"}, Listen, "")
	refused := open(alice, Listen, UserFull)
	refused() // a refused stream gives back nothing
	open(alice, Listen, UserFull)
	call := open(alice, Call, "")
	others := []func(){
		open(Owner{Organization: "b", User: "alice", Server: "s1"}, Listen, ""), // the same id in another organization
		open(Owner{Organization: "a", User: "bob", Server: "s1"}, Listen, ""),
	}
	open(Owner{Organization: "a", User: "carol", Server: "s1"}, Listen, NodeFull)
	first()
	first() // a second call has no effect
	again := open(alice, Listen, "")
	open(alice, Listen, UserFull)

	limits = Limits{PerUser: 3, Total: 5} // as a reload does
	third := open(alice, Listen, "")
	limits = Limits{PerUser: 1, Total: 5}
	open(alice, Listen, UserFull)
	second()
	again()
	open(alice, Listen, UserFull) // the third is still there
	third()
	last := open(alice, Listen, "")
	for _, done := range append(others, last, call) {
		done()
	}
	if r.Len() != 0 || len(r.listening) != 0 || r.listeners != 0 {
		t.Errorf("left: %d streams, %v, %d listeners", r.Len(), r.listening, r.listeners)
	}
}

// TestLimitsAreExact covers W06: exactly the allowed number of streams open, however many try at once.
func TestLimitsAreExact(t *testing.T) {
	var r Registry
	limits := Limits{PerUser: 7, Total: 40}
	for range 20 {
		var wait sync.WaitGroup
		var mu sync.Mutex
		got := make(map[Reason]int)
		var closing []func()
		users := make(map[string]int)
		for i := range 200 {
			user := fmt.Sprint("user", i%10) // ten users want 20 each, may have 7 each and 40 in total
			wait.Go(func() {
				ctx, done := r.Open(context.Background(), Owner{Organization: "a", User: user}, Listen, time.Now().Add(time.Hour), limits, nil)
				reason, _ := EndedFor(ctx)
				mu.Lock()
				defer mu.Unlock()
				got[reason]++
				closing = append(closing, done)
				if reason == "" {
					users[user]++
				}
			})
		}
		wait.Wait()
		if got[""] != limits.Total || len(closing) != 200 {
			t.Fatalf("%v of 200 streams", got)
		}
		for user, n := range users {
			if n > limits.PerUser {
				t.Fatalf("%s has %d streams", user, n)
			}
		}
		for _, done := range closing {
			wait.Go(done)
			wait.Go(done)
		}
		wait.Wait()
		if r.listeners != 0 || len(r.listening) != 0 || r.Len() != 0 {
			t.Fatalf("left: %d, %v, %d", r.listeners, r.listening, r.Len())
		}
	}
}
