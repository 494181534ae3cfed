package streams

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"
)

func openOne(ctx context.Context, r *Registry) (context.Context, func()) {
	return r.Open(ctx, Owner{Organization: "a", User: "u", Server: "s"}, Call, time.Time{}, Limits{}, nil)
}

// TestContext checks the promises of package context for a stream's context, and for contexts derived from it.
func TestContext(t *testing.T) {
	type key struct{}
	for name, tt := range map[string]struct {
		end  func(r *Registry, request context.CancelCauseFunc, done func())
		want error
	}{
		"the gateway ends it": {func(r *Registry, _ context.CancelCauseFunc, _ func()) { r.End(Owner{User: "u"}, Revoked) }, &Ended{Revoked}},
		"the request ends":    {func(_ *Registry, request context.CancelCauseFunc, _ func()) { request(errors.New("gone")) }, nil},
		"its opener is done":  {func(_ *Registry, _ context.CancelCauseFunc, done func()) { done() }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var r Registry
			parent, cancel := context.WithCancelCause(context.WithValue(t.Context(), key{}, "v"))
			defer cancel(nil)
			ctx, done := openOne(parent, &r)
			defer done()
			child, stop := context.WithTimeout(ctx, time.Hour)
			defer stop()
			told := make(chan struct{})
			context.AfterFunc(ctx, func() { close(told) })
			forgotten := context.AfterFunc(ctx, func() { t.Error("called after stop") })
			if !forgotten() || forgotten() {
				t.Error("stop must report once that it came in time")
			}
			if ctx.Err() != nil || child.Err() != nil || ctx.Value(key{}) != "v" {
				t.Fatal("not open")
			}
			tt.end(&r, cancel, done)
			<-ctx.Done()
			<-child.Done()
			<-told
			if !errors.Is(ctx.Err(), context.Canceled) || child.Err() == nil {
				t.Errorf("ended with %v, the child with %v", ctx.Err(), child.Err())
			}
			reason, ended := EndedFor(ctx)
			var want *Ended
			if errors.As(tt.want, &want) != ended || ended && reason != want.Reason {
				t.Errorf("ended %v by the gateway: %q", ended, reason)
			}
			var cause *Ended
			if errors.As(context.Cause(child), &cause) != ended {
				t.Errorf("the child's cause is %v", context.Cause(child))
			}
			late := make(chan struct{})
			if context.AfterFunc(ctx, func() { close(late) })() {
				t.Error("stop came in time after the end")
			}
			<-late
			cancel(nil)
			if again, _ := EndedFor(ctx); again != reason {
				t.Errorf("the reason became %q", again)
			}
		})
	}
}

// TestFollowersAreToldOnce checks that each follower is called once, for any order of ends, stops and questions.
func TestFollowersAreToldOnce(t *testing.T) {
	for range 200 {
		var r Registry
		ctx, done := openOne(t.Context(), &r)
		var wait sync.WaitGroup
		for range 4 {
			wait.Add(1)
			stop := context.AfterFunc(ctx, wait.Done)
			wait.Go(func() {
				if stop() {
					wait.Done()
				}
			})
			wait.Go(func() { <-ctx.Done() })
			wait.Go(done)
			wait.Go(func() { r.End(Owner{User: "u"}, Revoked) })
		}
		wait.Wait()
	}
}
