package storage

import "time"

// ClockReading holds a reading of another machine's clock.
type ClockReading struct {
	// Theirs is the time of the other clock, Ours that of this machine when the answer had come.
	Theirs, Ours time.Time
	// Trip is the duration of the exchange. Precision is the unit in which the other clock is given.
	Trip, Precision time.Duration
}

// Ahead returns by how much this machine's clock is at least ahead of the other one, negative when it is behind. The
// other clock was read at some moment of the trip. A difference within this uncertainty counts as none, so that a
// slow answer proves nothing.
func (r ClockReading) Ahead() time.Duration {
	ahead := r.Ours.Add(-r.Trip / 2).Sub(r.Theirs)
	open := r.Trip/2 + r.Precision
	if ahead < 0 {
		return min(ahead+open, 0)
	}
	return max(ahead-open, 0)
}
