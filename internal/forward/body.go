package forward

import (
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
)

// BodyError is a client's body that was not accepted. Status is the answer's: 413 (PayloadTooLarge), 415
// (UnsupportedMediaType: the body is encoded) or 400 (it ended early or is malformed). Close says that the rest of the
// body is still on its way: on HTTP/1 the answer should carry Connection: close instead of reading it.
type BodyError struct {
	Status int
	Close  bool
	Cause  error
}

func (e *BodyError) Error() string {
	if e.Cause != nil {
		return "reading the request's body: " + e.Cause.Error()
	}
	return "reading the request's body: " + http.StatusText(e.Status)
}

func (e *BodyError) Unwrap() error { return e.Cause }

// firstRead is the most that is allocated on a client's word alone: a Content-Length costs its sender nothing.
const firstRead = 64 << 10

// ReadBody reads all of r's body into memory, at most limit bytes of it. A declared length above limit is refused before
// anything is read. The end of the body is always read, which is also what lets net/http's server notice from then on
// that the client went away. Errors are *[BodyError].
func ReadBody(r *http.Request, limit int64) ([]byte, error) {
	for _, v := range r.Header["Content-Encoding"] {
		if v != "" && !strings.EqualFold(v, "identity") {
			return nil, &BodyError{Status: http.StatusUnsupportedMediaType, Close: true}
		}
	}
	if r.ContentLength > limit {
		return nil, &BodyError{Status: http.StatusRequestEntityTooLarge, Close: true}
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
			return nil, &BodyError{Status: http.StatusRequestEntityTooLarge, Close: true}
		}
		if err == io.EOF {
			return b, nil
		}
		if err != nil {
			var tooLarge *http.MaxBytesError
			if errors.As(err, &tooLarge) {
				return nil, &BodyError{Status: http.StatusRequestEntityTooLarge, Close: true, Cause: err}
			}
			return nil, &BodyError{Status: http.StatusBadRequest, Close: true, Cause: err}
		}
		if len(b) == cap(b) {
			b = slices.Grow(b, len(b)) // what was received earns as much again
		}
	}
}
