package forward

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
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
	Hold      time.Duration
	header    http.Header
	body      *body
	writeIdle time.Duration
}

func newResponse(ctx context.Context, res *http.Response, w *watch, idle time.Duration) (*Response, *Error) {
	switch s := res.StatusCode; {
	case s < 200 || s > 599 || s == http.StatusPartialContent:
		return nil, upstreamError("status " + strconv.Itoa(s) + " was not asked for")
	case s >= 300 && s < 400:
		// Never followed: the credential is meant for this place only.
		return nil, upstreamError("status " + strconv.Itoa(s) + " is a redirect")
	}
	if bad := checkResponseHeader(res.Header); bad != nil {
		return nil, bad
	}
	b := &body{ctx: ctx, rc: res.Body, watch: w, idle: idle}
	return &Response{
		Status: res.StatusCode, Kind: kindOf(res), ContentLength: res.ContentLength,
		Body: b, header: res.Header, body: b,
	}, nil
}

func kindOf(res *http.Response) Kind {
	if res.ContentLength == 0 || res.Body == http.NoBody {
		return Empty
	}
	media := res.Header.Get("Content-Type")
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

// SessionID is the upstream's own session id, to be sealed before a client sees it; "" when it gave none.
func (r *Response) SessionID() string { return r.header.Get(sessionHeader) }

// Challenges are the upstream's WWW-Authenticate values: for the broker, never for the client.
func (r *Response) Challenges() []string { return r.header["Www-Authenticate"] }

// CopyHeader sets on dst the headers that pass, and on an event stream those that keep intermediaries from holding it
// back. Content-Length is set by [Response.Relay] alone, because a caller may write another body.
func (r *Response) CopyHeader(dst http.Header) {
	for name, values := range r.header {
		if responseRule(name) != never && len(values) > 0 {
			dst[name] = values
		}
	}
	if r.Kind == Events {
		dst["Cache-Control"] = noTransform
		dst["X-Accel-Buffering"] = noBuffering
	}
}

// ReadAll reads the body whole, at most limit bytes. Errors are *[Error].
func (r *Response) ReadAll(limit int64) ([]byte, error) {
	if r.ContentLength > limit {
		return nil, &Error{Class: ErrTooLarge}
	}
	b, err := io.ReadAll(io.LimitReader(r.Body, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(b)) > limit {
		return nil, &Error{Class: ErrTooLarge}
	}
	return b, nil
}

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

// watch bounds one wait after another with a single timer: first the way to the headers, then each read of the body.
type watch struct {
	timer   *time.Timer
	cancel  context.CancelCauseFunc
	own     bool // cancel ends a context that is the round trip's own
	expired atomic.Bool
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
// client is not taken for a silent upstream.
type body struct {
	ctx   context.Context
	rc    io.ReadCloser
	watch *watch
	idle  time.Duration
}

var errClosed = errors.New("answer is closed")

func (b *body) Read(p []byte) (int, error) {
	if b.watch.expired.Load() {
		return 0, &Error{Class: ErrIdle}
	}
	b.watch.timer.Reset(b.idle)
	n, err := b.rc.Read(p)
	b.watch.timer.Stop()
	if err == nil || (err == io.EOF && b.ctx.Err() == nil) {
		return n, err
	}
	// An end after the context's is not the answer's: the upstream may have ended it because it saw us go.
	return n, b.watch.explain(b.ctx, err, ErrIdle)
}

func (b *body) close() {
	b.watch.timer.Stop()
	b.watch.release(errClosed)
	_ = b.rc.Close()
}
