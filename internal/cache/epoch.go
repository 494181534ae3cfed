package cache

import (
	"hash/maphash"
	"strings"
	"sync"
	"sync/atomic"
)

// Epochs counts the writes to each organization. The zero value is ready. Bump fits storage.Store's OnChange.
type Epochs struct {
	all  atomic.Uint64
	each sync.Map // organization id -> *atomic.Uint64
	// recent holds some of each: every call asks several times.
	recent [recentEpochs]atomic.Pointer[recentEpoch]
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

// History tells one organization's epochs apart without looking for it each time.
type History struct{ all, own *atomic.Uint64 }

// Of is the organization's history, good for as long as e is.
func (e *Epochs) Of(organization string) History { return History{&e.all, e.of(organization)} }

// Current returns the organization's epoch.
func (h History) Current() Epoch { return Epoch{all: h.all.Load(), own: h.own.Load()} }

func (e *Epochs) of(organization string) *atomic.Uint64 {
	place := &e.recent[maphash.String(places, organization)%recentEpochs]
	if known := place.Load(); known != nil && known.organization == organization {
		return known.own
	}
	organization = strings.Clone(organization) // it is kept for good, and may be a piece of a long text
	n, ok := e.each.Load(organization)
	if !ok {
		n, _ = e.each.LoadOrStore(organization, new(atomic.Uint64))
	}
	own := n.(*atomic.Uint64)
	place.Store(&recentEpoch{organization, own})
	return own
}

// recentEpoch is where an organization's epoch is kept, for good.
type recentEpoch struct {
	organization string
	own          *atomic.Uint64
}

const recentEpochs = 1 << 8

// places tells where in Epochs.recent an organization lies. Nobody outside knows it, so that nobody can crowd a place.
var places = maphash.MakeSeed()
