package handover

import (
	"errors"
	"os"
	"time"
)

// deadline is one of a connection's two deadlines. It defers moving the socket's timer: it keeps an earlier deadline
// and re-arms if that fires too soon, since servers move deadlines several times a request and nearly always later.
type deadline struct {
	want  time.Time // the server's; zero: none
	armed time.Time // the socket's; zero: none
}

// late reports whether the socket would wait for longer than the server wants.
func (d *deadline) late() bool {
	return !d.want.IsZero() && (d.armed.IsZero() || d.want.Before(d.armed))
}

// early reports whether the server wants to wait for longer than the socket.
func (d *deadline) early() bool {
	return !d.armed.IsZero() && (d.want.IsZero() || d.armed.Before(d.want))
}

// spent reports whether the server wants a waiting call to return at once: it says so with a time long ago.
func (d *deadline) spent() bool { return !d.want.IsZero() && d.want.Unix() <= 1 }

// arm sets the wanted deadline on the socket, by calling set.
func (d *deadline) arm(set func(time.Time) error) error {
	if err := set(d.want); err != nil {
		return err
	}
	d.armed = d.want
	return nil
}

// SetReadDeadline implements net.Conn.
func (c *Conn) SetReadDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.deadlines++
	if c.passed || c.interrupted {
		return nil
	}
	c.in.want = t
	if c.lazy && !t.IsZero() {
		c.rouse()
	}
	if c.reading && c.in.late() {
		return c.in.arm(c.Conn.SetReadDeadline)
	}
	return nil
}

// read reads from the socket until the wanted deadline. It is called with the lock held, and releases it while it waits.
func (c *Conn) read(p []byte) (n int, err error) {
	for {
		if c.in.spent() {
			return 0, os.ErrDeadlineExceeded
		}
		if c.in.late() {
			if err := c.in.arm(c.Conn.SetReadDeadline); err != nil {
				return 0, err
			}
		}
		c.reading = true
		c.mu.Unlock()
		n, err = c.Conn.Read(p)
		c.mu.Lock()
		c.reading = false
		if err == nil || n > 0 || c.interrupted || !errors.Is(err, os.ErrDeadlineExceeded) || !c.in.early() {
			return n, err
		}
		if err := c.in.arm(c.Conn.SetReadDeadline); err != nil {
			return 0, err
		}
	}
}

// SetWriteDeadline implements net.Conn.
func (c *Conn) SetWriteDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.passed {
		return nil
	}
	c.out.want = t
	if c.out.late() || c.copying && c.out.early() {
		return c.out.arm(c.Conn.SetWriteDeadline)
	}
	return nil
}

// moreTime reports whether a write that the socket ended with err may continue.
func (c *Conn) moreTime(err error) bool {
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.passed && c.out.early() && c.out.arm(c.Conn.SetWriteDeadline) == nil
}

// copies begins and ends a ReadFrom, during which the socket has the wanted deadline.
func (c *Conn) copies(begin bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.copying = begin; begin && c.out.early() {
		return c.out.arm(c.Conn.SetWriteDeadline)
	}
	return nil
}

// SetDeadline implements net.Conn.
func (c *Conn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}
