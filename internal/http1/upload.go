package http1

import (
	"errors"
	"io"
	"time"
)

// upload writes what the first write of a large body left over, while the caller's goroutine already reads: an upstream
// may answer, or begin to, before it has read everything, and may never read the rest.
type upload struct {
	c      *conn
	left   int64
	done   chan struct{}
	source error // why the body could not be read; after done
	ok     bool  // all of it was written; after done
}

func startUpload(c *conn, body io.ReadCloser, n int64) *upload {
	u := &upload{c: c, left: n, done: make(chan struct{})}
	go u.run(body)
	return u
}

func (u *upload) run(body io.ReadCloser) {
	defer close(u.done)
	_, err := io.Copy((*uploadWriter)(u), body)
	_ = body.Close()
	if u.ok = err == nil && u.left == 0; u.ok {
		return
	}
	if w := (*uploadError)(nil); !errors.As(err, &w) {
		// The upstream waits for bytes that will not come.
		if u.source = err; err == nil {
			u.source = &RequestError{"the body is shorter than its length"}
		}
		u.c.abort()
	}
}

// How long an answer waits for the rest of its request.
const (
	// An upstream that answers after the last byte leaves the writer nothing to do but to notice.
	notice = time.Millisecond
	// An upstream that has answered early may still read the rest.
	linger = 50 * time.Millisecond
)

// written says whether the body was written to its end, and waits for that, but not for long.
func (u *upload) written(patience time.Duration) bool {
	select {
	case <-u.done:
		return u.ok
	default:
	}
	late := time.NewTimer(patience)
	defer late.Stop()
	select {
	case <-u.done:
		return u.ok
	case <-late.C:
		return false
	}
}

// uploadError is a failed write, as opposed to a failed read.
type uploadError struct{ error }

type uploadWriter upload

func (u *uploadWriter) Write(p []byte) (int, error) {
	if int64(len(p)) > u.left {
		return 0, &RequestError{"the body is longer than its length"}
	}
	n, err := u.c.rw.Write(p)
	u.left -= int64(n)
	if err != nil {
		return n, &uploadError{err}
	}
	return n, nil
}
