package streams

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// TestUnwatchedCallsEndWithTheirRequests checks that code that asks sees the end at once, and that followers are called
// before the call is watched. The gateway's own ends take effect at once.
func TestUnwatchedCallsEndWithTheirRequests(t *testing.T) {
	for name, age := range map[string]time.Duration{"new": 0, "unwatched": watchDelay, "watched": 3 * watchDelay} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var r Registry
				request, gone := context.WithCancel(t.Context())
				ctx, done := openOne(request, &r)
				defer done()
				asked, doneToo := openOne(request, &r)
				defer doneToo()
				revoked, doneThree := r.Open(request, Owner{User: "revoked"}, Call, time.Time{}, Limits{}, nil)
				defer doneThree()
				told := make(chan struct{}, 2)
				all := make(chan struct{})
				watch(ctx, func() { told <- struct{}{}; close(all) })
				watch(revoked, func() { told <- struct{}{} })
				waits, doneFour := openOne(request, &r)
				defer doneFour()
				child, stop := context.WithCancel(waits)
				defer stop()
				time.Sleep(age)
				r.End(Owner{User: "revoked"}, Revoked)
				synctest.Wait()
				if len(told) != 1 || revoked.Err() == nil {
					t.Error("the gateway ended it, and nobody was told")
				}
				start := time.Now()
				gone()
				if asked.Err() != context.Canceled {
					t.Errorf("who asks gets %v", asked.Err())
				}
				<-child.Done()
				if took := time.Since(start); took > 0 {
					t.Errorf("who waits is told after %v", took)
				}
				<-all
				synctest.Wait()
				if took := time.Since(start); took > 2*watchDelay || age > 2*watchDelay && took > 0 || len(told) != 2 {
					t.Errorf("told of the end after %v", took)
				}
			})
		})
	}
}

// TestNobodyWatchesNoCalls checks that no timer stays behind, and that a later call is watched like the first.
func TestNobodyWatchesNoCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r Registry
		for range 3 {
			request, gone := context.WithCancel(t.Context())
			ctx, done := openOne(request, &r)
			_, early := openOne(request, &r)
			early()
			early()
			time.Sleep(watchDelay / 2)
			told := make(chan struct{})
			watch(ctx, func() { close(told) })
			gone()
			<-told
			done()
			time.Sleep(2 * watchDelay)
			synctest.Wait()
			r.mu.Lock()
			if r.scheduled || r.open.n != 0 || r.unwatched.n != 0 || r.open.first != nil || r.unwatched.first != nil {
				t.Errorf("scheduled %v, %d watched and %d unwatched calls", r.scheduled, r.open.n, r.unwatched.n)
			}
			r.mu.Unlock()
		}
	})
}
