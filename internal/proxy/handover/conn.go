package handover

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"time"
)

// Conn is a connection that its server can give up.
type Conn struct {
	net.Conn // not to be touched once it is passed on
	listener *Listener

	mu    sync.Mutex
	begun []byte // bytes that the previous server has read but not processed
	phase phase
	// sealed says that the meaning of the next bytes depends on the bytes before (TLS, HTTP/2).
	sealed bool
	// multiplexed says that there are many requests at a time (HTTP/2); its own protocol tells clients which of them
	// are lost.
	multiplexed bool
	opening     []byte // the first bytes that the server read, which show its protocol
	head        head
	answer      answer
	retiring    bool
	reading     bool // a Read is running
	waiting     bool // and it waits for the first byte of a request
	interrupted bool // that Read has been told to come back
	passed      bool
	deadlines   int  // that the server has set for reading since it was idle
	closing     bool // the server's Close is held back until it is decided whether the connection can be passed on
	told        bool // the protocol negotiated by TLS has been read

	in, out deadline // for reading and for writing
	copying bool     // a ReadFrom is running

	lazy   bool      // a background read waits in the lookout
	eager  bool      // no background read shall wait, in this request
	roused sync.Cond // of mu: lazy has ended
	listed bool      // the listener will look after it
}

// phase is the position of a connection between requests.
type phase int

const (
	fresh  phase = iota // no byte was read
	begins              // bytes were read, but the server has not got a request yet
	active              // the server works on a request
	idle                // the server has answered
	gone                // closed, or no longer the server's
)

// serverBuffer is the size of net/http's buffer for reading. An idle connection whose server offers this much room
// has nothing left in it.
const serverBuffer = 4096

// State must be called from the hook ConnState of the server.
func State(c net.Conn, state http.ConnState) {
	over, secure := c.(*tls.Conn)
	if secure {
		c = over.NetConn()
	}
	own, ok := c.(*Conn)
	if !ok {
		return
	}
	own.mu.Lock()
	defer own.mu.Unlock()
	switch state {
	case http.StateActive:
		if secure && !own.told {
			own.told = true
			own.multiplexed = over.ConnectionState().NegotiatedProtocol == "h2"
		}
		own.phase, own.answer, own.eager = active, answer{}, false
	case http.StateIdle:
		own.phase, own.deadlines = idle, 0
	case http.StateClosed, http.StateHijacked:
		own.phase = gone
		if own.closing && !own.passed {
			own.closing = false
			own.listener.forget(own)
			_ = own.Conn.Close()
		}
	case http.StateNew:
	}
}

// between reports whether a Read with room for so many bytes waits for the first byte of a request. From idle on,
// net/http sets one deadline, peeks, and sets further ones when it has found something. So with one deadline and all
// the room it has found nothing. Its state is still idle while it reads a request.
func (c *Conn) between(room int) bool {
	return c.phase == fresh || c.phase == idle && !c.sealed && c.deadlines == 1 && room == serverBuffer
}

// Read implements net.Conn. A connection that is passed on reads like one that the client has closed.
func (c *Conn) Read(p []byte) (int, error) {
	c.mu.Lock()
	if c.passed {
		c.mu.Unlock()
		return 0, io.EOF
	}
	c.waiting = c.between(len(p))
	if c.waiting && c.retiring {
		return 0, c.pass(c.begun)
	}
	if c.closing { // and cannot be passed on
		c.mu.Unlock()
		return 0, net.ErrClosed
	}
	if len(c.begun) > 0 && len(p) > 0 {
		n := copy(p, c.begun)
		c.begun = c.begun[n:]
		c.saw(p[:n])
		c.mu.Unlock()
		return n, nil
	}
	if c.background(len(p)) {
		c.lookout()
	}
	n, err := c.read(p)
	if c.waiting && c.retiring && (n > 0 || errors.Is(err, os.ErrDeadlineExceeded)) {
		return 0, c.pass(bytes.Clone(p[:n])) // the server will never know of these bytes
	}
	c.waiting = false
	if n > 0 {
		c.saw(p[:n])
	}
	c.mu.Unlock()
	return n, err
}

// saw notes that the server gets p. It makes lines malformed that the server must refuse.
func (c *Conn) saw(p []byte) {
	c.opening = append(c.opening, p[:min(len(p), len(preface)-len(c.opening))]...)
	if c.phase == fresh {
		c.multiplexed = len(p) < 3 || bytes.HasPrefix(p, []byte("PRI")) // too few bytes to tell count as well
		c.sealed = c.multiplexed || p[0] == recordOfHandshake
	}
	if c.phase == fresh || c.phase == idle {
		c.phase, c.head, c.answer = begins, head{}, answer{}
	}
	if c.phase == begins && c.opening[0] != recordOfHandshake && !c.opens(preface) {
		c.head.refuseFolds(p)
	}
	c.waiting = false
}

// The first bytes of connections that do not speak HTTP/1 in plain text.
const (
	recordOfHandshake = 0x16                 // RFC 8446 section 5.1
	preface           = "PRI * HTTP/2.0\r\n" // RFC 9113 section 3.4; methods may begin with PRI, too
)

// opens reports whether the connection began with a text.
func (c *Conn) opens(text string) bool { return string(c.opening) == text }

// pass gives the connection to the next listener. It is called with the lock held and releases it.
func (c *Conn) pass(begun []byte) error {
	c.passed, c.waiting = true, false
	c.mu.Unlock()
	c.listener.forget(c)
	_ = c.Conn.SetDeadline(time.Time{})
	c.listener.socket.give(arrival{raw: c.Conn, begun: begun})
	return io.EOF
}

// retire has the connection passed on as soon as no request is on it.
func (c *Conn) retire() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.retiring = true
	if c.waiting && !c.interrupted {
		c.interrupted = true
		_ = c.Conn.SetReadDeadline(time.Unix(1, 0))
	}
}

// pending reports whether the server must not be shut down now. It would drop a request that is on its way to it. And
// it would close the connection of an answered request without an announcement, while the next request is on its way.
// A stream, whose client waits for more of it, is not pending. Neither is an idle connection that waits for a
// request: it is passed on.
func (c *Conn) pending() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.passed || c.multiplexed {
		return false
	}
	switch c.phase {
	case begins:
		return true
	case active:
		return !c.answer.begun || !c.sealed && !c.answer.goesOn()
	case idle: // on the way to its Read, or a piece of the next request was read
		return !c.sealed && !c.waiting
	default:
		return false
	}
}

// veiled reports whether an answer is in progress whose end only the server knows.
func (c *Conn) veiled() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sealed && !c.multiplexed && c.phase == active && c.answer.begun
}

// kept reports whether the client keeps the connection for another request, and it cannot be passed on.
func (c *Conn) kept() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sealed && !c.multiplexed && c.phase == idle
}

// Write implements net.Conn.
func (c *Conn) Write(p []byte) (int, error) {
	if !c.writes(p) {
		return 0, net.ErrClosed
	}
	n, err := c.Conn.Write(p)
	for err != nil && c.moreTime(err) {
		var more int
		more, err = c.Conn.Write(p[n:])
		n += more
	}
	return n, err
}

// ReadFrom implements io.ReaderFrom: sockets take files without copying them.
func (c *Conn) ReadFrom(r io.Reader) (int64, error) {
	if !c.writes(nil) { // no chunks: those are net/http's own
		return 0, net.ErrClosed
	}
	// The bytes taken from r when a deadline passes are lost for a repetition: so the socket gets the wanted deadline
	// first.
	if err := c.copies(true); err != nil {
		return 0, err
	}
	n, err := io.Copy(c.Conn, r)
	_ = c.copies(false)
	return n, err
}

// writes notes that the server writes p, and reports whether it may.
func (c *Conn) writes(p []byte) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answer.writes(p)
	return !c.passed
}

// Close implements net.Conn. A server that shuts down closes idle connections. When they can still be passed on, Read
// does so, or State closes them after all.
func (c *Conn) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.passed {
		return nil
	}
	if c.retiring && !c.sealed && (c.waiting || c.phase == idle && !c.reading) && !c.closing {
		c.closing = true
		return nil
	}
	c.closing, c.phase = false, gone
	c.listener.forget(c)
	err := c.Conn.Close()
	if c.lazy {
		c.rouse()
	}
	return err
}

// CloseWrite closes the writing side of a socket that has one.
func (c *Conn) CloseWrite() error {
	half, ok := c.Conn.(interface{ CloseWrite() error })
	if !ok || !c.writes(nil) {
		return net.ErrClosed
	}
	return half.CloseWrite()
}
