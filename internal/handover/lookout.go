package handover

import (
	"context"
	"net"
	"time"
)

// While a handler works, net/http reads one byte in the background to notice a client that leaves. Most requests are over
// before anything could come of it, and the read costs them a system call that finds nothing and deadlines to end it. Here
// it waits inside the process first: only requests that are still there when the listener looks have it done.

// lookAfter is the time between two looks: a client that leaves is noticed so much later at most.
const lookAfter = 50 * time.Millisecond

// background reports whether a Read with room for so many bytes is net/http's background read. Reads of HTTP/2's frames
// may want one byte, too. Any other that looked like it would be late, not wrong.
func (c *Conn) background(room int) bool {
	return room == 1 && c.phase == active && !c.sealed
}

// lookout waits until the listener looks, a read deadline is set, or the connection is closed. It is called with the lock
// held.
func (c *Conn) lookout() {
	if c.eager || c.gone != nil || !c.in.want.IsZero() {
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

// enlist has the listener look after c once. A connection with one request after the other is enlisted once for each look,
// not for each request. It is called with the connection's lock held.
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

// Context is to be the hook ConnContext of the server. [Attend] needs it.
func Context(ctx context.Context, c net.Conn) context.Context {
	if own, ok := c.(*Conn); ok {
		return context.WithValue(ctx, connection{}, own)
	}
	return ctx // over TLS there is no lookout
}

// Attend has it noticed at once, not with the next look, when the client of the request with that context leaves: for
// those who begin to wait, and must not go on for nobody.
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
