package broker

import (
	"sync"
	"time"
)

// alarm tells when something is to be done next. newAlarm makes one.
type alarm struct {
	mu    sync.Mutex
	at    time.Time     // zero: at no known time
	moved chan struct{} // at is earlier than before
}

func newAlarm() *alarm { return &alarm{moved: make(chan struct{}, 1)} }

// set has wait return at a time, at the latest.
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

// wait returns when the alarm goes off, at the latest after most. It reports false when end is closed before.
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

// next is the time of the alarm, late at the latest.
func (a *alarm) next(late time.Time) time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.at.IsZero() || late.Before(a.at) {
		return late
	}
	return a.at
}
