package app

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/durward-gateway/durward/internal/mcp/streams"
)

// TestRejudge checks that writes during the check of rights are checked too, and a right that cannot be read for some
// time ends its stream.
func TestRejudge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		registry := new(streams.Registry)
		j := &rejudge{resources: new(resources), streams: registry}
		open := func(right streams.Right) context.Context {
			ctx, done := registry.Open(context.Background(), streams.Owner{Organization: "a"}, streams.Listen, time.Time{}, streams.Limits{}, right)
			t.Cleanup(done)
			return ctx
		}
		j.changed("a") // nothing is open
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
		j.changed("a")
		<-asked
		lost.Store(true)
		j.changed("a") // while the first look is not done
		proceed <- struct{}{}
		<-asked
		proceed <- struct{}{}
		synctest.Wait()
		if reason, _ := streams.EndedFor(first); reason != streams.PolicyChanged || len(j.pending) != 0 {
			t.Errorf("ended for %q, %d organizations are pending", reason, len(j.pending))
		}
	})
	synctest.Test(t, func(t *testing.T) {
		registry := new(streams.Registry)
		j := &rejudge{resources: new(resources), streams: registry}
		tries := 0
		ctx, done := registry.Open(context.Background(), streams.Owner{Organization: "a"}, streams.Listen, time.Time{}, streams.Limits{}, func(context.Context) (bool, error) {
			tries++
			return true, errors.New("the store is away")
		})
		defer done()
		j.changed("a")
		synctest.Wait()
		if ctx.Err() != nil {
			t.Error("ended at the first failure")
		}
		changed := time.Now()
		<-ctx.Done()
		if reason, _ := streams.EndedFor(ctx); reason != streams.PolicyChanged || tries != rejudgeTries || time.Since(changed) > second {
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
		registry := new(streams.Registry)
		j := &rejudge{resources: new(resources), streams: registry}
		var open []context.Context
		for i := range 4_000 {
			organization, holds := "a", i%2 == 0
			if i%4 == 1 {
				organization = "b"
			}
			ctx, done := registry.Open(t.Context(), streams.Owner{Organization: organization}, streams.Listen, time.Time{}, streams.Limits{}, func(context.Context) (bool, error) {
				time.Sleep(time.Millisecond)
				return holds, nil
			})
			defer done()
			open = append(open, ctx)
		}
		changed := time.Now()
		j.changed("a")
		for i, ctx := range open {
			if i%4 != 3 {
				continue
			}
			<-ctx.Done()
			if reason, _ := streams.EndedFor(ctx); reason != streams.PolicyChanged {
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
