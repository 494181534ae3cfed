package forward

import (
	"bytes"
	"errors"
	"io"
	"math"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// Buffers for answers. Event streams hold theirs while they wait, so they get small ones. Bodies that end soon get
// larger ones, because each read and write is a system call.
var (
	smallBuffers = sync.Pool{New: func() any { return new([2 << 10]byte) }}
	largeBuffers = sync.Pool{New: func() any { return new([16 << 10]byte) }}
)

// headerGrace is the time for which the headers of an event stream wait to share a write with the first event. An
// answer that comes at once saves a system call and a packet; a stream that starts silent is announced after this time.
const headerGrace = 2 * time.Millisecond

// Relay writes status and body to w, byte for byte; headers must already be set on w ([Response.CopyHeader]). It
// flushes every read of an event stream. limit is the cap in bytes of the whole body or, on an event stream, of each
// event. A known length above it is refused before anything is written.
//
// It returns nil at the upstream's end, else *[Error]. When the error is Committed the caller must abort the
// connection. Relay does not close the answer.
func (r *Response) Relay(w http.ResponseWriter, limit int64) error {
	if r.Kind == Events {
		return r.relayEvents(w, limit)
	}
	if r.ContentLength > limit {
		return &Error{Class: ErrTooLarge}
	}
	if r.ContentLength >= 0 && r.Status != http.StatusNoContent {
		r.length[0] = strconv.FormatInt(r.ContentLength, 10)
		w.Header()["Content-Length"] = r.length[:]
	}
	client := r.Client(w)
	defer client.Finish()
	if r.Kind == Empty {
		w.WriteHeader(r.Status)
		return nil
	}
	if r.whole != nil {
		w.WriteHeader(r.Status)
		if _, err := client.WriteLast(r.whole); err != nil {
			return &Error{Class: ErrClientGone, Committed: true, Cause: err}
		}
		return nil
	}
	if r.ContentLength >= 0 && r.ContentLength <= 2<<10 {
		pooled := smallBuffers.Get().(*[2 << 10]byte)
		defer smallBuffers.Put(pooled)
		return r.copyBody(client, pooled[:], limit)
	}
	pooled := largeBuffers.Get().(*[16 << 10]byte)
	defer largeBuffers.Put(pooled)
	return r.copyBody(client, pooled[:], limit)
}

// copyBody writes the status with the first bytes of a body, and the body in pieces of at most len(p) bytes.
func (r *Response) copyBody(client *Client, p []byte, limit int64) error {
	w := client.w
	var total int64
	committed := false
	for {
		n, err := r.Body.Read(p)
		if n > 0 {
			if total += int64(n); total > limit {
				return &Error{Class: ErrTooLarge, Committed: committed}
			}
			if !committed {
				w.WriteHeader(r.Status)
				committed = true
			}
			var werr error
			if total == r.ContentLength {
				_, werr = client.WriteLast(p[:n])
			} else {
				_, werr = client.Write(p[:n])
			}
			if werr != nil {
				return &Error{Class: ErrClientGone, Committed: true, Cause: werr}
			}
		}
		if err == io.EOF {
			if !committed {
				w.WriteHeader(r.Status)
			}
			return nil
		}
		if err != nil {
			if committed && total == r.ContentLength {
				return nil // complete: a permission that ended at this moment takes nothing back
			}
			if !committed {
				// The length was for a body that will not come; the caller writes another.
				w.Header().Del("Content-Length")
			}
			return commit(err, committed)
		}
	}
}

// lender is an event stream that lends its own buffer: at most so many bytes at a time, valid until the next call. A
// second buffer would be held for as long as its client does not read.
type lender interface {
	Lend(most int) ([]byte, error)
}

// maxLent is the number of bytes that a slow client must read within one write's limit.
const maxLent = 16 << 10

// pieces returns an event stream's bytes as they come. done must be called at the end.
func pieces(body io.Reader) (next func() ([]byte, error), done func()) {
	if lends, ok := body.(lender); ok {
		return func() ([]byte, error) { return lends.Lend(maxLent) }, func() {}
	}
	pooled := smallBuffers.Get().(*[2 << 10]byte)
	next = func() ([]byte, error) {
		n, err := body.Read(pooled[:])
		return pooled[:n], err
	}
	return next, func() { smallBuffers.Put(pooled) }
}

func (r *Response) relayEvents(w http.ResponseWriter, limit int64) error {
	next, done := pieces(r.Body)
	defer done()
	client := r.Client(w)
	defer client.Finish()
	out := announce(client, r)
	defer func() { _ = out.stop() }()
	size := eventSize{}
	for {
		p, err := next()
		if len(p) > 0 {
			if size.Add(p) > limit {
				return &Error{Class: ErrTooLarge, Committed: out.committed()}
			}
			// At a known end the server's own last flush is enough.
			if werr := out.write(p, err == nil, size.n == 0); werr != nil {
				return &Error{Class: ErrClientGone, Committed: true, Cause: werr}
			}
		}
		if err == io.EOF { //nolint:errorlint // as it is: an *Error may wrap one that is no end of the stream
			out.begin()
			return nil
		}
		if err != nil {
			if gone := out.gone(); gone != nil {
				return &Error{Class: ErrClientGone, Committed: true, Cause: gone}
			}
			return commit(err, out.committed())
		}
	}
}

func commit(err error, committed bool) error {
	var e *Error
	if !errors.As(err, &e) {
		e = &Error{Class: ErrUpstream, Cause: err} // from a reader that replaces the body
	}
	e.Committed = committed
	return e
}

// announcer writes an event stream's headers with its first bytes, or alone when those are late. It also writes a
// comment whenever the stream has been quiet for a while, because intermediaries close quiet connections. A timer does
// both, so that a waiting stream needs no goroutine for it. The timer's writes and the stream's exclude each other.
type announcer struct {
	mu      sync.Mutex
	w       *Client
	timer   *time.Timer
	status  int           // to be written; 0 once it is
	every   time.Duration // between comments; 0: none
	between bool          // the last write ended an event
	bare    bool          // the headers were written, and nothing else
	done    bool          // the timer's work is over
	alone   bool          // the stream's goroutine knows that done is set
	cut     func()        // releases the upstream after the client is gone
	err     error
}

func announce(w *Client, r *Response) *announcer {
	a := &announcer{w: w, status: r.Status, every: r.Heartbeat, between: true, cut: r.Close}
	hold := r.Hold
	if hold <= 0 {
		hold = headerGrace
	}
	a.timer = time.AfterFunc(math.MaxInt64, a.late) // late finds it set
	a.timer.Reset(hold)
	return a
}

func (a *announcer) writeStatus() {
	if a.status != 0 {
		a.w.w.WriteHeader(a.status)
		a.status = 0
	}
}

// begin writes the status if that has not happened yet.
func (a *announcer) begin() {
	_ = a.stop()
	a.writeStatus()
}

// committed ends the timer's work, and reports whether the status was written.
func (a *announcer) committed() bool {
	_ = a.stop()
	return a.status == 0
}

// gone ends the timer's work, and returns the error of its write to the client.
func (a *announcer) gone() error {
	return a.stop()
}

// late is called by the timer. It does not wait while another write runs: otherwise each client that does not read
// would cost one more goroutine (W01).
func (a *announcer) late() {
	if !a.mu.TryLock() {
		a.timer.Reset(max(a.every, headerGrace))
		return
	}
	defer a.mu.Unlock()
	if a.done {
		return
	}
	// A panic on a timer's goroutine would end the process.
	defer func() {
		if recover() != nil {
			a.err = errors.New("writing to the client panicked")
		}
		if a.err != nil {
			a.done = true
			a.cut()
		}
	}()
	switch rest := a.quiet() - time.Since(a.w.LastWrite()); { //nolint:forbidigo // as the timer, on the real clock
	case a.status != 0:
		a.writeStatus()
		a.err = a.w.Flush()
		a.bare = true
	case a.every > 0 && rest > 0:
		a.timer.Reset(rest)
		return
	case a.every > 0 && a.between:
		a.err = a.w.Send(comment)
		a.bare = false
	}
	if a.every > 0 && a.err == nil {
		a.timer.Reset(a.quiet())
	}
}

// firstSign is the time before the first comment of a stream that has begun with its headers only. Some proxies hold
// the headers until the first byte, and some clients give up after ten seconds without one.
const firstSign = 5 * time.Second

// quiet returns the length of a silence before there is a comment.
func (a *announcer) quiet() time.Duration {
	if a.bare {
		return min(a.every, firstSign)
	}
	return a.every
}

var comment = []byte(":\n\n")

func (a *announcer) write(p []byte, flush, between bool) error {
	if a.every > 0 {
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.err != nil {
			return a.err
		}
		a.between, a.bare = between, false
	} else if err := a.stop(); err != nil {
		return err
	}
	a.writeStatus()
	if flush {
		return a.w.Send(p)
	}
	_, err := a.w.Write(p)
	return err
}

// stop ends the timer's work. From then on only the stream's goroutine writes, without locking.
func (a *announcer) stop() error {
	if a.alone {
		return a.err
	}
	a.timer.Stop()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.done, a.alone = true, true
	return a.err
}

// eventSize counts the bytes of the current event of a passing stream. An event ends at an empty line; lines end at LF,
// CR or CRLF (WHATWG HTML, 9.2.5). The zero value is the start of a stream.
type eventSize struct {
	n      int64 // bytes since the last empty line
	inLine bool  // the current line has bytes
	afterR bool  // the last byte was CR: an LF now belongs to it
}

// Add counts p and returns the largest size that an event, finished or not, reached inside it. It searches every byte
// once for LF and once for CR, so a stream of only line ends costs no more than another.
func (s *eventSize) Add(p []byte) int64 {
	var largest int64
	for len(p) > 0 {
		if s.afterR && p[0] == '\n' {
			s.afterR = false
			p = p[1:]
			continue
		}
		line, rest, ended := bytes.Cut(p, lf)
		for {
			i := bytes.IndexByte(line, '\r')
			if i < 0 || (ended && i == len(line)-1) {
				break
			}
			largest = max(largest, s.line(i))
			line = line[i+1:]
			s.afterR = len(line) == 0
		}
		if ended {
			s.afterR = false
			if n := len(line); n > 0 && line[n-1] == '\r' {
				line = line[:n-1]
			}
			largest = max(largest, s.line(len(line)))
		} else if len(line) > 0 {
			s.afterR = false
			s.n += int64(len(line))
			s.inLine = true
		}
		p = rest
	}
	return max(largest, s.n)
}

var lf = []byte("\n")

// line ends the current line after n more bytes, and the event when that makes an empty line. It returns the event's
// size so far; the second byte of a CRLF is not counted.
func (s *eventSize) line(n int) int64 {
	s.n += int64(n) + 1
	size := s.n
	if n == 0 && !s.inLine {
		s.n = 0
	}
	s.inLine = false
	return size
}
