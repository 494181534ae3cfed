package http1

import (
	"crypto/tls"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// bufferSize is the size of the buffer into which a connection reads headers. The connection holds the buffer only
// from then to the last byte in it.
const bufferSize = 4 << 10

var buffers = sync.Pool{New: func() any { return new([bufferSize]byte) }}

// conn is one connection. Only one exchange at a time uses it.
type conn struct {
	raw   net.Conn             // the dialled connection
	rw    net.Conn             // the connection for reading and writing: raw, or TLS over it
	tls   *tls.ConnectionState // nil: plain
	alive func() bool
	abort func() // closes at once; made once, to be handed to context.AfterFunc

	pooled *[bufferSize]byte // the array under buf; nil: none, or one that grew
	buf    []byte            // nil: none; r and w are 0 then
	r, w   int               // the unread bytes are buf[r:w]
	dirty  bool              // an error came with the last bytes
	used   bool              // it has served before

	// Of the pool; see there.
	host         *host
	since        time.Time
	older, newer *conn
}

func newConn(raw, rw net.Conn) *conn {
	c := &conn{raw: raw, rw: rw, alive: func() bool { return true }}
	c.abort = func() { _ = raw.Close() }
	if s, ok := raw.(syscall.Conn); ok {
		if sys, err := s.SyscallConn(); err == nil {
			c.alive = liveness(sys)
		}
	}
	return c
}

// close ends an idle connection properly: over TLS with a close_notify.
func (c *conn) close() { _ = c.rw.Close() }

func (c *conn) buffered() int { return c.w - c.r }

func (c *conn) takeBuffer() {
	if c.buf == nil {
		c.pooled = buffers.Get().(*[bufferSize]byte)
		c.buf = c.pooled[:]
	}
}

func (c *conn) dropBuffer() {
	if c.pooled != nil {
		buffers.Put(c.pooled)
	}
	c.pooled, c.buf, c.r, c.w = nil, nil, 0, 0
}

// fill reads more bytes behind the buffered ones, and makes room when there is none.
func (c *conn) fill() error {
	if c.w == len(c.buf) && c.r > 0 {
		c.w = copy(c.buf, c.buf[c.r:c.w])
		c.r = 0
	}
	if c.w == len(c.buf) {
		grown := make([]byte, 2*len(c.buf))
		n := copy(grown, c.buf)
		c.dropBuffer()
		c.buf, c.w = grown, n
	}
	n, err := c.rw.Read(c.buf[c.w:])
	c.w += n
	if n > 0 && err != nil {
		c.dirty, err = true, nil // the next read fails again
	}
	if n == 0 && err == nil {
		err = io.ErrNoProgress
	}
	return err
}

// read reads into p, buffered bytes first. An empty buffer is released, so that a waiting connection holds none.
func (c *conn) read(p []byte) (int, error) {
	if c.buffered() > 0 {
		n := copy(p, c.buf[c.r:c.w])
		c.consume(n)
		return n, nil
	}
	n, err := c.rw.Read(p)
	if err != nil {
		c.dirty = true
	}
	return n, err
}

func (c *conn) consume(n int) {
	if c.r += n; c.r == c.w {
		c.dropBuffer()
	}
}

var longAgo = time.Unix(1, 0)

// quiet reports whether no byte is left inside the TLS layer, which may have read more records than were asked for. A
// byte left there would begin the next answer. A read with a deadline in the past takes the present bytes and nothing
// from the network; TLS survives a time-out while reading.
func (c *conn) quiet() bool {
	if c.tls == nil {
		return true
	}
	if c.raw.SetReadDeadline(longAgo) != nil {
		return false
	}
	var one [1]byte
	n, err := c.rw.Read(one[:])
	return n == 0 && os.IsTimeout(err) && c.raw.SetReadDeadline(time.Time{}) == nil
}
