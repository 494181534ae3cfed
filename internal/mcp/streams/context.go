package streams

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// lifetime is a stream's context: its request's, until the stream ends. It is a type of its own because nearly every
// call has exactly one follower, the connection to its upstream. For that one, package context would need a map, a
// channel that nobody waits on, and another context in between.
type lifetime struct {
	parent context.Context

	over atomic.Pointer[ending] // nil while the lifetime lasts

	mu     sync.Mutex
	unfold func() bool   // ends the watch over parent; nil: there is none
	done   chan struct{} // made on first use
	first  follower      // nearly always the only one
	more   []follower
	last   int // number of the latest follower
}

// ending holds the cause of the end of a lifetime.
type ending struct{ err error }

// follower is called at the end.
type follower struct {
	number int
	tell   func() // nil: there is none
}

// watch makes the lifetime end when its parent does, from now on.
func (l *lifetime) watch() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.watchNow()
}

// watchNow does the same as watch. The caller holds l.mu.
func (l *lifetime) watchNow() {
	if l.over.Load() == nil && l.unfold == nil {
		l.unfold = context.AfterFunc(l.parent, l.leave)
	}
}

// leave ends the lifetime because its parent has.
func (l *lifetime) leave() { l.end(l.parent.Err()) }

// end ends the lifetime. cause is returned by its Err and, by the rules of context.Cause, as its cause. Only the first
// end counts.
func (l *lifetime) end(cause error) {
	if unfold := l.finish(cause); unfold != nil {
		unfold()
	}
}

func (l *lifetime) finish(err error) (unfold func() bool) {
	if err == nil {
		err = context.Canceled
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.over.CompareAndSwap(nil, endingOf(err)) {
		return nil
	}
	if l.done != nil {
		close(l.done)
	}
	if l.first.tell != nil {
		go l.first.tell()
	}
	for _, f := range l.more {
		go f.tell()
	}
	unfold = l.unfold
	l.first, l.more, l.unfold = follower{}, nil, nil
	return unfold
}

// canceled is the ending of nearly every lifetime.
var canceled = &ending{context.Canceled}

func endingOf(err error) *ending {
	if err == context.Canceled { //nolint:errorlint // this very value
		return canceled
	}
	return &ending{err}
}

// Deadline implements context.Context.
func (l *lifetime) Deadline() (time.Time, bool) { return l.parent.Deadline() }

// Err implements context.Context: an *Ended when the gateway ended the stream, which is a context.Canceled too.
func (l *lifetime) Err() error {
	if over := l.over.Load(); over != nil {
		return over.err
	}
	if l.parent.Err() == nil {
		return nil
	}
	l.leave() // the end of the parent was not noticed yet
	return l.over.Load().err
}

// Done implements context.Context. A caller that waits, as every derived context does, wants to know at once, so the
// parent is watched from now on.
func (l *lifetime) Done() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.watchNow()
	if l.done == nil {
		l.done = make(chan struct{})
		if l.over.Load() != nil {
			close(l.done)
		}
	}
	return l.done
}

// AfterFunc serves package context, which looks for this method on foreign contexts, and may be used directly by a
// follower. tell is called on a goroutine of its own when the lifetime is over, unless stop was called before; stop
// reports whether it came in time. AfterFunc alone does not make the end of an unwatched call known early, see
// watchDelay.
func (l *lifetime) AfterFunc(tell func()) (stop func() bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.over.Load() != nil {
		go tell()
		return func() bool { return false }
	}
	l.last++
	f := follower{l.last, tell}
	if l.first.tell == nil {
		l.first = f
	} else {
		l.more = append(l.more, f)
	}
	number := f.number
	return func() bool { return l.forget(number) }
}

func (l *lifetime) forget(number int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.first.number == number && l.first.tell != nil {
		l.first = follower{}
		return true
	}
	for i := range l.more {
		if l.more[i].number == number {
			last := len(l.more) - 1
			l.more[i] = l.more[last]
			l.more[last] = follower{}
			l.more = l.more[:last]
			return true
		}
	}
	return false
}
