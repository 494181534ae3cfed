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

// BodyError says why a client's body was not accepted. The rest of the body may still be on its way. Status is the
// status of the answer: 413 (PayloadTooLarge), 415 (UnsupportedMediaType: the body is encoded), 408 (it came too
// slowly) or 400 (it ended early or is malformed). The caller must answer it inside Answer.
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

// lingerFor is the time for which the rest of a refused body is read. A distant client, or one on an overloaded
// machine, may take seconds to see the answer. A client that sees it stops sending, which ends the reading.
const lingerFor = 5 * time.Second

// Answer lets write answer the request in a way that lets the client read the answer. An HTTP/1 connection closes after
// the answer, because the rest of the body would be taken for the next request. Before that, Answer reads on while the
// client still sends, for five seconds at most. A connection that is closed with unread data is reset, and the reset
// takes the answer away from a client that is still writing (RFC 9112 section 9.6). net/http's server does the same,
// but only for bodies without a wrapper, and Caddy wraps them.
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

// AnswerUnread does the same as Answer for a request that is refused before its body was read.
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

// firstRead is the most that is allocated for a declared length: a Content-Length costs its sender nothing.
const firstRead = 64 << 10

// ReadBody reads all of r's body into memory, at most limit bytes of it. A declared length above limit is refused
// before anything is read. It always reads up to the end of the body: only then does net/http's server notice that the
// client went away. Errors are *[BodyError].
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
		// One more byte lets the read that fills the length also see the end.
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
			b = slices.Grow(b, len(b)) // grow by as much as was received so far
		}
	}
}
