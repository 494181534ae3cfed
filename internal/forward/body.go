package forward

import (
	"errors"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"
)

// BodyError is a client's body that was not accepted, and whose rest may still be on its way. Status is the answer's: 413
// (PayloadTooLarge), 415 (UnsupportedMediaType: the body is encoded), 408 (it came too slowly) or 400 (it ended early or is
// malformed). It is answered inside Answer.
type BodyError struct {
	Status int
	Cause  error

	rest io.Reader // of the body, on HTTP/1; else nil
}

func (e *BodyError) Error() string {
	if e.Cause != nil {
		return "reading the request's body: " + e.Cause.Error()
	}
	return "reading the request's body: " + http.StatusText(e.Status)
}

func (e *BodyError) Unwrap() error { return e.Cause }

// lingerFor is how long the rest of a refused body is read on. A client far away, or on a machine that is out of breath, may
// take seconds to see the answer; one that sees it stops sending, which ends this.
const lingerFor = 5 * time.Second

// Answer lets write answer the request so that the client gets to read it: an HTTP/1 connection closes after the answer
// (the rest of the body would be taken for the next request), but not before what the client is still sending was read,
// for five seconds at most. A connection that is closed with unread data is reset, and the reset takes the answer away
// from a client that is still writing (RFC 9112 section 9.6). net/http's server does the same, but only for bodies that
// nobody has wrapped, and Caddy wraps them.
func (e *BodyError) Answer(w http.ResponseWriter, write func()) {
	if e.rest == nil {
		write()
		return
	}
	w.Header().Set("Connection", "close")
	write()
	control := http.NewResponseController(w)
	if control.Flush() != nil {
		return
	}
	timer := time.AfterFunc(lingerFor, func() { _ = control.SetReadDeadline(time.Unix(1, 0)) })
	defer timer.Stop()
	_, _ = io.Copy(io.Discard, e.rest)
}

// AnswerUnread is Answer for a request that is refused before its body was looked at.
func AnswerUnread(w http.ResponseWriter, r *http.Request, write func()) {
	e := new(BodyError)
	if r.ProtoMajor == 1 && r.Body != nil && r.Body != http.NoBody {
		e.rest = r.Body
	}
	e.Answer(w, write)
}

func refuseBody(r *http.Request, status int, cause error) error {
	e := &BodyError{Status: status, Cause: cause}
	if r.ProtoMajor == 1 {
		e.rest = r.Body
	}
	return e
}

// firstRead is the most that is allocated on a client's word alone: a Content-Length costs its sender nothing.
const firstRead = 64 << 10

// ReadBody reads all of r's body into memory, at most limit bytes of it. A declared length above limit is refused before
// anything is read. The end of the body is always read, which is also what lets net/http's server notice from then on
// that the client went away. Errors are *[BodyError].
func ReadBody(r *http.Request, limit int64) ([]byte, error) {
	for _, v := range r.Header["Content-Encoding"] {
		if v != "" && !strings.EqualFold(v, "identity") {
			return nil, refuseBody(r, http.StatusUnsupportedMediaType, nil)
		}
	}
	if r.ContentLength > limit {
		return nil, refuseBody(r, http.StatusRequestEntityTooLarge, nil)
	}
	if r.Body == nil || r.Body == http.NoBody {
		return nil, nil
	}
	size := min(limit+1, 4<<10)
	if r.ContentLength >= 0 {
		// One byte more: the read that fills the length then also sees the end.
		size = min(r.ContentLength+1, firstRead)
	}
	b := make([]byte, 0, size)
	for {
		n, err := r.Body.Read(b[len(b):min(int64(cap(b)), limit+1)])
		b = b[:len(b)+n]
		if int64(len(b)) > limit {
			return nil, refuseBody(r, http.StatusRequestEntityTooLarge, nil)
		}
		if err == io.EOF {
			return b, nil
		}
		if err != nil {
			var tooLarge *http.MaxBytesError
			if errors.As(err, &tooLarge) {
				return nil, refuseBody(r, http.StatusRequestEntityTooLarge, err)
			}
			if errors.Is(err, os.ErrDeadlineExceeded) {
				return nil, refuseBody(r, http.StatusRequestTimeout, err)
			}
			return nil, refuseBody(r, http.StatusBadRequest, err)
		}
		if len(b) == cap(b) {
			b = slices.Grow(b, len(b)) // what was received earns as much again
		}
	}
}
