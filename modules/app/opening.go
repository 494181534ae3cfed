package app

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/durward-gateway/durward/internal/gateway"
	"github.com/durward-gateway/durward/modules/app/paths"
	"github.com/durward-gateway/durward/modules/app/readiness"
	"github.com/durward-gateway/durward/storage"
)

// A gateway starts although its store's database cannot be reached (Z-F01), reports that, and serves once the database
// answers. Until then there is no core that a request could pin: no data is known that could let anybody in, and
// App.Away answers everything.

// These are the times for opening.
const (
	// openPatience is the time for which Start waits for the first try: when the database can be reached, a wrong setting
	// still fails the start.
	openPatience = 6 * time.Second
	// firstRetryDelay is the wait after the first try, which doubles up to maxRetryDelay: the gateway is to serve within two
	// seconds of the database's return.
	firstRetryDelay = 250 * time.Millisecond
	maxRetryDelay   = time.Second
	// openReminder is the interval at which the log repeats why the store still cannot be reached.
	openReminder = 30 * time.Second
)

// opening is the work of a configuration whose store cannot be reached.
type opening struct {
	stop context.CancelFunc // nil: there is none
	done chan struct{}
	// reason is the public reason why opening is not done; nil: it is done, or was not begun.
	reason atomic.Pointer[string]
}

// away marks an error after which opening is tried again.
type away struct{ error }

func (e away) Unwrap() error { return e.error }

// turns lets only the latest configuration open the single resources of a store: that configuration decides where audit
// records go.
type turns struct {
	turn chan struct{} // held by the one that opens

	mu    sync.Mutex
	begun []*opening // in their order
}

func (t *turns) join(o *opening) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.begun = append(t.begun, o)
}

func (t *turns) leave(o *opening) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.begun = slices.DeleteFunc(t.begun, func(other *opening) bool { return other == o })
}

func (t *turns) latest(o *opening) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.begun[len(t.begun)-1] == o
}

// there reports whether the store has been usable since it was opened.
func (r *resources) there() bool { return r.remote == nil || r.connected.Load() }

// connect connects to the store. It may take as long as bringing the schema up to date takes; the store itself bounds
// everything else.
func (r *resources) connect(ctx context.Context) error {
	if r.there() {
		return nil
	}
	if err := r.remote.Connect(ctx); err != nil {
		return err
	}
	if !r.connected.Swap(true) {
		r.watch.Start() //nolint:contextcheck // it goes on when whoever connected has gone
	}
	return nil
}

// connectBeforeReplacing refuses a configuration whose store cannot be reached while the running one serves, and one
// whose database takes long to be brought up to date: while Caddy loads a configuration, nothing else of it can be
// stopped or changed.
func (a *App) connectBeforeReplacing() error {
	if a.resources.there() {
		return nil
	}
	running, ok := runningApp()
	if !ok {
		return nil
	}
	_, unpin, ok := running.pinOwn()
	if !ok {
		return nil
	}
	defer unpin()
	ctx, cancel := context.WithTimeout(context.Background(), openTimeout)
	defer cancel()
	err := a.resources.connect(ctx)
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("the store was not ready within %s; if its schema is being brought up to date, try again when that is done, or restart: %w", openTimeout, err)
	}
	return err
}

// open opens the resources for serving. While the database of the store cannot be reached, it goes on trying after it
// has returned.
func (a *App) open(core *Core) error {
	if core.resources.remote == nil {
		ctx, cancel := context.WithTimeout(context.Background(), openTimeout)
		defer cancel()
		return a.openOnce(ctx, core)
	}
	o := &a.opening
	ctx, cancel := context.WithCancel(context.Background())
	o.stop, o.done = cancel, make(chan struct{})
	o.say("it is being opened")
	core.resources.turns.join(o)
	first := make(chan error, 1)
	go a.openUntilDone(ctx, core, first)
	select {
	case err := <-first:
		return err
	case <-time.After(openPatience):
		return nil
	}
}

// end stops opening, and waits until none of its work runs.
func (o *opening) end(r *resources) {
	if o.stop == nil {
		return
	}
	o.stop()
	<-o.done
	r.turns.leave(o)
}

func (o *opening) say(reason string) { o.reason.Store(&reason) }

// openUntilDone tries until it succeeds, or the first try fails for good. first gets the result of the first try: nil
// when there will be others.
func (a *App) openUntilDone(ctx context.Context, core *Core, first chan<- error) {
	defer close(a.opening.done)
	var said string
	var saidAt, began time.Time
	wait := firstRetryDelay
	for {
		err := a.openInTurn(ctx, core)
		if err == nil {
			a.opening.reason.Store(nil)
			if !began.IsZero() {
				a.logger.Info("the store is there, and the gateway serves", zap.Duration("after", time.Since(began)))
			}
			first <- nil
			return
		}
		if ctx.Err() != nil {
			return
		}
		if began.IsZero() {
			began = time.Now()
			if !errors.As(err, new(away)) {
				first <- err
				return
			}
			first <- nil
			first = make(chan error, 1) // nobody waits for it any more
		}
		reason := readiness.Reason(err)
		a.opening.say(reason)
		if reason != said || time.Since(saidAt) >= openReminder {
			said, saidAt = reason, time.Now()
			a.logger.Error("the gateway waits for its store, and goes on trying", zap.String("reason", reason), zap.Error(err))
		}
		select {
		case <-time.After(wait/2 + rand.N(wait/2)): //nolint:gosec // it only spreads tries
		case <-ctx.Done():
			return
		}
		wait = min(2*wait, maxRetryDelay)
	}
}

// errNotLatest reports that a later configuration has begun to open the store. It becomes the latest again when that
// one fails.
var errNotLatest = away{&storage.UnavailableError{Reason: "another configuration is about to take its place"}}

func (a *App) openInTurn(ctx context.Context, core *Core) error {
	turns := &core.resources.turns
	select {
	case turns.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-turns.turn }()
	if !turns.latest(&a.opening) {
		return errNotLatest
	}
	return a.openOnce(ctx, core)
}

// openOnce does the work that is not done yet. Its error is of type away when the store is the cause.
func (a *App) openOnce(ctx context.Context, core *Core) error {
	if !core.started {
		if err := a.startServing(ctx, core); err != nil {
			return err
		}
		core.started = true
	}
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	return awaited(core.syncDirectory(ctx, a.Development()))
}

func (a *App) startServing(ctx context.Context, core *Core) error {
	if err := core.resources.connect(ctx); err != nil {
		return awaited(err)
	}
	ctx, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	if core.Broker == nil {
		if err := a.furnish(ctx, core); err != nil {
			return awaited(err)
		}
	}
	if err := core.Audit.Start(a.auditSinks()); err != nil { //nolint:contextcheck // what is opened outlives the configuration
		return err
	}
	core.Usage.Listen()
	core.Jobs.Start() //nolint:contextcheck // it runs until the configuration is cleaned up
	a.coreMu.Lock()
	defer a.coreMu.Unlock()
	a.serving = core
	return nil
}

func awaited(err error) error {
	if errors.Is(err, storage.ErrUnavailable) {
		return away{err}
	}
	return err
}

// Away answers a request while there is no core, because the configuration waits for its store or has ended.
func (a *App) Away(w http.ResponseWriter, r *http.Request) {
	asks := r.Method == http.MethodGet || r.Method == http.MethodHead
	if asks && r.URL.Path == paths.Health {
		gateway.WriteJSON(w, http.StatusOK, map[string]string{"status": "ok"})
		return
	}
	reason := a.opening.reason.Load()
	switch {
	case reason == nil:
		gateway.RefuseRestarting(w)
	case asks && r.URL.Path == paths.Ready:
		readiness.Refusal(&storage.UnavailableError{Reason: *reason}).Write(w)
	default:
		gateway.RefuseWaiting(w)
	}
}
