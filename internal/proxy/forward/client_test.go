package forward

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestClientNeverReads covers W01: a client that stops reading loses its answer after the limit, and the upstream is
// released.
func TestClientNeverReads(t *testing.T) { onBoth(t, testClientNeverReads) }

func testClientNeverReads(t *testing.T, via client) {
	for _, tc := range []struct{ name, answer, more string }{
		{"W01 event stream", "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n", "data: " + strings.Repeat("x", 32<<10) + "\n\n"},
		{"W01 body", "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 999999999\r\n\r\n", strings.Repeat(" ", 32<<10)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			freed := make(chan struct{})
			up := newUpstream(t, func(c *conn) {
				defer close(freed)
				if _, raw := c.request(); raw == "" {
					return
				}
				c.say(tc.answer)
				for {
					if _, err := c.Write([]byte(tc.more)); err != nil {
						return
					}
				}
			})
			f, _ := via.forwarder(t, Options{}, Limits{WriteIdle: 100 * time.Millisecond})
			front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				res, err := f.Do(r.Context(), &Request{Method: "GET", URL: up.url("/"), Header: r.Header})
				if err != nil {
					t.Error(err)
					return
				}
				defer res.Close()
				res.CopyHeader(w.Header())
				if err := res.Relay(w, 1<<30); err != nil {
					panic(http.ErrAbortHandler)
				}
			}))
			defer front.Close()
			client, err := net.Dial("tcp", front.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			if _, err := client.Write([]byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n")); err != nil {
				t.Fatal(err)
			}
			wait(t, freed, "the upstream's connection to close")
		})
	}
}

// deadlines is a writer that records the last deadline that was set.
type deadlines struct {
	*httptest.ResponseRecorder
	last, during time.Time
}

func (d *deadlines) SetWriteDeadline(at time.Time) error { d.last = at; return nil }
func (d *deadlines) FlushError() error                   { d.during = d.last; return nil }

func (d *deadlines) Write(p []byte) (int, error) {
	d.during = d.last
	return d.ResponseRecorder.Write(p)
}

// TestDeadlineOnlyWhileWriting checks that a waiting stream has no deadline; HTTP/2 would end it.
func TestDeadlineOnlyWhileWriting(t *testing.T) {
	w := &deadlines{ResponseRecorder: httptest.NewRecorder()}
	c := (&Response{writeIdle: time.Minute}).Client(w)
	for _, write := range []func() error{
		func() error { _, err := c.Write([]byte("x")); return err },
		c.Flush,
	} {
		w.during = time.Time{}
		if err := write(); err != nil {
			t.Fatal(err)
		}
		if w.during.IsZero() || !w.last.IsZero() {
			t.Errorf("deadline %v while writing, %v after", w.during, w.last)
		}
	}
	if c.Finish(); w.last.IsZero() {
		t.Error("what the server writes last has no deadline")
	}
}

// TestDeadlinesOfManyWrites checks that on HTTP/1 many writes in a row share a deadline. Each has at most the limit,
// and at least seven eighths of it (W01).
func TestDeadlinesOfManyWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &deadlines{ResponseRecorder: httptest.NewRecorder()}
		c := (&Response{writeIdle: 80 * time.Second, http1: true}).Client(w)
		moves := 0
		for _, pause := range []time.Duration{0, 4 * time.Second, 6 * time.Second, time.Second, 9 * time.Second, time.Hour, 0} {
			time.Sleep(pause)
			before := w.last
			if err := c.Send([]byte("x")); err != nil {
				t.Fatal(err)
			}
			if w.last != before {
				moves++
			}
			if left := time.Until(w.during); left > 80*time.Second || left < 70*time.Second {
				t.Errorf("%s after the last one a write has %s", pause, left)
			}
			if time.Since(c.LastWrite()) != 0 {
				t.Errorf("the last write was at %s", c.LastWrite())
			}
		}
		if moves != 3 {
			t.Errorf("%d moves", moves)
		}
	})
}
