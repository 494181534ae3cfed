package app

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/durward-gateway/durward/internal/streams"
)

// TestRejudge: what was written while rights were asked for is looked at too, and a right that cannot be told for some
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
		time.Sleep(rejudgeTries * rejudgeWait)
		synctest.Wait()
		if reason, _ := streams.EndedFor(ctx); reason != streams.PolicyChanged || tries != rejudgeTries {
			t.Errorf("after %d tries: ended for %q", tries, reason)
		}
	})
}
