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

	"github.com/durward-gateway/durward/internal/proxy/http1"
)

// Kind is the type of an answer's body.
type Kind uint8

// Kinds of an answer's body.
const (
	Empty  Kind = iota // no body
	JSON               // application/json
	Events             // text/event-stream
	Other              // anything else, including a body without a type
)

// Response is an upstream's answer. Its headers can only be read through the methods, so that headers off the
// allow-list do not pass.
type Response struct {
	Status        int
	Kind          Kind
	ContentLength int64     // -1 when the upstream did not say
	Body          io.Reader // fails with *[Error]: [ErrIdle], [ErrClientGone], [ErrUpstream]
	// Hold is the time for which Relay keeps the headers of an event stream back while no byte of it has come. A stream
	// that fails at its beginning can then still get another answer. 0: the headers are committed at once.
	Hold time.Duration
	// Heartbeat is the length of a silence after which Relay writes a comment on an event stream; 0: it never does.
	Heartbeat time.Duration
	fields    []http1.Field // the answer's headers
	passed    [4]string     // storage for the values of CopyHeader, when they fit
	length    [1]string     // storage for the value of Content-Length
	rules     *Rules
	body      body
	whole     []byte // written by Relay in place of Body; nil: nothing
	writeIdle time.Duration
	http1     bool // the client speaks HTTP/1
}

// take fills r from an answer that may be passed on.
func (r *Response) take(ctx context.Context, answer *http1.Answer, idle time.Duration) *Error {
	switch s := answer.Status; {
	case s < 200 || s > 599 || s == http.StatusPartialContent:
		return upstreamError("status " + strconv.Itoa(s) + " was not asked for")
	case s >= 300 && s < 400:
		// Redirects are never followed: the credential is meant for this server only.
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

// Header returns the first value of an upstream header that decides something. The header does not pass to the client
// by that.
func (r *Response) Header(name string) string {
	for i := range r.fields {
		if r.fields[i].Name == name {
			return r.fields[i].Value
		}
	}
	return ""
}

// SessionID returns the upstream's own session id, which must be sealed before a client sees it; "" when there is none.
func (r *Response) SessionID() string { return r.Header(sessionHeader) }

// Challenges returns the upstream's WWW-Authenticate values: for the broker, never for the client.
func (r *Response) Challenges() []string {
	var all []string
	for _, f := range r.fields {
		if f.Name == "Www-Authenticate" {
			all = append(all, f.Value)
		}
	}
	return all
}

// CopyHeader sets on dst the headers that pass. On an event stream it adds headers that keep intermediaries from
// holding the stream back. Only [Response.Relay] sets Content-Length, because a caller may write another body.
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

// ReadAll reads the whole body, at most limit bytes. Errors are *[Error].
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
			return b, nil // complete: a permission that ended at this moment takes nothing back
		case err != nil:
			return nil, err
		case len(b) == cap(b):
			b = slices.Grow(b, len(b)) // grow by as much as was received so far
		}
	}
}

// SetBody makes b the answer's body, in place of a body that was read in full.
func (r *Response) SetBody(b []byte) {
	r.whole, r.ContentLength = b, int64(len(b))
}

// Whole returns the body from SetBody, which Relay writes without reading Body; nil: nothing.
func (r *Response) Whole() []byte { return r.whole }

// Costs that saving the connection of an unwanted answer may have (W08). For a longer or slower answer the connection
// is closed.
const (
	discardLimit = 64 << 10
	discardTime  = time.Second
)

// Discard closes the answer after reading the little that is left of it, so that the connection can be used again.
// Event streams are closed at once.
func (r *Response) Discard() {
	if r.Kind != Events && r.ContentLength <= discardLimit {
		late := time.AfterFunc(discardTime, r.Close)
		_, _ = io.CopyN(io.Discard, r.Body, discardLimit)
		late.Stop()
	}
	r.Close()
}

// Close releases the upstream. A body that was not read to its end closes its connection too. Close is idempotent and
// may be called while another goroutine reads.
func (r *Response) Close() { r.body.close() }

// watch bounds one wait after another: first the wait for the headers, then each read of the body.
type watch struct {
	timers  *sync.Pool
	cancel  context.CancelCauseFunc
	own     bool // cancel ends a context that belongs to the round trip
	expired atomic.Bool
}

// timer bounds one wait. It serves another wait when it did not run out, because making one costs more than all its
// other work. From begin to end it belongs to one wait, however many goroutines close the answer meanwhile.
type timer struct {
	*time.Timer
	of *watch // nil: no wait
}

// begin bounds a wait, until end is called.
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

// end ends the wait. A timer that has run out may still call back later, so it keeps its watch.
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

// explain names the cause that ended a wait: the timer (late says which), the client, or the upstream.
func (w *watch) explain(ctx context.Context, err error, late error) *Error {
	if w.expired.Load() {
		return &Error{Class: late}
	}
	if ctx.Err() != nil {
		return &Error{Class: ErrClientGone, Cause: context.Cause(ctx)}
	}
	return classify(err)
}

// body is an answer's body with a bound on every read. The timer runs only while the body waits for the upstream, so a
// slow client is not taken for a silent upstream. It does not run for data that came with the headers.
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
	err = b.explain(err)          // by the causes until now
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
	// An end after the end of the context is not the answer's end: the upstream may have ended it because it saw the
	// gateway leave.
	return b.watch.explain(b.ctx, err, ErrIdle)
}

func (b *body) close() {
	b.watch.release(errClosed)
	_ = b.answer.Body.Close()
}
