package forward

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestW07Heartbeat checks that a silent stream gives a sign of life, between its events and after its headers alone.
func TestW07Heartbeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const every = 15 * time.Second
		in, feed := io.Pipe()
		f := New(Over(canned{in}), Limits{})
		res, err := f.Do(t.Context(), &Request{Method: http.MethodGet, URL: mustURL("http://up.test/"), Idle: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		defer res.Close()
		res.Heartbeat = every
		w := &lockedRecorder{ResponseRecorder: httptest.NewRecorder()}
		done := make(chan error)
		go func() { done <- res.Relay(w, 1<<10) }()
		say := func(text, want string, quiet time.Duration) {
			t.Helper()
			_, _ = io.WriteString(feed, text)
			synctest.Wait()
			time.Sleep(quiet)
			synctest.Wait()
			if got := w.written(); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		}
		say("", "", firstSign) // the headers were sent alone
		say("", ":\n\n", headerGrace)
		say("", ":\n\n", every-time.Second)
		say("", ":\n\n:\n\n", time.Second)
		say("data: 1\n\n", ":\n\n:\n\ndata: 1\n\n", every-time.Second)
		say("", ":\n\n:\n\ndata: 1\n\n:\n\n", time.Second)
		say("data: 2", ":\n\n:\n\ndata: 1\n\n:\n\ndata: 2", 10*every) // no comment fits inside an event
		say("\n\n", ":\n\n:\n\ndata: 1\n\n:\n\ndata: 2\n\n:\n\n:\n\n", 2*every)
		_ = feed.Close()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// lockedRecorder is a client whose content can be read while a timer writes.
type lockedRecorder struct {
	mu sync.Mutex
	*httptest.ResponseRecorder
}

func (r *lockedRecorder) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ResponseRecorder.Write(p)
}

func (r *lockedRecorder) written() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.Body.String()
}

// goneWriter is a client whose writes fail after the headers.
type goneWriter struct {
	*httptest.ResponseRecorder
}

func (*goneWriter) Write([]byte) (int, error) { return 0, errors.New("connection reset by peer") }

// closing is like canned, with a body that ends when it is closed, as those of connections do.
type closing struct{ *io.PipeReader }

func (c closing) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := canned{c.PipeReader}.RoundTrip(r)
	answer.Body = c.PipeReader
	return answer, err
}

// TestW07ClientGone checks that a comment that cannot be written ends the stream, however silent its upstream is.
func TestW07ClientGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in, feed := io.Pipe()
		defer feed.Close()
		f := New(Over(closing{in}), Limits{})
		res, err := f.Do(t.Context(), &Request{Method: http.MethodGet, URL: mustURL("http://up.test/"), Idle: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		defer res.Close()
		res.Heartbeat = time.Second
		err = res.Relay(&goneWriter{ResponseRecorder: httptest.NewRecorder()}, 1<<10)
		if failure := (*Error)(nil); !errors.As(err, &failure) || !errors.Is(err, ErrClientGone) || !failure.Committed {
			t.Errorf("%v", err)
		}
	})
}
