package streams

import "time"

// youth is how long a call's request is not watched, and twice that the longest: nearly every call is over before, and a
// watch over a request's context that nobody needs is a good part of what a call costs. A call whose client goes away in its
// youth ends when that is over, or as soon as anybody asks or waits for its end. What the gateway ends, it ends at once.
const youth = 20 * time.Millisecond

// grow begins to look after young calls. r.mu is held.
func (r *Registry) grow() {
	if !r.growing {
		r.growing = true
		time.AfterFunc(youth, r.watchGrown)
	}
}

// watchGrown watches the requests of the calls that were there the last time, and comes back as long as there are others.
func (r *Registry) watchGrown() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for s := r.young.first; s != nil; {
		next := s.after
		if s.seen {
			s.remove()
			r.open.add(s)
			s.watch()
		}
		s.seen = true
		s = next
	}
	r.growing = false
	if r.young.n > 0 {
		r.grow()
	}
}
