package route

import (
	"time"

	"github.com/durward-gateway/durward/internal/cache/expiring"
)

// RefusalKey is a model of a provider, as one organization's account sees it.
type RefusalKey struct {
	Key
	Model string
}

// Refusals remembers for a while which models refuse a feature that others accept. Safe for concurrent use.
type Refusals struct {
	now     func() time.Time
	refused expiring.Map[RefusalKey, struct{}]
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
	return &Refusals{now: now, refused: expiring.Map[RefusalKey, struct{}]{Most: mostRefusals}}
}

// Has reports whether the model is known to refuse the feature.
func (r *Refusals) Has(k RefusalKey) bool {
	_, ok := r.refused.Get(k, r.now())
	return ok
}

// Add records that the model refuses the feature. When there are very many models, the oldest record is dropped.
func (r *Refusals) Add(k RefusalKey) {
	now := r.now()
	r.refused.Set(k, struct{}{}, now.Add(refusedFor), now)
}
