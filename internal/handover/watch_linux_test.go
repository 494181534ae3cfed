package handover

import (
	"io"
	"net/http"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// awaitConn waits until a connection is as is says.
func (v *server) awaitConn(is func(*Conn) bool) {
	v.site.t.Helper()
	for late := time.Now().Add(patience); !v.listener.any(func(c *Conn) bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return is(c)
	}); runtime.Gosched() {
		if time.Now().After(late) {
			v.site.t.Fatal("no connection is as it should be")
		}
	}
}

// TestWatch checks that a watcher learns that the client leaves, or that the server closes the connection, however
// far net/http's background read has come. That read ends, nothing of the next request is lost, and the connection
// continues to serve.
func TestWatch(t *testing.T) {
	for name, background := range map[string]func(v *server, of *Conn){
		"whether it has begun or not": func(*server, *Conn) {},
		"in the lookout":              func(v *server, of *Conn) { v.awaitConn(func(c *Conn) bool { return c == of && c.lazy }) },
		"under way": func(v *server, of *Conn) {
			v.awaitConn(func(c *Conn) bool { return c == of && c.lazy })
			v.listener.look()
			v.awaitConn(func(c *Conn) bool { return c == of && c.reading && c.phase == active })
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			s.t = t
			watched, gone, leave := make(chan struct{}), make(chan struct{}, 8), make(chan struct{})
			var one *server
			var closed atomic.Bool
			var handlers sync.WaitGroup
			one = s.start("one", func(_ http.ResponseWriter, r *http.Request) bool {
				handlers.Add(1)
				defer handlers.Done()
				_, _ = io.Copy(io.Discard, r.Body)
				mine, _ := r.Context().Value(connection{}).(*Conn) // a former one may not be gone yet
				background(one, mine)
				stop, ok := Watch(r.Context(), func() { gone <- struct{}{} })
				if !ok {
					t.Error("not watched")
					return true
				}
				defer stop()
				one.awaitConn(func(c *Conn) bool { return c == mine && c.phase == active && !c.lazy && !c.reading })
				watched <- struct{}{}
				<-leave
				if r.Context().Err() != nil && !closed.Load() { // a read that is just coming back may find it closed
					t.Error("the request's context has ended")
				}
				return true
			})
			w := s.dial()
			for range 2 {
				w.send(request)
				<-watched
				w.send(request) // the next, meanwhile
				leave <- struct{}{}
				w.want("one")
				<-watched
				leave <- struct{}{}
				w.want("one")
				one.await(1)
			}
			if len(gone) > 0 {
				t.Error("the client has not left")
			}
			for _, end := range []func(){func() { _ = w.Close() }, func() { closed.Store(true); _ = one.http.Close() }} {
				w = s.dial()
				w.send(request)
				<-watched
				end()
				select {
				case <-gone:
				case <-time.After(patience):
					t.Error("nobody was told")
				}
				leave <- struct{}{}
			}
			handlers.Wait()
			<-one.done
		})
	}
}

// TestNotWatched checks that the background read of a connection that cannot be watched begins at once.
func TestNotWatched(t *testing.T) {
	c, _, _ := pair(t)
	State(c, http.StateActive)
	if _, ok := Watch(Context(t.Context(), c), func() {}); ok || !c.eager {
		t.Errorf("a pipe is watched: %v, attended: %v", ok, c.eager)
	}
	if _, ok := Watch(t.Context(), func() {}); ok {
		t.Error("a connection of others is watched")
	}
}
