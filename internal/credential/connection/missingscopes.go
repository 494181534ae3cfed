package connection

import (
	"time"

	"github.com/durward-gateway/durward/internal/cache/expiring"
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
	noted expiring.Map[storage.ConnectionKey, struct{}]
}

// due reports whether a permission may be noted now. If so, it counts the permission as noted.
func (w *wants) due(key storage.ConnectionKey, now time.Time) bool {
	return w.noted.Add(key, struct{}{}, now.Add(wantEvery), now)
}

func (w *wants) forget(key storage.ConnectionKey) { w.noted.Delete(key) }
