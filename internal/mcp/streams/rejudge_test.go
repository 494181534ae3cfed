package streams

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// held is the hold on a store that is open.
func held() (release func(), ok bool) { return func() {}, true }

// TestRejudge checks that writes during the check of rights are checked too, and a right that cannot be read for some
// time ends its stream.
func TestRejudge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		registry := new(Registry)
		j := &Rejudger{Streams: registry, Hold: held}
		open := func(right Right) context.Context {
			ctx, done := registry.Open(context.Background(), Owner{Organization: "a"}, Listen, time.Time{}, Limits{}, right)
			t.Cleanup(done)
			return ctx
		}
		j.Changed("a") // nothing is open
		if len(j.pending) != 0 {
			t.Error("work for nothing")
		}
		var lost atomic.Bool
		asked := make(chan struct{})
		proceed := make(chan struct{})
		first := open(func(context.Context) (bool, error) {
			holds := !lost.Load()
			asked <- struct{}{}
			<-proceed
			return holds, nil
		})
		j.Changed("a")
		<-asked
		lost.Store(true)
		j.Changed("a") // while the first look is not done
		proceed <- struct{}{}
		<-asked
		proceed <- struct{}{}
		synctest.Wait()
		if reason, _ := EndedFor(first); reason != PolicyChanged || len(j.pending) != 0 {
			t.Errorf("ended for %q, %d organizations are pending", reason, len(j.pending))
		}
	})
	synctest.Test(t, func(t *testing.T) {
		registry := new(Registry)
		j := &Rejudger{Streams: registry, Hold: held}
		tries := 0
		ctx, done := registry.Open(context.Background(), Owner{Organization: "a"}, Listen, time.Time{}, Limits{}, func(context.Context) (bool, error) {
			tries++
			return true, errors.New("the store is away")
		})
		defer done()
		j.Changed("a")
		synctest.Wait()
		if ctx.Err() != nil {
			t.Error("ended at the first failure")
		}
		changed := time.Now()
		<-ctx.Done()
		if reason, _ := EndedFor(ctx); reason != PolicyChanged || tries != rejudgeTries || time.Since(changed) > second {
			t.Errorf("after %d tries and %v: ended for %q", tries, time.Since(changed), reason)
		}
	})
}

// second is within what a stream ends whose right has.
const second = time.Second

// TestRejudgeInTime checks that thousands of streams that have lost their right end within a second of a change, each
// with its reason, where a right is told in a millisecond; those of other organizations are not asked.
func TestRejudgeInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		registry := new(Registry)
		j := &Rejudger{Streams: registry, Hold: held}
		var open []context.Context
		for i := range 4_000 {
			organization, holds := "a", i%2 == 0
			if i%4 == 1 {
				organization = "b"
			}
			ctx, done := registry.Open(t.Context(), Owner{Organization: organization}, Listen, time.Time{}, Limits{}, func(context.Context) (bool, error) {
				time.Sleep(time.Millisecond)
				return holds, nil
			})
			defer done()
			open = append(open, ctx)
		}
		changed := time.Now()
		j.Changed("a")
		for i, ctx := range open {
			if i%4 != 3 {
				continue
			}
			<-ctx.Done()
			if reason, _ := EndedFor(ctx); reason != PolicyChanged {
				t.Fatalf("stream %d ended for %q", i, reason)
			}
		}
		if took := time.Since(changed); took > second {
			t.Errorf("the last stream ended after %v", took)
		}
		synctest.Wait()
		for i, ctx := range open {
			if i%4 != 3 && ctx.Err() != nil {
				t.Fatalf("stream %d, which has its right, ended", i)
			}
		}
	})
}

// TestRejudgeOfAClosedStore checks that no right is asked while the store is closing, and that the hold on it ends with
// the check.
func TestRejudgeOfAClosedStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		registry := new(Registry)
		closing, holds, asked := true, 0, 0
		j := &Rejudger{Streams: registry, Hold: func() (release func(), ok bool) {
			if closing {
				return nil, false
			}
			holds++
			return func() { holds-- }, true
		}}
		_, done := registry.Open(t.Context(), Owner{Organization: "a"}, Listen, time.Time{}, Limits{}, func(context.Context) (bool, error) {
			if asked++; holds != 1 {
				t.Errorf("asked under %d holds", holds)
			}
			return true, nil
		})
		defer done()
		j.Changed("a")
		synctest.Wait()
		if asked != 0 || len(j.pending) != 0 {
			t.Errorf("asked %d times of a closing store, %d are pending", asked, len(j.pending))
		}
		closing = false
		j.Changed("a")
		synctest.Wait()
		if asked != 1 || holds != 0 {
			t.Errorf("asked %d times, %d holds are left", asked, holds)
		}
	})
}
