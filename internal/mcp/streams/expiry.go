package streams

import "time"

// soon is the time before its token's end at which a stream gets a timer of its own. Nearly every call is over long
// before. A timer for each call would stay in the runtime's list until its time, stopped or not. One common timer
// checks twice in this time which streams are near their end.
const soon = time.Minute

// expireAt ends a stream when its caller's token ends. The caller holds r.mu.
func (r *Registry) expireAt(s *stream, expires time.Time) {
	s.expires = expires
	if r.sweeping && expires.Sub(r.swept) > 2*soon {
		return // the next sweep comes half of soon after the last one, which is in time
	}
	if !r.arm(s) && !r.sweeping {
		r.sweepLater()
	}
}

func (r *Registry) sweepLater() {
	r.sweeping, r.swept = true, time.Now() //nolint:forbidigo // the timers run on no other clock
	time.AfterFunc(soon/2, r.sweep)
}

// arm gives a stream its timer when its end is near, and reports whether it has one. The caller holds r.mu.
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

// sweep arms the streams whose end is near, and is scheduled again while there are others.
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
