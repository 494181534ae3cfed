package connection

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestConnectedAnewMeanwhile disconnects a user while the provider accepts no revocations. The user connects again
// before the provider is told again. Most providers end all tokens of a user and client with one of them, so the former
// tokens are left alone then.
func TestConnectedAnewMeanwhile(t *testing.T) {
	for name, c := range map[string]struct {
		independent, disconnected bool
		revoked                   int
		counted                   map[Event]int64
	}{
		"as most providers are": {counted: map[Event]int64{RevokeFailed: 1, NotRevoked: 1}},
		"independent tokens":    {independent: true, revoked: 2, counted: map[Event]int64{RevokeFailed: 1, Revoked: 1}},
		"and disconnected":      {disconnected: true, revoked: 4, counted: map[Event]int64{RevokeFailed: 2, Revoked: 2}},
	} {
		t.Run(name, func(t *testing.T) {
			b := setup(t)
			b.connect()
			b.independent(c.independent)
			b.outOfOrder(true)
			disconnect := func(tries int) {
				t.Helper()
				if err := b.Disconnect(t.Context(), b.key); err != nil {
					t.Fatal(err)
				}
				b.settle(func() bool { return b.tried() == tries })
			}
			disconnect(1)
			b.connect()
			if c.disconnected {
				disconnect(2)
			}
			b.outOfOrder(false)
			b.clock.advance(time.Minute)
			if err := b.node().RevokeDue(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := b.revoked(); len(got) != c.revoked || len(b.waiting()) != 0 {
				t.Errorf("revoked %v, %d wait", got, len(b.waiting()))
			}
			got := map[Event]int64{}
			for _, e := range []Event{RevokeFailed, Revoked, NotRevoked} {
				if n := b.countOf(e); n > 0 {
					got[e] = n
				}
			}
			if diff := cmp.Diff(c.counted, got); diff != "" {
				t.Error(diff)
			}
			if !c.disconnected {
				b.use(b.Broker)
			}
		})
	}
}

// countOf returns how often an event was counted.
func (b *bundle) countOf(e Event) int64 {
	n, ok := b.counts.Load(e)
	if !ok {
		return 0
	}
	return n.(*atomic.Int64).Load()
}

// tried returns the number of failed attempts of the waiting revocations.
func (b *bundle) tried() (n int) {
	b.t.Helper()
	for _, v := range b.waiting() {
		n += v.Attempts
	}
	return n
}
