package route

import (
	"sync"
	"time"
)

// RefusalKey is a model of a provider, as one organization's account sees it.
type RefusalKey struct {
	Key
	Model string
}

// Refusals remembers for a while which models refuse a feature that others accept. Safe for concurrent use.
type Refusals struct {
	now func() time.Time

	mu    sync.Mutex
	until map[RefusalKey]time.Time
}

const (
	refusedFor   = time.Hour // after that it is tried again: servers are updated
	mostRefusals = 10_000
)

// NewRefusals makes the memory of a process. now is the clock; nil: time.Now.
func NewRefusals(now func() time.Time) *Refusals {
	if now == nil {
		now = time.Now
	}
	return &Refusals{now: now, until: make(map[RefusalKey]time.Time)}
}

// Has reports whether the model is known to refuse the feature.
func (r *Refusals) Has(k RefusalKey) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	until, ok := r.until[k]
	return ok && r.now().Before(until)
}

// Add records that the model refuses the feature. When there are very many models, expired ones are dropped and no
// others added.
func (r *Refusals) Add(k RefusalKey) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.now()
	if len(r.until) >= mostRefusals {
		for known, until := range r.until {
			if !now.Before(until) {
				delete(r.until, known)
			}
		}
	}
	if _, known := r.until[k]; known || len(r.until) < mostRefusals {
		r.until[k] = now.Add(refusedFor)
	}
}
