package http1

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"sync"
	"sync/atomic"
)

// exchange holds one request and its answer. It is also the answer's body, and both are one allocation.
type exchange struct {
	answer Answer
	fields [8]Field // of answer, when they fit

	client *Client
	host   *host
	conn   *conn // no longer this exchange's once state is not open
	ctx    context.Context
	stop   func() bool // ends the watch over ctx; nil: there is none
	upload *upload     // nil: the request left in one write

	isHead  bool
	heard   bool // a byte of an answer has come
	reuse   bool // nothing so far prevents another request on this connection
	framing framing
	left    int64 // of a body with a length
	chunks  chunks

	state   atomic.Uint32
	reading sync.Mutex // held by the reader
	err     error      // the error of all further reads
}

// The states of an exchange. The goroutine that moves it out of open owns the connection.
const (
	open   = iota
	over   // the answer was read to its end, or failed
	closed // Close was called
)

// begin writes the request and reads the answer's head. On an error the connection is closed; sent says whether a
// byte of the request may have reached the upstream.
func (x *exchange) begin(out *outgoing) (sent bool, err error) {
	c := x.conn
	x.stop = watch(x.ctx, c.abort)
	n, werr := c.rw.Write(*out.first)
	if werr != nil {
		if sent = n > 0 || c.tls != nil; !sent {
			c.abort()
			x.letGo()
			return false, x.unsent(werr)
		}
		x.reuse = false // an answer may be here nevertheless
	} else if len(out.rest) > 0 {
		x.upload = startUpload(c, out.rest)
	}
	out.release()
	// Other ready goroutines run first. More often than not the answer comes meanwhile, which saves a read that finds
	// nothing, and the way through the poller.
	runtime.Gosched()

	h := heads.Get().(*head)
	defer heads.Put(h)
	text, err := h.read(c, x.client.maxHead)
	x.heard = c.w > 0
	if err == nil {
		err = x.accept(h, text)
	}
	if err == nil {
		return true, nil
	}
	c.abort()
	if err = x.explain(err); werr != nil && !x.heard {
		err = x.unsent(werr)
	}
	x.letGo()
	return true, err
}

// watch has f called when ctx ends, until stop is called. stop is nil when ctx never ends. Some contexts report their
// end without the channel on which package context would wait.
func watch(ctx context.Context, f func()) (stop func() bool) {
	if tells, ok := ctx.(interface{ AfterFunc(func()) func() bool }); ok {
		return tells.AfterFunc(f)
	}
	if ctx.Done() == nil {
		return nil
	}
	return context.AfterFunc(ctx, f)
}

// unsent returns the reason why a request was not written whole.
func (x *exchange) unsent(err error) error {
	if x.ctx.Err() != nil {
		return context.Cause(x.ctx)
	}
	return fmt.Errorf("writing the request: %w", err)
}

// accept makes the answer from a head.
func (x *exchange) accept(h *head, text string) error {
	f, err := h.frame(h.list(text, x.fields[:]), x.isHead)
	if err != nil {
		return err
	}
	// An upstream that answers before it has the whole request may never read the rest. It would take the next
	// request for a part of this one, or this one's body for the next request.
	x.framing, x.reuse = f.by, x.reuse && f.keep && (x.upload == nil || x.upload.written(notice))
	x.answer = Answer{Status: h.status, Length: f.length, Fields: f.fields, Body: x}
	switch f.by {
	case noBody:
		x.err = io.EOF
		x.finish()
	case byLength:
		x.left = f.length
	}
	if x.conn != nil && x.conn.buffered() == 0 {
		x.conn.dropBuffer()
	}
	return nil
}

// ready reports whether the body can be read without waiting.
func (x *exchange) ready() bool {
	x.reading.Lock()
	defer x.reading.Unlock()
	return x.state.Load() != open || x.framing == byLength && int64(x.conn.buffered()) >= x.left
}

// Read implements io.Reader. It returns io.EOF with the last bytes where the end is known.
func (x *exchange) Read(p []byte) (int, error) {
	x.reading.Lock()
	defer x.reading.Unlock()
	if x.state.Load() == closed {
		return 0, http.ErrBodyReadAfterClose
	}
	if x.err != nil || len(p) == 0 {
		return 0, x.err
	}
	n, err := x.readBody(p)
	if err == nil {
		return n, nil
	}
	if errors.Is(err, io.EOF) {
		x.finish()
	} else {
		err = x.fail(err)
	}
	if x.state.Load() == closed {
		return 0, http.ErrBodyReadAfterClose
	}
	x.err = err
	return n, err
}

// readBody returns io.EOF at the answer's own end only.
func (x *exchange) readBody(p []byte) (int, error) {
	switch x.framing {
	case byChunks:
		return x.readChunks(p)
	case byLength:
		n, err := x.conn.read(p[:min(int64(len(p)), x.left)])
		if x.left -= int64(n); x.left == 0 {
			return n, io.EOF
		}
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return n, err
	}
	return x.conn.read(p)
}

// smallRead is the least room into which a chunked body is read directly; the framing alone could fill less.
const smallRead = 256

// readChunks reads into p and removes the framing in place, so that only p is held while it waits.
func (x *exchange) readChunks(p []byte) (int, error) {
	c := x.conn
	for {
		src, direct, rerr := c.buf[c.r:c.w], false, error(nil)
		if len(src) == 0 {
			if direct = len(p) >= smallRead; direct {
				var n int
				n, rerr = c.read(p)
				src = p[:n]
			} else {
				c.takeBuffer()
				rerr = c.fill()
				src = c.buf[c.r:c.w]
			}
		}
		written, read, err := x.chunks.decode(p, src)
		if !direct {
			c.consume(read)
		}
		if err != nil {
			return written, err
		}
		if x.chunks.state == ended {
			if direct && read < len(src) {
				x.reuse = false
			}
			return written, io.EOF
		}
		if errors.Is(rerr, io.EOF) {
			rerr = io.ErrUnexpectedEOF
		}
		if written > 0 || rerr != nil {
			return written, rerr
		}
		if direct && len(src) == 0 {
			return 0, nil
		}
	}
}

// Close implements io.Closer. It may be called at any time, and more than once.
func (x *exchange) Close() error {
	if x.state.Swap(closed) != open {
		return nil
	}
	x.conn.abort()
	x.reading.Lock() // a Read that was under way has returned by then
	defer x.reading.Unlock()
	x.settle(nil)
	return nil
}

// finish ends an exchange whose answer was read to its end: the connection is kept when nothing prevents that.
func (x *exchange) finish() {
	if !x.state.CompareAndSwap(open, over) {
		return
	}
	c := x.conn
	if x.upload != nil {
		x.upload.written(linger)
	}
	clean := x.reuse && !c.dirty && c.buffered() == 0 && c.quiet()
	// This check is the last one: up to here the context's end closes the connection, and once it has begun to, no
	// other request may use the connection.
	if clean && (x.stop == nil || x.stop()) {
		x.stop = nil
		x.settle(c)
		return
	}
	c.abort()
	x.settle(nil)
}

// fail ends an exchange whose answer broke off, and returns the reason.
func (x *exchange) fail(err error) error {
	if !x.state.CompareAndSwap(open, over) {
		return http.ErrBodyReadAfterClose
	}
	x.conn.abort()
	err = x.explain(err)
	x.settle(nil)
	return err
}

// settle releases everything: the connection when it is kept, else it was closed.
func (x *exchange) settle(kept *conn) {
	x.letGo()
	x.client.pool.leave(x.host, kept)
	x.conn = nil
}

// letGo stops everything that an exchange has running on its connection.
func (x *exchange) letGo() {
	if x.stop != nil {
		x.stop()
	}
	x.conn.dropBuffer()
	if x.upload != nil {
		<-x.upload.done
		x.upload = nil
	}
}

// explain returns the reason of an error on a connection that is closed by now.
func (x *exchange) explain(err error) error {
	if x.ctx.Err() != nil {
		return context.Cause(x.ctx)
	}
	if bad := (*ProtocolError)(nil); errors.As(err, &bad) {
		return err
	}
	return fmt.Errorf("reading the answer: %w", err)
}
