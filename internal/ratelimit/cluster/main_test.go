package cluster

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/durward-gateway/durward/internal/ratelimit/window"
	"github.com/durward-gateway/durward/storage"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var errDown = errors.New("the server is down")

// fake holds shared counters in memory. Its server fails as tests say. Its clock is the test's.
type fake struct {
	mu       sync.Mutex
	counters map[storage.CounterKey]map[int64]int64 // by seconds
	epoch    storage.CounterEpoch
	begun    time.Time // the epoch
	nodes    int       // number of living nodes; 0: those that beat
	seen     map[string]seen
	delay    time.Duration // until it answers
	down     bool
	asked    int
	refuse   int // number of Restores that will fail
}

type seen struct {
	at   time.Time
	told storage.CounterEpoch
}

func newFake(nodes int) *fake {
	f := &fake{nodes: nodes}
	f.lose()
	f.begun = f.begun.Add(-time.Hour)
	return f
}

func (f *fake) be(down bool, delay time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.down, f.delay = down, delay
}

// lose makes the server forget everything.
func (f *fake) lose() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.counters, f.seen = make(map[storage.CounterKey]map[int64]int64), make(map[string]seen)
	f.epoch, f.begun = f.epoch+1, time.Now()
}

// fail makes that many Restores fail.
func (f *fake) fail(times int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.refuse = times
}

// exchange waits for the server, and locks it.
func (f *fake) exchange(ctx context.Context) error {
	f.mu.Lock()
	f.asked++
	delay, down := f.delay, f.down
	f.mu.Unlock()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(delay):
	}
	if down {
		return errDown
	}
	f.mu.Lock()
	return nil
}

// of does the same as exchange, with the counters of an epoch.
func (f *fake) of(ctx context.Context, epoch storage.CounterEpoch) error {
	if err := f.exchange(ctx); err != nil {
		return err
	}
	if epoch != f.epoch {
		f.mu.Unlock()
		return storage.ErrCountersLost
	}
	return nil
}

func (f *fake) times() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.asked
}

func second() int64 { return time.Now().Unix() }

func (f *fake) used(key storage.CounterKey) (used int64) {
	for at, amount := range f.counters[key] {
		if second()-at <= 60 {
			used += amount
		}
	}
	return used
}

// holds returns the value of a counter.
func (f *fake) holds(key window.Key) int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.used(storage.CounterKey(key))
}

func (f *fake) add(key storage.CounterKey, at, amount int64) {
	if f.counters[key] == nil {
		f.counters[key] = make(map[int64]int64)
	}
	f.counters[key][at] = max(f.counters[key][at]+amount, 0)
}

func (f *fake) room(charges []storage.CounterCharge, states []storage.CounterState) bool {
	ok := true
	for i, c := range charges {
		states[i] = storage.CounterState{Used: f.used(c.Key)}
		if states[i].Used+max(c.Amount, 1) > c.Limit {
			states[i].Wait, ok = time.Second, false
		}
	}
	return ok
}

func (f *fake) Charge(ctx context.Context, epoch storage.CounterEpoch, charges []storage.CounterCharge, states []storage.CounterState) (uint32, bool, error) {
	if err := f.of(ctx, epoch); err != nil {
		return 0, false, err
	}
	defer f.mu.Unlock()
	ok := f.room(charges, states)
	for i, c := range charges {
		if ok {
			f.add(c.Key, second(), c.Amount)
			states[i].Used = f.used(c.Key)
		}
	}
	return uint32(second()), ok, nil
}

func (f *fake) Look(ctx context.Context, _ storage.CounterEpoch, charges []storage.CounterCharge, states []storage.CounterState) (bool, error) {
	if err := f.exchange(ctx); err != nil {
		return false, err
	}
	defer f.mu.Unlock()
	return f.room(charges, states), nil
}

func (f *fake) Correct(ctx context.Context, epoch storage.CounterEpoch, corrections []storage.CounterCorrection) error {
	if err := f.of(ctx, epoch); err != nil {
		return err
	}
	defer f.mu.Unlock()
	for _, k := range corrections {
		at := int64(k.At)
		if k.Delta > 0 {
			at = second()
		}
		f.add(k.Key, at, k.Delta)
	}
	return nil
}

func (f *fake) Restore(ctx context.Context, epoch storage.CounterEpoch, spent []storage.CounterSpent) error {
	if err := f.of(ctx, epoch); err != nil {
		return err
	}
	defer f.mu.Unlock()
	if f.refuse > 0 {
		f.refuse--
		return errDown
	}
	for _, s := range spent {
		f.add(s.Key, second()-int64(s.Age), s.Amount)
	}
	return nil
}

func (f *fake) Used(ctx context.Context, _ storage.CounterEpoch, keys []storage.CounterKey, used []int64) error {
	if err := f.exchange(ctx); err != nil {
		return err
	}
	defer f.mu.Unlock()
	for i := range keys {
		used[i] = f.used(keys[i])
	}
	return nil
}

func (f *fake) Members(ctx context.Context, _ storage.CounterEpoch, group [16]byte) (members []storage.CounterMember, err error) {
	if err := f.exchange(ctx); err != nil {
		return nil, err
	}
	defer f.mu.Unlock()
	for key := range f.counters {
		if used := f.used(key); [16]byte(key[:16]) == group && used > 0 {
			members = append(members, storage.CounterMember{Member: [16]byte(key[16:]), Used: used})
		}
	}
	return members, nil
}

func (f *fake) Beat(ctx context.Context, node string, known storage.CounterEpoch) (beat storage.CounterBeat, err error) {
	if err := f.exchange(ctx); err != nil {
		return beat, err
	}
	defer f.mu.Unlock()
	beat.Epoch, beat.Age = f.epoch, time.Since(f.begun)
	f.seen[node] = seen{time.Now(), known}
	for _, seen := range f.seen {
		if time.Since(seen.at) <= storage.NodeLife {
			beat.Nodes++
			if seen.told == f.epoch || seen.told == storage.AnyEpoch {
				beat.Told++
			}
		}
	}
	if f.nodes > 0 {
		beat.Told += f.nodes - beat.Nodes
		beat.Nodes = f.nodes
	}
	return beat, nil
}

func (f *fake) Close() error { return nil }

// pass waits on the test's clock.
func pass(d time.Duration) { <-time.After(d) }
