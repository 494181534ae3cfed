package streams

import "time"

// soon is how long before its token's end a stream gets a timer of its own. Nearly every call is over long before: a timer
// for each would lie among the runtime's until its time, stopped or not. One timer for all looks twice as often whose end
// is near.
const soon = time.Minute

// expireAt ends a stream when its caller's token ends. r.mu is held.
func (r *Registry) expireAt(s *stream, expires time.Time) {
	s.expires = expires
	if r.arm(s) || r.sweeping {
		return
	}
	r.sweeping = true
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
	for s := range r.open {
		if !s.expires.IsZero() && !r.arm(s) {
			r.sweeping = true
		}
	}
	if r.sweeping {
		time.AfterFunc(soon/2, r.sweep)
	}
}
