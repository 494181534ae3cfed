package streams

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestEndCoversByOwner(t *testing.T) {
	alice := Owner{Organization: "a", User: "alice", Server: "s1"}
	cases := []struct {
		name  string
		by    Owner
		ended bool
	}{
		{"the same owner", alice, true},
		{"the user's server", Owner{Organization: "a", Server: "s1"}, true},
		{"the organization", Owner{Organization: "a"}, true},
		{"another user", Owner{Organization: "a", User: "bob", Server: "s1"}, false},
		{"another organization's server of that id", Owner{Organization: "b", Server: "s1"}, false},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			var r Registry
			ctx, done := r.Open(context.Background(), alice, Call, time.Time{}, Limits{}, nil)
			defer done()
			r.End(c.by, ServerDeleted)
			reason, ended := EndedFor(ctx)
			if ended != c.ended || (ended && reason != ServerDeleted) {
				t.Fatalf("ended = %v (%q), want %v", ended, reason, c.ended)
			}
		})
	}
}

func TestStreamEndsWhenTheTokenExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r Registry
		ctx, done := r.Open(context.Background(), Owner{}, Listen, time.Now().Add(time.Minute), Limits{}, nil)
		defer done()
		time.Sleep(time.Minute - time.Nanosecond)
		synctest.Wait()
		if ctx.Err() != nil {
			t.Fatal("ended before the token expired")
		}
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		if reason, _ := EndedFor(ctx); reason != TokenExpired {
			t.Fatalf("reason = %q", reason)
		}
	})
}

func TestDrainEndsListenersAndLetsCallsFinish(t *testing.T) {
	var r Registry
	call, doneCall := r.Open(context.Background(), Owner{}, Call, time.Time{}, Limits{}, nil)
	listen, doneListen := r.Open(context.Background(), Owner{}, Listen, time.Time{}, Limits{}, nil)
	if n := r.Count(Owner{}); n != 2 {
		t.Errorf("%d streams are open, want 2", n)
	}
	if n := r.Drain(0, nil); n != 1 {
		t.Fatalf("drained %d, want 1", n)
	}
	if call.Err() != nil {
		t.Error("a call was cut")
	}
	if reason, _ := EndedFor(listen); reason != Shutdown {
		t.Errorf("reason = %q", reason)
	}
	late, doneLate := r.Open(context.Background(), Owner{}, Listen, time.Time{}, Limits{}, nil)
	if reason, _ := EndedFor(late); reason != Shutdown {
		t.Errorf("a listener that came after the drain stayed open")
	}
	doneCall()
	doneListen()
	doneLate()
	if r.Len() != 0 {
		t.Errorf("%d streams left", r.Len())
	}
}

func TestEndedForKnowsItsOwnCauseOnly(t *testing.T) {
	var r Registry
	parent, cancel := context.WithCancel(context.Background())
	ctx, done := r.Open(parent, Owner{}, Call, time.Time{}, Limits{}, nil)
	defer done()
	cancel() // the client went away
	if reason, ended := EndedFor(ctx); ended {
		t.Fatalf("a client's cancellation counted as ours: %q", reason)
	}
}

// TestJudge checks that a stream without permission is ended. A stream whose permission cannot be determined is ended
// only in strict mode.
func TestJudge(t *testing.T) {
	r := new(Registry)
	away := errors.New("away")
	open := func(organization string, right Right) context.Context {
		ctx, done := r.Open(context.Background(), Owner{Organization: organization}, Listen, time.Time{}, Limits{}, right)
		t.Cleanup(done)
		return ctx
	}
	answer := func(holds bool, err error) Right {
		return func(context.Context) (bool, error) { return holds, err }
	}
	holds, lost, untold := open("a", answer(true, nil)), open("a", answer(false, nil)), open("a", answer(true, away))
	other, without := open("b", answer(false, nil)), open("a", nil)
	if n := r.Judge(t.Context(), Owner{Organization: "a"}, PolicyChanged, false); n != 1 {
		t.Errorf("%d rights were not told, want 1", n)
	}
	if reason, _ := EndedFor(lost); reason != PolicyChanged || untold.Err() != nil {
		t.Errorf("ended for %q; the one that was not told: %v", reason, untold.Err())
	}
	if n := r.Judge(t.Context(), Owner{Organization: "a"}, PolicyChanged, true); n != 0 {
		t.Errorf("%d rights were not told of those that have to be", n)
	}
	if reason, _ := EndedFor(untold); reason != PolicyChanged {
		t.Errorf("ended for %q", reason)
	}
	for _, ctx := range []context.Context{holds, other, without} {
		if ctx.Err() != nil {
			t.Error("a stream ended that had its right, or is another's")
		}
	}
}

// TestDrainIsSpread covers Z-G02: streams end one after the other within the given time, calls do not end, and a stream
// that is closed meanwhile does no harm.
func TestDrainIsSpread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const streams, spread = 500, time.Second
		var r Registry
		seeded := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the test's own dice
		ends := make(map[time.Duration]int)
		var mu sync.Mutex
		began := time.Now()
		for i := range streams {
			ctx, done := r.Open(context.Background(), Owner{User: strconv.Itoa(i)}, Listen, time.Time{}, Limits{}, nil)
			context.AfterFunc(ctx, func() {
				defer done()
				if reason, _ := EndedFor(ctx); reason != Shutdown {
					t.Errorf("reason = %q", reason)
				}
				mu.Lock()
				defer mu.Unlock()
				ends[time.Since(began).Truncate(spread/10)]++
			})
		}
		call, doneCall := r.Open(context.Background(), Owner{}, Call, time.Time{}, Limits{}, nil)
		closed, doneClosed := r.Open(context.Background(), Owner{}, Listen, time.Time{}, Limits{}, nil)
		if n := r.Drain(spread, func(below time.Duration) time.Duration { return time.Duration(seeded.Int64N(int64(below))) }); n != streams+1 {
			t.Errorf("drained %d, want %d", n, streams+1)
		}
		doneClosed()
		late, doneLate := r.Open(context.Background(), Owner{}, Listen, time.Time{}, Limits{}, nil)
		defer doneLate()
		if reason, _ := EndedFor(late); reason != Shutdown {
			t.Error("a listener that came after the drain stayed open")
		}
		time.Sleep(spread)
		synctest.Wait()
		for tenth := range 10 {
			if n := ends[time.Duration(tenth)*spread/10]; n < streams/30 || n > streams/4 {
				t.Errorf("%d of %d streams ended in tenth %d", n, streams, tenth)
			}
		}
		if call.Err() != nil {
			t.Error("a call was cut")
		}
		if reason, ended := EndedFor(closed); ended {
			t.Errorf("what the client closed ended for %q", reason)
		}
		doneCall()
	})
}

// TestCancel checks that code under a stream's context can end it, with a reason that is not one of the gateway's.
func TestCancel(t *testing.T) {
	var r Registry
	if Cancel(t.Context()) != nil {
		t.Error("a context without a stream can be cancelled")
	}
	ctx, done := r.Open(t.Context(), Owner{}, Call, time.Time{}, Limits{}, nil)
	defer done()
	below, stop := context.WithCancel(ctx)
	defer stop()
	late := errors.New("late")
	Cancel(below)(late)
	<-below.Done() // contexts of package context learn of it a moment later
	if _, ended := EndedFor(ctx); ended || !errors.Is(context.Cause(below), late) || below.Err() == nil {
		t.Errorf("cause %v", context.Cause(below))
	}
}

// TestExpiryFarAway checks that a stream whose token ends later than soon ends at that moment too. No timer is left
// when all streams are gone.
func TestExpiryFarAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r Registry
		start := time.Now()
		var all sync.WaitGroup
		for _, life := range []time.Duration{0, time.Second, soon, soon + 1, 2*soon - 1, 3*soon + time.Second, time.Hour} {
			ctx, done := r.Open(context.Background(), Owner{}, Listen, start.Add(life), Limits{}, nil)
			all.Go(func() {
				defer done()
				<-ctx.Done()
				if reason, _ := EndedFor(ctx); reason != TokenExpired || time.Since(start) != life {
					t.Errorf("%v: %q after %v", life, reason, time.Since(start))
				}
			})
		}
		_, done := r.Open(context.Background(), Owner{}, Call, start.Add(100*time.Hour), Limits{}, nil)
		all.Wait()
		done()
		time.Sleep(soon)
		synctest.Wait()
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.sweeping || r.scheduled || r.open.n+r.unwatched.n > 0 {
			t.Errorf("sweeping %v, scheduled %v, over %d streams", r.sweeping, r.scheduled, r.open.n+r.unwatched.n)
		}
	})
}

// TestExpiryWhileSweeping checks that a stream that opens between two sweeps ends in time too.
func TestExpiryWhileSweeping(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r Registry
		var all sync.WaitGroup
		_, done := r.Open(context.Background(), Owner{}, Call, time.Now().Add(time.Hour), Limits{}, nil) // keeps the sweeps going
		for _, pause := range []time.Duration{0, time.Second, soon/2 - time.Second - 1, 1, 1, soon/2 - 2, soon / 4} {
			time.Sleep(pause)
			for _, life := range []time.Duration{0, 1, soon / 2, soon, 3 * soon / 2, 2 * soon, 2*soon + 1, 5 * soon / 2} {
				start := time.Now()
				ctx, done := r.Open(context.Background(), Owner{}, Call, start.Add(life), Limits{}, nil)
				all.Go(func() {
					defer done()
					<-ctx.Done()
					if reason, _ := EndedFor(ctx); reason != TokenExpired || time.Since(start) != life {
						t.Errorf("%v: %q after %v", life, reason, time.Since(start))
					}
				})
			}
		}
		all.Wait()
		done()
		time.Sleep(soon)
	})
}
