package app

import "sync"

// lifetime closes a resource after it was retired and its last user is done, whichever comes later. Caddy cleans up a
// configuration while requests and streams of it still run.
type lifetime struct {
	mu      sync.Mutex
	pins    int
	retired bool
	closed  bool
	close   func()
}

// pin keeps the resource open until unpin is called. It fails once it is closed.
func (l *lifetime) pin() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return false
	}
	l.pins++
	return true
}

func (l *lifetime) unpin() {
	l.mu.Lock()
	l.pins--
	l.closeWhenUnused()
}

// hold is pin for packages that do not know lifetimes.
func (l *lifetime) hold() (release func(), ok bool) { return l.unpin, l.pin() }

// retire closes the resource once nobody uses it.
func (l *lifetime) retire() {
	l.mu.Lock()
	l.retired = true
	l.closeWhenUnused()
}

// closeWhenUnused closes an unused resource. It is called with the lock held and releases it.
func (l *lifetime) closeWhenUnused() {
	now := l.retired && l.pins == 0 && !l.closed
	l.closed = l.closed || now
	l.mu.Unlock()
	if now {
		l.close()
	}
}
