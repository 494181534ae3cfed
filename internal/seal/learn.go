package seal

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/durward-gateway/durward/storage"
)

const (
	// reloadAfter is the age at which the known data keys are read again in the background, when they are used. From
	// the age reloadBefore on, the user waits for that: the keyring was not used for a while.
	reloadAfter  = 20 * time.Second
	reloadBefore = 40 * time.Second
	// retryAfter is the time between tries while the store does not answer. waitFor bounds a user's wait for one
	// try.
	retryAfter = 5 * time.Second
	waitFor    = 250 * time.Millisecond
	// learnEvery is the time between searches for unknown keys: tokens come from clients, who can name any key.
	learnEvery   = 100 * time.Millisecond
	learnAhead   = 64 // how many keys can have been added unnoticed
	learnTimeout = 5 * time.Second
)

// loads records when the data keys were read.
type loads struct {
	turn   chan struct{} // held by the reader
	tried  atomic.Int64  // nanoseconds since 1970 when the last one began
	loaded atomic.Int64  // and when the last one that succeeded began
	count  atomic.Int64  // how many began
	failed error         // why the last one did not make all keys known; nil when it did. For the holder of the turn
}

func (l *loads) begin(at time.Time) {
	l.turn = make(chan struct{}, 1)
	l.tried.Store(at.UnixNano())
	l.loaded.Store(at.UnixNano())
}

func (l *loads) done() { <-l.turn }

// freshen reads the data keys again when they were not read for a while.
func (k *Keyring) freshen() {
	now := k.now().UnixNano()
	age := time.Duration(now - k.loads.loaded.Load())
	if age < reloadAfter || time.Duration(now-k.loads.tried.Load()) < retryAfter {
		return
	}
	select {
	case k.loads.turn <- struct{}{}:
	default:
		return // another goroutine reads them
	}
	if age < reloadBefore {
		go func() {
			defer k.loads.done()
			k.load(learnTimeout)
		}()
		return
	}
	defer k.loads.done()
	k.load(waitFor)
}

// learn searches the store for an unknown key: another node, or an operator, may have added it a moment ago. A search
// that began after the question answers it; a caller that asks too soon after one waits. learn returns nil when the
// key is known by now, ErrOpen when the store has no such key, and storage.ErrUnavailable when this cannot be found
// out: the sealed value may be intact.
func (k *Keyring) learn(version uint32) error {
	none := fmt.Errorf("%w: no data key %d", ErrOpen, version)
	newest := k.Newest()
	if version <= newest || version-newest > learnAhead {
		return none // keys are numbered one after the other and never removed
	}
	asked := k.loads.count.Load()
	k.loads.turn <- struct{}{}
	defer k.loads.done()
	if _, ok := k.known.Load().keys[version]; ok {
		return nil
	}
	// A search that was running when the question came may have read before the key was there. A search that began
	// later has not.
	if k.loads.count.Load() <= asked {
		if wait := learnEvery - time.Duration(k.now().UnixNano()-k.loads.tried.Load()); wait > 0 && wait <= learnEvery {
			<-time.After(wait)
		}
		k.load(learnTimeout)
	}
	_, ok := k.known.Load().keys[version]
	switch {
	case ok:
		return nil
	case k.loads.failed != nil:
		return &storage.UnavailableError{
			Reason: "a data key cannot be read", Err: fmt.Errorf("looking for data key %d: %w", version, k.loads.failed),
		}
	}
	return none
}

// load reads the data keys. When that fails, or the master key of one is not here, the known keys stay. The caller
// must hold the turn.
func (k *Keyring) load(timeout time.Duration) {
	began := k.now()
	k.loads.count.Add(1)
	k.loads.tried.Store(began.UnixNano())
	stored, err := k.read(timeout)
	if err == nil && len(stored) == 0 {
		err = errors.New("the store has lost them")
	}
	if k.loads.failed = err; err != nil {
		return
	}
	k.loads.loaded.Store(began.UnixNano())
	if len(stored) == len(k.known.Load().versions) {
		return // keys are only added
	}
	known, err := k.unwrapAll(stored)
	if k.loads.failed = err; err == nil {
		k.known.Store(known)
	}
}
