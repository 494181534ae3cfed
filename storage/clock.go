package storage

import "time"

// ClockReading is a clock elsewhere that was asked for its time.
type ClockReading struct {
	// Theirs is what it said, Ours what this machine's said when the answer was there.
	Theirs, Ours time.Time
	// Trip is how long asking took, Precision what the other clock is told in.
	Trip, Precision time.Duration
}

// Ahead is by how much this machine's clock is ahead of the other one at the least, negative when it is behind. The other
// clock was read at some moment of the trip: what that leaves open counts as none, so that a slow answer proves nothing.
func (r ClockReading) Ahead() time.Duration {
	ahead := r.Ours.Add(-r.Trip / 2).Sub(r.Theirs)
	open := r.Trip/2 + r.Precision
	if ahead < 0 {
		return min(ahead+open, 0)
	}
	return max(ahead-open, 0)
}
