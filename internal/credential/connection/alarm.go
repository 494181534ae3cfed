package connection

import (
	"sync"
	"time"
)

// alarm signals the time of the next task. newAlarm makes one.
type alarm struct {
	mu    sync.Mutex
	at    time.Time     // zero: no time is set
	moved chan struct{} // signals that at is now earlier
}

func newAlarm() *alarm { return &alarm{moved: make(chan struct{}, 1)} }

// set makes wait return at the given time, or earlier.
func (a *alarm) set(at time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.at.IsZero() && !at.Before(a.at) {
		return
	}
	a.at = at
	select {
	case a.moved <- struct{}{}:
	default:
	}
}

// wait waits until the alarm goes off, but not longer than most. It returns false when end is closed before that.
func (a *alarm) wait(end <-chan struct{}, most time.Duration, now func() time.Time) bool {
	late := now().Add(most)
	for {
		timer := time.NewTimer(a.next(late).Sub(now()))
		select {
		case <-end:
			timer.Stop()
			return false
		case <-timer.C:
			a.mu.Lock()
			a.at = time.Time{}
			a.mu.Unlock()
			return true
		case <-a.moved:
			timer.Stop()
		}
	}
}

// next returns the time of the alarm, but not later than late.
func (a *alarm) next(late time.Time) time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.at.IsZero() || late.Before(a.at) {
		return late
	}
	return a.at
}
