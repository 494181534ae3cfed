package handover

import (
	"context"
	"syscall"
	"time"

	"github.com/durward-gateway/durward/internal/hangup"
)

// Watch has gone called when the client of the request with that context leaves or its connection is closed, until
// stop is called. It is for streams: net/http's background read and its goroutine would wait as long as the stream
// lasts. With Watch that read returns with nothing, so that the request's context no longer ends by itself. gone may
// be called more than once, and must not wait. Where there is no such watch, for example over TLS, Watch returns
// false and does the same as [Attend].
func Watch(ctx context.Context, gone func()) (stop func(), ok bool) {
	c, ok := ctx.Value(connection{}).(*Conn)
	if !ok {
		return nil, false
	}
	if stop, ok = c.watch(gone); !ok {
		c.attend()
	}
	return stop, ok
}

func (c *Conn) watch(gone func()) (stop func(), ok bool) {
	socket, ok := c.Conn.(syscall.Conn)
	if !ok {
		return nil, false
	}
	unwatch, err := hangup.Watch(socket, gone)
	if err != nil {
		return nil, false
	}
	if !c.relieve(gone) {
		unwatch()
		return nil, false
	}
	return func() {
		c.mu.Lock()
		c.gone = nil
		c.mu.Unlock()
		unwatch()
	}, true
}

// relieve ends the background read of the request, whether it has begun or not. It reports whether there may be one
// that can be told from other reads.
func (c *Conn) relieve(gone func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.background(1) || !c.in.want.IsZero() {
		return false
	}
	c.gone = gone
	switch {
	case c.lazy:
		c.rouse()
	case c.reading:
		c.in.armed = time.Unix(1, 0) // read takes it for a deadline of the socket itself, not of the server
		_ = c.Conn.SetReadDeadline(c.in.armed)
	}
	return true
}
