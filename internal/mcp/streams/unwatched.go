package streams

import "time"

// watchDelay is the interval at which calls begin to be watched. Most calls finish within this time, and watching a
// request's context is costly, so a call is watched only after one to two intervals. If the client of an unwatched call
// goes away, the call ends when it is first watched, or as soon as any code asks for its end or waits for it. The
// gateway itself ends calls at once.
const watchDelay = 20 * time.Millisecond

// scheduleWatch makes sure that unwatched calls will be watched. The caller holds r.mu.
func (r *Registry) scheduleWatch() {
	if !r.scheduled {
		r.scheduled = true
		time.AfterFunc(watchDelay, r.watchDue)
	}
}

// watchDue watches the requests of the calls that were there the last time, and is scheduled again while there are
// others.
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
