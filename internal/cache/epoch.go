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
	// recent holds some entries of each, because every call asks several times.
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

// History reads one organization's epochs without a look-up each time.
type History struct{ all, own *atomic.Uint64 }

// Of returns the organization's history, which is valid as long as e is.
func (e *Epochs) Of(organization string) History { return History{&e.all, e.of(organization)} }

// Current returns the organization's epoch.
func (h History) Current() Epoch { return Epoch{all: h.all.Load(), own: h.own.Load()} }

func (e *Epochs) of(organization string) *atomic.Uint64 {
	place := &e.recent[maphash.String(places, organization)%recentEpochs]
	if known := place.Load(); known != nil && known.organization == organization {
		return known.own
	}
	organization = strings.Clone(organization) // it is kept for good, and may be part of a long text
	n, ok := e.each.Load(organization)
	if !ok {
		n, _ = e.each.LoadOrStore(organization, new(atomic.Uint64))
	}
	own := n.(*atomic.Uint64)
	place.Store(&recentEpoch{organization, own})
	return own
}

// recentEpoch holds an organization's epoch, for good.
type recentEpoch struct {
	organization string
	own          *atomic.Uint64
}

const recentEpochs = 1 << 8

// places decides the place of an organization in Epochs.recent. Nobody outside knows it, so nobody can aim at a place.
var places = maphash.MakeSeed()
