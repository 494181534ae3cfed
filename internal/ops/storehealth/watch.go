// Package storehealth checks whether a store works, once for all callers that need to know. It reports a failure once
// for all requests that are refused because of it, with its cause, and reports its end.
package storehealth

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/durward-gateway/durward/storage"
)

const (
	// LookEvery is the shortest time between two checks of the store, for any number of callers: a caller may ask
	// without a token.
	LookEvery = time.Second
	// lookAnyway is the interval of checks without a caller.
	lookAnyway = 10 * time.Second
	// lookTimeout bounds one check.
	lookTimeout = 2 * time.Second
	// calmAfter is the time without failed requests after which a failure is over.
	calmAfter = 2 * LookEvery
	// reminder is the interval of reports that a failure continues.
	reminder = 30 * time.Second
)

// Told is a report about a store.
type Told struct {
	// Err is the store's failure; nil: it works again.
	Err error
	// Lasted is the age of this state.
	Lasted time.Duration
	// Refused is the number of requests that failed because of the store since the last report.
	Refused int
}

// Watch holds the state of one store.
type Watch struct {
	ping func(context.Context) error
	tell func(Told)
	now  func() time.Time
	stop context.CancelFunc // nil: not started
	wake chan struct{}      // holds one value when a failure has begun
	all  sync.WaitGroup

	mu      sync.Mutex
	asked   time.Time     // start of the last check; zero: there was none
	found   error         // result of the last check that has ended
	looking chan struct{} // closed when the check under way has ended; nil: there is none
	failure *failure      // nil: the store works
}

// failure is a period in which a store fails requests.
type failure struct {
	began, failed, told time.Time            // told: the last report, of any cause
	causes              map[string]time.Time // time of the last report of each
	refused             int                  // since the last report
}

// New makes the watch of a store; ping checks the store. tell is called one call at a time, and must not call the
// watch.
func New(ping func(context.Context) error, tell func(Told), now func() time.Time) *Watch {
	return &Watch{ping: ping, tell: tell, now: now, wake: make(chan struct{}, 1)}
}

// Start makes the watch check by itself, until Close.
func (w *Watch) Start() {
	ctx, cancel := context.WithCancel(context.Background())
	w.stop = cancel
	w.all.Go(func() { w.run(ctx) })
}

// Close ends the work of Start, and waits for the check under way.
func (w *Watch) Close() {
	if w.stop != nil {
		w.stop()
	}
	w.all.Wait()
}

// Look returns the store's failure as found within the last second, or by a new check.
func (w *Watch) Look(ctx context.Context) error {
	w.mu.Lock()
	now := w.now()
	if w.looking == nil && (w.asked.IsZero() || now.Sub(w.asked) >= LookEvery) {
		w.asked, w.looking = now, make(chan struct{})
		w.all.Go(w.look) // the first caller may leave before it ends
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

// Refused records that a request was refused because of the store.
func (w *Watch) Refused(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.failed(err)
	w.failure.refused++
}

// failed records a failure. The caller holds the lock.
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
	// Requests that fail at the same time may name different causes, again and again: reads time out earlier than
	// writes.
	said, known := f.causes[cause]
	if quiet := now.Sub(f.told); f.told.IsZero() || quiet >= LookEvery && (!known || now.Sub(said) >= reminder) {
		f.causes[cause], f.told = now, now
		w.tell(Told{Err: err, Lasted: now.Sub(f.began), Refused: f.refused})
		f.refused = 0
	}
}

// run checks now and then, and every second while the store fails.
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

// causeOf returns the innermost error of the store: the errors around it may contain counts of seconds.
func causeOf(err error) (cause string) {
	cause = storage.ErrUnavailable.Error()
	for known := new(storage.UnavailableError); errors.As(err, &known); err = known.Err {
		cause = known.Reason
	}
	return cause
}
