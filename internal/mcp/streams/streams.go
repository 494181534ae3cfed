// Package streams registers the running requests to upstreams. When a permission ends (a connection, a server, a token,
// the process), it ends the streams that were opened under it. It also bounds the number of open streams.
package streams

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// Reason says why the gateway ended a stream. On /sse it is the `reason` of the last `status_change` event.
type Reason string

// Reasons for which the gateway ends a stream.
const (
	TokenExpired   Reason = "token_expired"
	Revoked        Reason = "revoked" // the user's tokens are refused from now on
	PolicyChanged  Reason = "policy"  // the server's policies no longer grant the stream
	Disconnected   Reason = "disconnected"
	ServerDeleted  Reason = "server_deleted"
	Shutdown       Reason = "shutdown"
	Timeout        Reason = "timeout"
	LimitReached   Reason = "limit"
	UpstreamClosed Reason = "upstream_closed"
	Cancelled      Reason = "cancelled" // the client has cancelled the call
	Connected      Reason = "connected" // the account that a stream waited for is connected; the stream continues with the upstream
)

// Reasons for which a stream is refused when it opens.
const (
	UserFull Reason = "user_full" // the user has the maximum number open
	NodeFull Reason = "node_full" // the process has the maximum number open
	Untold   Reason = "untold"    // it is not known whether the caller still has the permission
)

// Ended is the cancellation cause of a stream that the gateway ended.
type Ended struct{ Reason Reason }

func (e *Ended) Error() string { return "stream ended: " + string(e.Reason) }

// Is makes it a context.Canceled, as package context demands of a context's Err.
func (e *Ended) Is(target error) bool { return target == context.Canceled }

// EndedFor returns the reason for which the gateway ended the stream with context ctx, and reports whether the gateway
// ended it.
func EndedFor(ctx context.Context) (Reason, bool) {
	if s, ok := ctx.Value(streamKey{}).(*stream); ok {
		// The stream's own reason comes first: the request may have ended since.
		if over := s.over.Load(); over != nil {
			if reason, ended := reasonOf(over.err); ended {
				return reason, true
			}
		}
	}
	if ctx.Err() == nil {
		return "", false
	}
	return reasonOf(context.Cause(ctx))
}

func reasonOf(err error) (Reason, bool) {
	var ended *Ended
	if errors.As(err, &ended) {
		return ended.Reason, true
	}
	return "", false
}

// Kind tells requests that wait for an answer from streams that stay open by nature.
type Kind int

// Kinds of streams.
const (
	Call   Kind = iota // a request that ends with its answer
	Listen             // an event stream, which ends only when one side ends it
)

// Owner names the owner of a stream.
type Owner struct{ Organization, User, Server string }

// covers reports whether s falls under o; an empty member of o matches everything.
func (o Owner) covers(s Owner) bool {
	return (o.Organization == "" || o.Organization == s.Organization) &&
		(o.User == "" || o.User == s.User) &&
		(o.Server == "" || o.Server == s.Server)
}

// user returns the user alone: user ids are unique only within the organization.
func (o Owner) user() Owner { return Owner{Organization: o.Organization, User: o.User} }

// Limits bounds the number of open Listen streams. A zero member means no bound. Limits come with each stream and not
// with the registry. So a reload changes them for streams that open later, and a configuration that fails changes
// nothing.
type Limits struct {
	PerUser int // of one user of an organization, over all servers
	Total   int
}

// Right reports whether a stream may continue. It may be called at any time until the stream is done, by any goroutine.
// An *Ended as its error says that the stream may not continue, for that reason.
type Right func(context.Context) (bool, error)

// Registry holds the open streams of the process. The zero value is ready.
type Registry struct {
	mu   sync.Mutex
	open list
	// unwatched holds calls that have just begun, see watchDelay; the others are in open.
	unwatched list
	scheduled bool // a timer will watch them
	// listening counts the Listen streams of each user, listeners those of all users.
	listening map[Owner]int
	listeners int
	// sweeping reports whether a timer will check for tokens that end soon.
	sweeping bool
	swept    time.Time // time of the last sweep
	// draining is set once the process is to end: streams that open afterwards end at once.
	draining bool
}

// stream is also the context that its opener gets.
type stream struct {
	lifetime
	owner Owner
	kind  Kind
	right Right // nil: it is never checked again
	// These fields belong to the registry, under its lock.
	expires time.Time // of the caller's token; zero: never
	timer   *time.Timer
	seen    bool // of an unwatched call: it was already there at the last check

	in            *list // nil: in no list
	before, after *stream
}

// Open registers a stream and returns its context, which is cancelled with an Ended as its cause when the stream's
// permission ends. expires is the end of the caller's token (zero: never). When a stream may not be opened (the limits
// are reached, the process is about to exit), its context is cancelled from the start. The caller must call done, which
// releases the stream's place. Judge calls right; it is nil for a stream that no change of rules ends.
func (r *Registry) Open(ctx context.Context, owner Owner, kind Kind, expires time.Time, limits Limits, right Right) (_ context.Context, done func()) {
	s := &stream{lifetime: lifetime{parent: ctx}, owner: owner, kind: kind, right: right}
	if refused := r.add(s, expires, limits); refused != "" {
		s.end(&Ended{refused})
		return s, func() {}
	}
	return s, func() { r.close(s) }
}

type streamKey struct{}

// Value implements context.Context.
func (s *stream) Value(key any) any {
	if key == (streamKey{}) {
		return s
	}
	return s.parent.Value(key)
}

// Cancel returns the function that ends the stream of ctx, with a cause of the caller's. It returns nil if ctx belongs
// to no stream.
func Cancel(ctx context.Context) context.CancelCauseFunc {
	if s, ok := ctx.Value(streamKey{}).(*stream); ok {
		return s.end
	}
	return nil
}

// add registers a stream, or returns the reason of a refusal.
func (r *Registry) add(s *stream, expires time.Time, limits Limits) (refused Reason) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s.kind == Listen {
		user := s.owner.user()
		switch {
		case r.draining:
			return Shutdown
		case limits.PerUser > 0 && r.listening[user] >= limits.PerUser:
			return UserFull
		case limits.Total > 0 && r.listeners >= limits.Total:
			return NodeFull
		}
		if r.listening == nil {
			r.listening = make(map[Owner]int)
		}
		r.listening[user]++
		r.listeners++
	}
	if s.kind == Listen {
		r.open.add(s)
		s.watch()
	} else {
		r.unwatched.add(s)
		r.scheduleWatch()
	}
	if !expires.IsZero() {
		r.expireAt(s, expires)
	}
	return ""
}

func (r *Registry) close(s *stream) {
	s.end(context.Canceled)
	r.mu.Lock()
	defer r.mu.Unlock()
	if s.timer != nil {
		s.timer.Stop()
	}
	if s.in == nil {
		return
	}
	s.remove()
	if s.kind != Listen {
		return
	}
	user := s.owner.user()
	if r.listening[user]--; r.listening[user] == 0 {
		delete(r.listening, user)
	}
	r.listeners--
}

// End ends every stream that owner covers and returns how many.
func (r *Registry) End(owner Owner, reason Reason) int {
	return r.endIf(reason, func(s *stream) bool { return owner.covers(s.owner) })
}

// EndCalls ends the calls of an owner for whose contexts match returns true, after a time in which they may still end
// by themselves. It returns their number. match must not use the registry.
func (r *Registry) EndCalls(owner Owner, reason Reason, match func(context.Context) bool, after time.Duration) int {
	ending := r.find(func(s *stream) bool { return s.kind == Call && s.owner == owner && match(s.parent) })
	for _, s := range ending {
		time.AfterFunc(after, func() { s.end(&Ended{reason}) })
	}
	return len(ending)
}

// Count returns how many open streams owner covers.
func (r *Registry) Count(owner Owner) int {
	return len(r.find(func(s *stream) bool { return owner.covers(s.owner) }))
}

// Drain ends every Listen stream and returns their number: the process is about to exit. Streams that open afterwards
// end at once; calls run until their answer. The ends are spread over spread, so that clients do not all come back in
// one moment: each stream ends at random(spread), a time from zero to below spread.
func (r *Registry) Drain(spread time.Duration, random func(below time.Duration) time.Duration) int {
	r.mu.Lock()
	r.draining = true
	r.mu.Unlock()
	ending := r.find(func(s *stream) bool { return s.kind == Listen })
	for _, s := range ending {
		if spread <= 0 {
			s.end(&Ended{Shutdown})
			continue
		}
		time.AfterFunc(random(spread), func() { s.end(&Ended{Shutdown}) })
	}
	return len(ending)
}

// Judge calls the Right of each stream that owner covers, and ends those that may not continue. It returns the number
// of rights that could not be determined; with strict, those streams are ended too. Rights are called by several
// goroutines.
func (r *Registry) Judge(ctx context.Context, owner Owner, reason Reason, strict bool) (untold int) {
	asked := r.find(func(s *stream) bool { return s.right != nil && owner.covers(s.owner) })
	var next, unknown atomic.Int64
	var judges sync.WaitGroup
	for range min(judgesAtOnce, len(asked)) {
		judges.Go(func() {
			for i := next.Add(1); i <= int64(len(asked)); i = next.Add(1) {
				if !asked[i-1].judge(ctx, reason, strict) {
					unknown.Add(1)
				}
			}
		})
	}
	judges.Wait()
	return int(unknown.Load())
}

// judgesAtOnce is the number of rights that are checked at a time: each may have to be read from the store, whose
// connections serve calls too.
const judgesAtOnce = 4

// judge ends the stream when its permission is over, and reports whether that could be determined.
func (s *stream) judge(ctx context.Context, reason Reason, strict bool) bool {
	holds, err := s.right(ctx)
	var ended *Ended
	switch {
	case errors.As(err, &ended):
		s.end(ended)
	case err != nil && !strict:
		return false
	case err != nil || !holds:
		s.end(&Ended{reason})
	}
	return true
}

func (r *Registry) endIf(reason Reason, match func(*stream) bool) int {
	ending := r.find(match)
	for _, s := range ending {
		s.end(&Ended{reason})
	}
	return len(ending)
}

func (r *Registry) find(match func(*stream) bool) (found []*stream) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.each(func(s *stream) {
		if match(s) {
			found = append(found, s)
		}
	})
	return found
}

// each goes through all streams. The caller holds r.mu.
func (r *Registry) each(f func(*stream)) {
	for _, l := range [...]*list{&r.open, &r.unwatched} {
		for s := l.first; s != nil; s = s.after {
			f(s)
		}
	}
}

// Len returns how many streams are open.
func (r *Registry) Len() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.open.n + r.unwatched.n
}
