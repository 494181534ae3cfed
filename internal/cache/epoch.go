package cache

import (
	"sync"
	"sync/atomic"
)

// Epochs counts the writes to each organization. The zero value is ready. Bump fits storage.Store's OnChange.
type Epochs struct {
	all  atomic.Uint64
	each sync.Map // organization id -> *atomic.Uint64
}

// Epoch is a moment in an organization's history. Equal epochs mean that nothing was written in between.
type Epoch struct{ all, own uint64 }

// Bump ends the present epoch of an organization, or of all of them when organization is "".
func (e *Epochs) Bump(organization string) {
	if organization == "" {
		e.all.Add(1)
		return
	}
	e.of(organization).Add(1)
}

// Current returns the organization's epoch.
func (e *Epochs) Current(organization string) Epoch {
	return Epoch{all: e.all.Load(), own: e.of(organization).Load()}
}

func (e *Epochs) of(organization string) *atomic.Uint64 {
	if n, ok := e.each.Load(organization); ok {
		return n.(*atomic.Uint64)
	}
	n, _ := e.each.LoadOrStore(organization, new(atomic.Uint64))
	return n.(*atomic.Uint64)
}
