package session

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func TestSpent(t *testing.T) {
	now := time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)
	s := newSpent()
	if !s.take("a", now.Add(time.Minute), now) || s.take("a", now.Add(time.Minute), now) || !s.take("b", now.Add(time.Minute), now) {
		t.Error("a state is good twice, or not once")
	}
	if now = now.Add(time.Minute); !s.take("c", now.Add(time.Minute), now) || s.states.Len() != 1 {
		t.Errorf("%d states are kept beyond their time", s.states.Len())
	}
	for i := range 2 * maxSpent {
		s.take(fmt.Sprint(i), now.Add(time.Minute), now)
	}
	if s.states.Len() != maxSpent {
		t.Errorf("%d states are kept", s.states.Len())
	}
}

func TestSpentByManyAtOnce(t *testing.T) {
	s := newSpent()
	var all sync.WaitGroup
	var taken atomic.Int64
	for range 1000 {
		all.Go(func() {
			if s.take("a", time.Now().Add(time.Minute), time.Now()) {
				taken.Add(1)
			}
		})
	}
	all.Wait()
	if n := taken.Load(); n != 1 {
		t.Errorf("%d took it", n)
	}
}
