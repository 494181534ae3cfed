// Package storewatch asks a store whether it serves, once for all who want to know, and tells once, for all requests that are
// refused for it, that it does not, why, and when it does again.
package storewatch

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/durward-gateway/durward/storage"
)

const (
	// LookEvery is how often the store is asked at most, however many want to know: whoever may ask needs no token.
	LookEvery = time.Second
	// lookAnyway is how often it is asked although nobody wants to know.
	lookAnyway = 10 * time.Second
	// lookTimeout bounds a look.
	lookTimeout = 2 * time.Second
	// calmAfter is how long nothing may have failed for a failure to be over.
	calmAfter = 2 * LookEvery
	// reminder is how often it is told that the failure lasts.
	reminder = 30 * time.Second
)

// Told is what there is to say about a store.
type Told struct {
	// Err is what is wrong with it; nil: it serves again.
	Err error
	// Lasted is since when it has been so.
	Lasted time.Duration
	// Refused is how many requests it has failed since it was told last.
	Refused int
}

// Watch is what is known of one store.
type Watch struct {
	ping func(context.Context) error
	tell func(Told)
	now  func() time.Time
	stop context.CancelFunc // nil: it was not started
	wake chan struct{}      // holds one value when a failure has begun
	all  sync.WaitGroup

	mu      sync.Mutex
	asked   time.Time     // when the last look began; zero: there was none
	found   error         // by the last look that has ended
	looking chan struct{} // closed when the look under way has ended; nil: there is none
	failure *failure      // nil: the store serves
}

// failure is a time in which a store fails requests.
type failure struct {
	began, failed, told time.Time            // told: the last time, whatever the cause
	causes              map[string]time.Time // when each was told last
	refused             int                  // since it was told
}

// New makes the watch of a store that ping asks. tell is called in turns, and must not call the watch.
func New(ping func(context.Context) error, tell func(Told), now func() time.Time) *Watch {
	return &Watch{ping: ping, tell: tell, now: now, wake: make(chan struct{}, 1)}
}

// Start has the watch look by itself, until Close.
func (w *Watch) Start() {
	ctx, cancel := context.WithCancel(context.Background())
	w.stop = cancel
	w.all.Go(func() { w.run(ctx) })
}

// Close ends what Start began, and waits for the look under way.
func (w *Watch) Close() {
	if w.stop != nil {
		w.stop()
	}
	w.all.Wait()
}

// Look returns what is wrong with the store as it was found within the last second, or is now.
func (w *Watch) Look(ctx context.Context) error {
	w.mu.Lock()
	now := w.now()
	if w.looking == nil && (w.asked.IsZero() || now.Sub(w.asked) >= LookEvery) {
		w.asked, w.looking = now, make(chan struct{})
		w.all.Go(w.look) // whoever came first may go before it ends
	}
	looking, found := w.looking, w.found
	w.mu.Unlock()
	if looking == nil {
		return found
	}
	select {
	case <-looking:
	case <-ctx.Done():
		return &storage.UnavailableError{Reason: "it does not answer in time", Err: ctx.Err()}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.found
}

func (w *Watch) look() {
	ctx, cancel := context.WithTimeout(context.Background(), lookTimeout)
	defer cancel()
	err := w.ping(ctx)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.found = err
	close(w.looking)
	w.looking = nil
	if err != nil {
		w.failed(err)
	}
}

// Refused notes that a request was refused because of the store.
func (w *Watch) Refused(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.failed(err)
	w.failure.refused++
}

// failed is called with the lock held.
func (w *Watch) failed(err error) {
	now, cause := w.now(), causeOf(err)
	f := w.failure
	if f == nil {
		f = &failure{began: now, causes: make(map[string]time.Time)}
		w.failure = f
		select {
		case w.wake <- struct{}{}:
		default:
		}
	}
	f.failed = now
	// Requests that fail at the same time may have different words for it, again and again: reads are given up earlier than writes.
	said, known := f.causes[cause]
	if quiet := now.Sub(f.told); f.told.IsZero() || quiet >= LookEvery && (!known || now.Sub(said) >= reminder) {
		f.causes[cause], f.told = now, now
		w.tell(Told{Err: err, Lasted: now.Sub(f.began), Refused: f.refused})
		f.refused = 0
	}
}

// run looks now and then, and every second while the store fails.
func (w *Watch) run(ctx context.Context) {
	for {
		wait := lookAnyway
		if w.failing() {
			wait = LookEvery
		}
		select {
		case <-time.After(wait):
		case <-w.wake:
			continue
		case <-ctx.Done():
			return
		}
		if w.Look(ctx) == nil {
			w.calm()
		}
	}
}

func (w *Watch) failing() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.failure != nil
}

// calm ends the failure when nothing has failed for a while.
func (w *Watch) calm() {
	w.mu.Lock()
	defer w.mu.Unlock()
	f, now := w.failure, w.now()
	if f == nil || now.Sub(f.failed) < calmAfter {
		return
	}
	w.failure = nil
	w.tell(Told{Lasted: f.failed.Sub(f.began), Refused: f.refused})
}

// causeOf is the innermost reason that the store gives: those around it may count seconds.
func causeOf(err error) (cause string) {
	cause = storage.ErrUnavailable.Error()
	for known := new(storage.UnavailableError); errors.As(err, &known); err = known.Err {
		cause = known.Reason
	}
	return cause
}
