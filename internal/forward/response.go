package forward

import (
	"context"
	"errors"
	"io"
	"net/http"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/durward-gateway/durward/internal/http1"
)

// Kind is what an answer's body is.
type Kind uint8

// The kinds of an answer's body.
const (
	Empty  Kind = iota // no body
	JSON               // application/json
	Events             // text/event-stream
	Other              // anything else, a body without a type included
)

// Response is an upstream's answer. Its headers are seen only through the methods, so that what is not on the
// allow-list stays behind.
type Response struct {
	Status        int
	Kind          Kind
	ContentLength int64     // -1 when the upstream did not say
	Body          io.Reader // fails with *[Error]: [ErrIdle], [ErrClientGone], [ErrUpstream]
	// Hold is how long Relay keeps the headers of an event stream back while no byte of it has come, so that the answer to
	// a stream that fails at its beginning can still be another. 0: they are committed at once.
	Hold time.Duration
	// Heartbeat is after how long a silence Relay writes a comment on an event stream; 0: it never does.
	Heartbeat time.Duration
	fields    []http1.Field // the answer's headers
	passed    [4]string     // the values that CopyHeader gives away, when they fit
	length    [1]string     // that of Content-Length
	rules     *Rules
	body      body
	whole     []byte // what Relay writes in place of Body; nil: nothing
	writeIdle time.Duration
	http1     bool // that is what the client speaks
}

// take makes r of an answer that may be passed on.
func (r *Response) take(ctx context.Context, answer *http1.Answer, idle time.Duration) *Error {
	switch s := answer.Status; {
	case s < 200 || s > 599 || s == http.StatusPartialContent:
		return upstreamError("status " + strconv.Itoa(s) + " was not asked for")
	case s >= 300 && s < 400:
		// Never followed: the credential is meant for this place only.
		return upstreamError("status " + strconv.Itoa(s) + " is a redirect")
	}
	if bad := checkAnswerFields(answer.Fields, r.rules); bad != nil {
		return bad
	}
	r.body.ctx, r.body.answer, r.body.idle = ctx, answer, idle
	r.Status, r.ContentLength, r.Body, r.fields = answer.Status, answer.Length, &r.body, answer.Fields
	r.Kind = r.kind()
	return r.decode()
}

func (r *Response) kind() Kind {
	if r.ContentLength == 0 {
		return Empty
	}
	media := r.Header("Content-Type")
	if i := strings.IndexByte(media, ';'); i >= 0 {
		media = media[:i]
	}
	switch media = strings.TrimSpace(media); {
	case strings.EqualFold(media, "application/json"):
		return JSON
	case strings.EqualFold(media, "text/event-stream"):
		return Events
	}
	return Other
}

// Header gives a header of the upstream's that something is decided by, its first value. It does not pass for that.
func (r *Response) Header(name string) string {
	for i := range r.fields {
		if r.fields[i].Name == name {
			return r.fields[i].Value
		}
	}
	return ""
}

// SessionID is the upstream's own session id, to be sealed before a client sees it; "" when it gave none.
func (r *Response) SessionID() string { return r.Header(sessionHeader) }

// Challenges are the upstream's WWW-Authenticate values: for the broker, never for the client.
func (r *Response) Challenges() []string {
	var all []string
	for _, f := range r.fields {
		if f.Name == "Www-Authenticate" {
			all = append(all, f.Value)
		}
	}
	return all
}

// CopyHeader sets on dst the headers that pass, and on an event stream those that keep intermediaries from holding it
// back. Content-Length is set by [Response.Relay] alone, because a caller may write another body.
func (r *Response) CopyHeader(dst http.Header) {
	spare := r.passed[:]
	for i, f := range r.fields {
		rule := r.rules.response(f.Name)
		switch {
		case rule == never:
		case rule == many && given(r.fields[:i], f.Name):
			dst[f.Name] = append(dst[f.Name], f.Value)
		case len(spare) == 0:
			dst[f.Name] = []string{f.Value}
		default:
			spare[0] = f.Value
			dst[f.Name], spare = spare[:1:1], spare[1:]
		}
	}
	if r.Kind == Events {
		dst["Cache-Control"] = noTransform
		dst["X-Accel-Buffering"] = noBuffering
	}
}

// ReadAll reads the body whole, at most limit bytes. Errors are *[Error].
func (r *Response) ReadAll(limit int64) ([]byte, error) {
	if r.whole != nil {
		return r.whole, nil
	}
	if r.ContentLength > limit {
		return nil, &Error{Class: ErrTooLarge}
	}
	size := int64(512)
	if r.ContentLength > 0 {
		size = min(r.ContentLength, firstRead)
	}
	b := make([]byte, 0, size)
	for {
		n, err := r.Body.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		switch {
		case int64(len(b)) > limit:
			return nil, &Error{Class: ErrTooLarge}
		case err == io.EOF, err != nil && int64(len(b)) == r.ContentLength:
			return b, nil // whole: a right that ended at this moment takes nothing back
		case err != nil:
			return nil, err
		case len(b) == cap(b):
			b = slices.Grow(b, len(b)) // what was received earns as much again
		}
	}
}

// SetBody makes b the answer's body, in place of one that was read whole.
func (r *Response) SetBody(b []byte) {
	r.whole, r.ContentLength = b, int64(len(b))
}

// Whole is what SetBody has set, which Relay writes without reading Body; nil: nothing.
func (r *Response) Whole() []byte { return r.whole }

// What saving an unwanted answer's connection may cost (W08); an answer that is longer or slower costs the connection.
const (
	discardLimit = 64 << 10
	discardTime  = time.Second
)

// Discard closes the answer after reading what little is left of it, so that the connection can serve again. Event
// streams are only closed.
func (r *Response) Discard() {
	if r.Kind != Events && r.ContentLength <= discardLimit {
		late := time.AfterFunc(discardTime, r.Close)
		_, _ = io.CopyN(io.Discard, r.Body, discardLimit)
		late.Stop()
	}
	r.Close()
}

// Close lets go of the upstream: a body that was not read to its end takes its connection along. Close is idempotent and
// may be called while another goroutine reads.
func (r *Response) Close() { r.body.close() }

// watch bounds one wait after another: first the way to the headers, then each read of the body.
type watch struct {
	timers  *sync.Pool
	cancel  context.CancelCauseFunc
	own     bool // cancel ends a context that is the round trip's own
	expired atomic.Bool
}

// timer bounds one wait, and another when it did not run out: making one costs more than all that is done with it. It is
// nobody else's from begin to end, however many close the answer meanwhile.
type timer struct {
	*time.Timer
	of *watch // nil: nobody waits
}

// begin bounds a wait, until end.
func (w *watch) begin(d time.Duration) *timer {
	t, ok := w.timers.Get().(*timer)
	if !ok {
		t = new(timer)
		t.of = w
		t.Timer = time.AfterFunc(d, func() { t.of.expire() })
		return t
	}
	t.of = w
	t.Reset(d)
	return t
}

// end says that the wait is over. A timer that has run out may not have been heard yet: it keeps its watch.
func (w *watch) end(t *timer) {
	if t.Stop() {
		t.of = nil
		w.timers.Put(t)
	}
}

// release ends the round trip's own context.
func (w *watch) release(cause error) {
	if w.own {
		w.cancel(cause)
	}
}

func (w *watch) expire() {
	w.expired.Store(true)
	w.cancel(context.DeadlineExceeded)
}

// explain names why a wait ended: the timer (late says which), the client, or the upstream.
func (w *watch) explain(ctx context.Context, err error, late error) *Error {
	if w.expired.Load() {
		return &Error{Class: late}
	}
	if ctx.Err() != nil {
		return &Error{Class: ErrClientGone, Cause: context.Cause(ctx)}
	}
	return classify(err)
}

// body is an answer's body whose every read is bounded. The timer runs only while the upstream is waited for, so a slow
// client is not taken for a silent upstream, and not at all for what came with the headers.
type body struct {
	ctx    context.Context
	answer *http1.Answer
	watch  watch
	idle   time.Duration
	turn   turn
}

var errClosed = errors.New("answer is closed")

func (b *body) Read(p []byte) (int, error) {
	if b.watch.expired.Load() {
		return 0, &Error{Class: ErrIdle}
	}
	n, err := b.read(p)
	err = b.explain(err)          // by what has ended until now
	if b.turn.over(n, time.Now) { //nolint:forbidigo // the scheduler is on the real clock
		runtime.Gosched()
	}
	return n, err
}

func (b *body) read(p []byte) (int, error) {
	if b.answer.Ready() {
		return b.answer.Body.Read(p)
	}
	bound := b.watch.begin(b.idle)
	n, err := b.answer.Body.Read(p)
	b.watch.end(bound)
	return n, err
}

func (b *body) explain(err error) error {
	if err == nil || (err == io.EOF && b.ctx.Err() == nil) { //nolint:errorlint // as a reader says it
		return err
	}
	// An end after the context's is not the answer's: the upstream may have ended it because it saw us go.
	return b.watch.explain(b.ctx, err, ErrIdle)
}

func (b *body) close() {
	b.watch.release(errClosed)
	_ = b.answer.Body.Close()
}
