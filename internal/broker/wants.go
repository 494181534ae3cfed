package broker

import (
	"sync"
	"time"

	"github.com/durward-gateway/durward/storage"
)

// Bounds of what an upstream has us note of missing permissions: one that misses another scope at each call would have each call
// write, under the connection's lock, and grow what every connect asks for.
const (
	wantEvery = time.Minute
	maxWanted = 20
)

// wants remembers for which connections a missing permission has just been noted. The zero value is ready.
type wants struct {
	mu    sync.Mutex
	noted map[storage.ConnectionKey]time.Time
}

// due reports whether a permission may be noted now, and counts it as noted.
func (w *wants) due(key storage.ConnectionKey, now time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if last, ok := w.noted[key]; ok && now.Sub(last) < wantEvery {
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
