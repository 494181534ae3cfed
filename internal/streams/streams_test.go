package streams

import (
	"context"
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
			ctx, done := r.Open(context.Background(), alice, Call, time.Time{}, Limits{})
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
		ctx, done := r.Open(context.Background(), Owner{}, Listen, time.Now().Add(time.Minute), Limits{})
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
	call, doneCall := r.Open(context.Background(), Owner{}, Call, time.Time{}, Limits{})
	listen, doneListen := r.Open(context.Background(), Owner{}, Listen, time.Time{}, Limits{})
	if n := r.Drain(); n != 1 {
		t.Fatalf("drained %d, want 1", n)
	}
	if call.Err() != nil {
		t.Error("a call was cut")
	}
	if reason, _ := EndedFor(listen); reason != Shutdown {
		t.Errorf("reason = %q", reason)
	}
	late, doneLate := r.Open(context.Background(), Owner{}, Listen, time.Time{}, Limits{})
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
	ctx, done := r.Open(parent, Owner{}, Call, time.Time{}, Limits{})
	defer done()
	cancel() // the client went away
	if reason, ended := EndedFor(ctx); ended {
		t.Fatalf("a client's cancellation counted as ours: %q", reason)
	}
}
