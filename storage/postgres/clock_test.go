package postgres

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/durward-gateway/durward/storage/postgres/pgtest"
)

// TestClock checks Z-C01: a store reports before it is connected by how much this machine's clock is ahead of the
// database's, and again when the clock is set.
func TestClock(t *testing.T) {
	t.Parallel()
	var offset atomic.Int64
	s, err := New(pgtest.Database(t), Options{Clock: func() time.Time { return time.Now().Add(time.Duration(offset.Load())) }})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	told := make(chan time.Duration, 1000)
	cancel := s.OnClock(func(ahead time.Duration) { told <- ahead })
	// Both clocks are one: the reported value is the offset, or less by the duration of the answer.
	near := func(ahead time.Duration) bool {
		want := time.Duration(offset.Load())
		return (ahead-want).Abs() < 10*time.Second && ahead.Abs() <= want.Abs()+time.Second
	}
	offset.Store(int64(-time.Hour))
	if err := s.Connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	if ahead := <-told; !near(ahead) {
		t.Errorf("an hour behind: %v", ahead)
	}
	for _, step := range []time.Duration{0, 87600 * time.Hour, -5 * time.Minute} {
		offset.Store(int64(step))
		for deadline := time.After(patient); ; {
			select {
			case ahead := <-told:
				if !near(ahead) {
					continue // read before the step
				}
			case <-deadline:
				t.Fatalf("nobody told of a step to %v", step)
			}
			break
		}
	}
	cancel()
	const mark = time.Duration(12345)
	s.drifts.Notify(mark)
	for len(told) > 0 {
		if <-told == mark {
			t.Error("who has left is still told")
		}
	}
}
