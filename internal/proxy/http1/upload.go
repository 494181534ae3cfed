package http1

import "time"

// upload writes the rest of a large body after the first write, while the caller's goroutine already reads. An
// upstream may answer, or begin to, before it has read everything, and may never read the rest.
type upload struct {
	done chan struct{}
	ok   bool // all of it was written; after done
}

func startUpload(c *conn, rest []byte) *upload {
	u := &upload{done: make(chan struct{})}
	go func() {
		defer close(u.done)
		_, err := c.rw.Write(rest)
		u.ok = err == nil
	}()
	return u
}

// How long an answer waits for the rest of its request.
const (
	// notice is for an upstream that answers after the last byte: the writer only has to notice that.
	notice = time.Millisecond
	// linger is for an upstream that has answered early: it may still read the rest.
	linger = 50 * time.Millisecond
)

// written reports whether the body was written to its end. It waits for that, but not for long.
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
