package streams

import "time"

// watchDelay is the interval at which calls begin to be watched. Most calls finish within this time, and watching a
// request's context is costly; so a call is watched only after one to two intervals. One whose client goes away before ends
// when it is first watched, or as soon as anybody asks or waits for its end. What the gateway ends, it ends at once.
const watchDelay = 20 * time.Millisecond

// scheduleWatch sees to it that calls which are not watched yet will be. r.mu is held.
func (r *Registry) scheduleWatch() {
	if !r.scheduled {
		r.scheduled = true
		time.AfterFunc(watchDelay, r.watchDue)
	}
}

// watchDue watches the requests of the calls that were there the last time, and comes back as long as there are others.
func (r *Registry) watchDue() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for s := r.unwatched.first; s != nil; {
		next := s.after
		if s.seen {
			s.remove()
			r.open.add(s)
			s.watch()
		}
		s.seen = true
		s = next
	}
	r.scheduled = false
	if r.unwatched.n > 0 {
		r.scheduleWatch()
	}
}
