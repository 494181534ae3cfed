package connection

import (
	"sync"
	"time"

	"github.com/durward-gateway/durward/storage"
)

// Limits of the missing permissions that an upstream can make us note. Without them, an upstream that misses another
// scope at each call would make each call write under the connection's lock, and would enlarge the request of every
// connect.
const (
	wantEvery = time.Minute
	maxWanted = 20
)

// wants remembers the connections for which a missing permission was just noted. The zero value is ready.
type wants struct {
	mu    sync.Mutex
	noted map[storage.ConnectionKey]time.Time
}

// due reports whether a permission may be noted now. If so, it counts the permission as noted.
func (w *wants) due(key storage.ConnectionKey, now time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if now.Sub(w.noted[key]) < wantEvery { // zero: long ago
		return false
	}
	if w.noted == nil {
		w.noted = map[storage.ConnectionKey]time.Time{}
	}
	if len(w.noted) >= tooMany {
		for k, last := range w.noted {
			if now.Sub(last) >= wantEvery {
				delete(w.noted, k)
			}
		}
	}
	w.noted[key] = now
	return true
}

func (w *wants) forget(key storage.ConnectionKey) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.noted, key)
}
