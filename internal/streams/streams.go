// Package streams keeps the register of requests under way to upstreams, so that a right that ends (a connection, a
// server, a token, the process) ends what was opened under it, and that nobody holds more of them open than they may.
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
	PolicyChanged  Reason = "policy"  // the policies of the server no longer grant the stream
	Disconnected   Reason = "disconnected"
	ServerDeleted  Reason = "server_deleted"
	Shutdown       Reason = "shutdown"
	Timeout        Reason = "timeout"
	LimitReached   Reason = "limit"
	UpstreamClosed Reason = "upstream_closed"
	Cancelled      Reason = "cancelled" // a call that its client has taken back
	Connected      Reason = "connected" // the account that a stream waited for; it goes on with the upstream
)

// Reasons for which a stream is refused when it opens.
const (
	UserFull Reason = "user_full" // the user has as many open as they may
	NodeFull Reason = "node_full" // the process has
	Untold   Reason = "untold"    // whether the caller still has the right to it cannot be told
)

// Ended is the cancellation cause of a stream that the gateway ended.
type Ended struct{ Reason Reason }

func (e *Ended) Error() string { return "stream ended: " + string(e.Reason) }

// Is makes it a context.Canceled, as the Err of a context has to be.
func (e *Ended) Is(target error) bool { return target == context.Canceled }

// EndedFor reports why the gateway ended the stream whose context ctx is, and whether it did.
func EndedFor(ctx context.Context) (Reason, bool) {
	if s, ok := ctx.Value(streamKey{}).(*stream); ok {
		// Its own word first: the request may have ended since.
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
	Listen             // an event stream that ends when somebody ends it
)

// Owner is whose stream it is.
type Owner struct{ Organization, User, Server string }

// covers reports whether s falls under o; an empty member of o matches everything.
func (o Owner) covers(s Owner) bool {
	return (o.Organization == "" || o.Organization == s.Organization) &&
		(o.User == "" || o.User == s.User) &&
		(o.Server == "" || o.Server == s.Server)
}

// user is a principal: user ids are the organization's own.
func (o Owner) user() Owner { return Owner{Organization: o.Organization, User: o.User} }

// Limits bound how many Listen streams are open at a time. A zero member is no bound. They come with each stream, and not
// with the registry: a reload changes them for what opens from then on, and a configuration that fails changes nothing.
type Limits struct {
	PerUser int // of an organization's user, over all servers
	Total   int
}

// Right asks whether a stream may go on. It may be called at any time until the stream is done, by any goroutine. An *Ended
// as its error says that it may not, for a reason of its own.
type Right func(context.Context) (bool, error)

// Registry holds the open streams of the process. The zero value is ready.
type Registry struct {
	mu   sync.Mutex
	open list
	// unwatched are calls that have just begun, see watchDelay; the others are in open.
	unwatched list
	scheduled bool // there is a timer that watches them
	// listening counts the Listen streams of each user, listeners those of all.
	listening map[Owner]int
	listeners int
	// sweeping: there is a timer that looks whose token ends soon.
	sweeping bool
	swept    time.Time // last
	// draining is set once the process is to end: streams that open afterwards end at once.
	draining bool
}

// stream is also the context that its opener gets.
type stream struct {
	lifetime
	owner Owner
	kind  Kind
	right Right // nil: nobody judges it again
	// Of the registry, under its lock.
	expires time.Time // of the caller's token; zero: never
	timer   *time.Timer
	seen    bool // of an unwatched call: it was there the last time

	in            *list // nil: in none
	before, after *stream
}

// Open registers a stream and returns its context, which is cancelled with an Ended as its cause when the stream's right
// ends; expires is when the caller's token does (zero: never). The context of a stream that may not be opened (the limits
// are reached, the process is about to exit) is cancelled from the start. The caller must call done, which gives the
// stream's place back. right is asked by Judge; nil for a stream that no change of rules ends.
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

// Cancel returns the function that ends the stream of ctx, with a cause of the caller's, or nil if ctx belongs to none.
func Cancel(ctx context.Context) context.CancelCauseFunc {
	if s, ok := ctx.Value(streamKey{}).(*stream); ok {
		return s.end
	}
	return nil
}

// add registers a stream, or says why not.
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

// EndCalls ends the calls of an owner whose contexts match holds of, once a time has passed that they may still take to end by
// themselves. It returns how many. match must not use the registry.
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

// Drain ends every Listen stream and returns how many: the process is about to exit. Those that open afterwards end at
// once; calls run to their answer. The ends are spread over spread, so that clients do not come back all in one moment:
// each stream ends at random(spread), a time from zero to below spread.
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

// Judge asks the right of each stream that owner covers, and ends those that have lost it. It returns how many rights
// could not be told; with strict, those streams are ended too. Rights are asked by several goroutines.
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

// judgesAtOnce is how many rights are asked for at a time: each may have to be read from the store, whose connections serve
// calls too.
const judgesAtOnce = 4

// judge ends the stream when its right is over, and reports whether that could be told.
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

// each goes through all streams. r.mu is held.
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
