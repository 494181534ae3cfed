package forward

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"
)

// canned answers every request with an event stream.
type canned struct{ body io.Reader }

func (c canned) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode: http.StatusOK, ContentLength: -1, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: io.NopCloser(c.body),
	}, nil
}

// TestHold checks that the failure of an event stream is not committed while its headers are held back. The headers
// must not be held longer than the configured time, or than until the first byte.
func TestHold(t *testing.T) {
	const hold = 100 * time.Millisecond
	broken := errors.New("broken")
	for _, tc := range []struct {
		name, first string
		hold, after time.Duration // of the first bytes, or of the failure
		err         error
		committed   bool
		headers     time.Duration // time at which they are sent; -1: never
	}{
		{"fails at once", "", hold, 0, broken, false, -1},
		{"fails in time", "", hold, hold - 1, broken, false, -1},
		{"fails late", "", hold, hold + 1, broken, true, hold},
		{"fails after a byte", "x", hold, hold / 2, broken, true, hold / 2},
		{"fails, and nothing is held", "", 0, 0, broken, false, -1},
		{"silent", "", hold, time.Second, nil, true, hold},
		{"silent, and nothing is held", "", 0, time.Second, nil, true, headerGrace},
		{"ends without a byte", "", hold, 0, nil, true, 0},
		{"begins in time", "x", hold, hold / 2, nil, true, hold / 2},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				in, feed := io.Pipe()
				f := New(Over(canned{in}), Limits{})
				res, err := f.Do(t.Context(), &Request{Method: http.MethodGet, URL: mustURL("http://up.test/")})
				if err != nil {
					t.Fatal(err)
				}
				defer res.Close()
				res.Hold = tc.hold
				start := time.Now()
				w := &noticed{ResponseRecorder: httptest.NewRecorder(), at: -1, start: start}
				go func() {
					time.Sleep(tc.after)
					_, _ = io.WriteString(feed, tc.first)
					_ = feed.CloseWithError(tc.err)
				}()
				err = res.Relay(w, 1<<10)
				var failure *Error
				switch {
				case tc.err == nil && err != nil:
					t.Error(err)
				case tc.err != nil && (!errors.As(err, &failure) || !errors.Is(err, ErrUpstream) || !errors.Is(err, tc.err) || failure.Committed != tc.committed):
					t.Errorf("%v, %+v", err, failure)
				}
				if written := w.status != 0; written != tc.committed {
					t.Errorf("status %d", w.status)
				}
				if tc.headers >= 0 && tc.err == nil && tc.after > 0 && w.at != tc.headers {
					t.Errorf("headers were flushed after %v, want %v", w.at, tc.headers)
				}
				if w.Body.String() != tc.first {
					t.Errorf("body %q", w.Body)
				}
			})
		})
	}
}

// noticed records the time of the first flush.
type noticed struct {
	*httptest.ResponseRecorder
	start  time.Time
	at     time.Duration
	status int
}

func (n *noticed) WriteHeader(status int) {
	n.status = status
	n.ResponseRecorder.WriteHeader(status)
}

func (n *noticed) Flush() {
	if n.at < 0 {
		n.at = time.Since(n.start)
	}
	n.ResponseRecorder.Flush()
}
