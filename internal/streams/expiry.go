package streams

import "time"

// soon is how long before its token's end a stream gets a timer of its own. Nearly every call is over long before: a timer
// for each would lie among the runtime's until its time, stopped or not. One timer for all looks twice as often whose end
// is near.
const soon = time.Minute

// expireAt ends a stream when its caller's token ends. r.mu is held.
func (r *Registry) expireAt(s *stream, expires time.Time) {
	s.expires = expires
	if r.sweeping && expires.Sub(r.swept) > 2*soon {
		return // the next sweep, half of soon after the last one, is in time
	}
	if !r.arm(s) && !r.sweeping {
		r.sweepLater()
	}
}

func (r *Registry) sweepLater() {
	r.sweeping, r.swept = true, time.Now() //nolint:forbidigo // the timers run on no other clock
	time.AfterFunc(soon/2, r.sweep)
}

// arm gives a stream its timer when its end is near, and reports whether it has one. r.mu is held.
func (r *Registry) arm(s *stream) bool {
	if s.timer == nil {
		left := time.Until(s.expires) //nolint:forbidigo // the timer below runs on no other clock
		if left > soon {
			return false
		}
		s.timer = time.AfterFunc(left, func() { s.end(&Ended{TokenExpired}) })
	}
	return true
}

// sweep looks whose end is near, and comes back as long as there is anybody whose is not.
func (r *Registry) sweep() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sweeping = false
	later := false
	r.each(func(s *stream) { later = !s.expires.IsZero() && !r.arm(s) || later })
	if later {
		r.sweepLater()
	}
}
