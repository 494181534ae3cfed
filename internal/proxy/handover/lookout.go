package handover

import (
	"context"
	"net"
	"time"
)

// While a handler works, net/http reads one byte in the background to notice a client that leaves. Most requests end
// before the read can find anything. It costs them a system call that finds nothing, and deadlines to end it. Here
// the read first waits inside the process: it is done only for requests that still run when the listener checks them
// (a "lookout").

// lookAfter is the time between two such checks: a client that leaves is noticed at most so much later.
const lookAfter = 50 * time.Millisecond

// background reports whether a Read with room for so many bytes is net/http's background read. Reads of HTTP/2's
// frames may want one byte, too. Any other read that looked like it would be delayed, not broken.
func (c *Conn) background(room int) bool {
	return room == 1 && c.phase == active && !c.sealed
}

// lookout waits until the listener's check, a read deadline is set, or the connection is closed. It is called with
// the lock held.
func (c *Conn) lookout() {
	if c.eager || !c.in.want.IsZero() {
		return
	}
	c.lazy = true
	if !c.listed {
		c.listed = true
		c.listener.enlist(c)
	}
	for c.lazy {
		c.roused.Wait()
	}
}

// rouse ends a lookout. It is called with the lock held.
func (c *Conn) rouse() {
	c.lazy = false
	c.roused.Signal()
}

// enlist has the listener check c once. A connection with one request after the other is enlisted once for each
// check, not for each request. It is called with the connection's lock held.
func (l *Listener) enlist(c *Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lookouts = append(l.lookouts, c); len(l.lookouts) == 1 {
		time.AfterFunc(lookAfter, l.look)
	}
}

// look ends all lookouts.
func (l *Listener) look() {
	l.mu.Lock()
	all := l.lookouts
	l.lookouts = nil
	l.mu.Unlock()
	for _, c := range all {
		c.mu.Lock()
		c.listed = false
		if c.lazy {
			c.rouse()
		}
		c.mu.Unlock()
	}
}

// connection is the key of a request's *Conn in its context.
type connection struct{}

// Context must be the hook ConnContext of the server. [Attend] needs it.
func Context(ctx context.Context, c net.Conn) context.Context {
	if own, ok := c.(*Conn); ok {
		return context.WithValue(ctx, connection{}, own)
	}
	return ctx // over TLS there is no lookout
}

// Attend makes the server notice at once, not at the next check, when the client of the request with that context
// leaves. It is for handlers that begin to wait, and must not continue for a client that has left.
func Attend(ctx context.Context) {
	if c, ok := ctx.Value(connection{}).(*Conn); ok {
		c.attend()
	}
}

func (c *Conn) attend() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.eager = true
	if c.lazy {
		c.rouse()
	}
}
