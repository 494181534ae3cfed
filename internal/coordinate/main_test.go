package coordinate

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/durward-gateway/durward/internal/window"
	"github.com/durward-gateway/durward/storage"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var errDown = errors.New("the server is down")

// fake is shared counters in memory whose server fails as tests say. Its clock is the test's.
type fake struct {
	mu       sync.Mutex
	counters *window.Counters
	epoch    storage.CounterEpoch
	nodes    int // how many live; 0: those that say so
	seen     map[string]time.Time
	delay    time.Duration // until it answers
	down     bool
	asked    int
}

func newFake(nodes int) *fake {
	return &fake{counters: window.New(time.Now), epoch: 1, nodes: nodes, seen: make(map[string]time.Time)}
}

func (f *fake) be(down bool, delay time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.down, f.delay = down, delay
}

// lose has the server forget everything.
func (f *fake) lose() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.counters = window.New(time.Now)
	f.epoch++
}

// of is exchange when the counters are of an epoch.
func (f *fake) of(ctx context.Context, epoch storage.CounterEpoch) (*window.Counters, error) {
	counters, err := f.exchange(ctx)
	f.mu.Lock()
	defer f.mu.Unlock()
	if err == nil && epoch != f.epoch {
		return nil, storage.ErrCountersLost
	}
	return counters, err
}

// exchange waits for the server, and gives its counters.
func (f *fake) exchange(ctx context.Context) (*window.Counters, error) {
	f.mu.Lock()
	f.asked++
	counters, delay, down := f.counters, f.delay, f.down
	f.mu.Unlock()
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(delay):
	}
	if down {
		return nil, errDown
	}
	return counters, nil
}

func (f *fake) times() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.asked
}

func chargeIn(counters *window.Counters, charges []storage.CounterCharge, states []storage.CounterState, charge bool) (uint32, bool) {
	own, found := make([]window.Charge, len(charges)), make([]window.State, len(charges))
	for i, c := range charges {
		own[i] = window.Charge{Key: window.Key(c.Key), Amount: c.Amount, Limit: c.Limit}
	}
	var at window.Slot
	var ok bool
	if charge {
		at, ok = counters.Charge(own, found)
	} else {
		ok = counters.Look(own, found)
	}
	for i := range found {
		states[i] = storage.CounterState(found[i])
	}
	return uint32(at) + 1, ok
}

func (f *fake) Charge(ctx context.Context, epoch storage.CounterEpoch, charges []storage.CounterCharge, states []storage.CounterState) (uint32, bool, error) {
	counters, err := f.of(ctx, epoch)
	if err != nil {
		return 0, false, err
	}
	at, ok := chargeIn(counters, charges, states, true)
	return at, ok, nil
}

func (f *fake) Look(ctx context.Context, charges []storage.CounterCharge, states []storage.CounterState) (bool, error) {
	counters, err := f.exchange(ctx)
	if err != nil {
		return false, err
	}
	_, ok := chargeIn(counters, charges, states, false)
	return ok, nil
}

// Restore charges all of it now.
func (f *fake) Restore(ctx context.Context, epoch storage.CounterEpoch, spent []storage.CounterSpent) error {
	counters, err := f.of(ctx, epoch)
	for _, s := range spent {
		if err == nil {
			counters.Correct(0, []window.Correction{{Key: window.Key(s.Key), Delta: s.Amount}})
		}
	}
	return err
}

func (f *fake) Correct(ctx context.Context, epoch storage.CounterEpoch, corrections []storage.CounterCorrection) error {
	counters, err := f.of(ctx, epoch)
	for _, k := range corrections {
		if err == nil {
			counters.Correct(window.Slot(k.At)-1, []window.Correction{{Key: window.Key(k.Key), Delta: k.Delta}})
		}
	}
	return err
}

func (f *fake) Used(ctx context.Context, keys []storage.CounterKey, used []int64) error {
	counters, err := f.exchange(ctx)
	for i := range keys {
		if err == nil {
			used[i] = counters.Used(window.Key(keys[i]))
		}
	}
	return err
}

func (f *fake) Members(ctx context.Context, group [16]byte) (members []storage.CounterMember, err error) {
	counters, err := f.exchange(ctx)
	if err == nil {
		for _, m := range counters.Members(group) {
			members = append(members, storage.CounterMember{Member: m.Member, Used: m.Used})
		}
	}
	return members, err
}

func (f *fake) Beat(ctx context.Context, node string) (n int, epoch storage.CounterEpoch, err error) {
	if _, err := f.exchange(ctx); err != nil {
		return 0, 0, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.nodes > 0 {
		return f.nodes, f.epoch, nil
	}
	f.seen[node] = time.Now()
	for _, seen := range f.seen {
		if time.Since(seen) <= storage.NodeLife {
			n++
		}
	}
	return n, f.epoch, nil
}

func (f *fake) Close() error { return nil }

// pass waits on the test's clock.
func pass(d time.Duration) { <-time.After(d) }
