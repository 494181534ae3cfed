package http1

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
)

// several remembers all connections that it dialled.
type several struct {
	freely
	made []*mortal
}

func (d *several) DialPlain(ctx context.Context, network, addr string) (net.Conn, error) {
	c, err := d.freely.DialPlain(ctx, network, addr)
	d.made = append(d.made, &mortal{Conn: c})
	return d.made[len(d.made)-1], err
}

// warm leaves n connections to an upstream idle. The last one is used first.
func warm(t *testing.T, c *Client, up *upstream, n int) {
	t.Helper()
	var bodies []io.Closer
	for range n {
		r := up.request(t.Context(), "POST", "{}")
		r.Header.Set("Warm", "1")
		res, err := c.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		bodies = append(bodies, closing{res.Body})
	}
	for _, b := range bodies {
		if err := b.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if c.pool.idle != n {
		t.Fatalf("%d idle connections, want %d", c.pool.idle, n)
	}
}

// TestSentOnceMore checks W11: however many kept connections die, a repeatable request is sent once more, and another
// request is not, even if a connection before it had died unused.
func TestSentOnceMore(t *testing.T) {
	for _, tc := range []struct {
		name, method string
		dead         int // connections that take nothing
		asked        int32
		idle         int // connections left
	}{
		{"GET", "GET", 0, 2, 1},
		{"GET after a connection that took nothing", "GET", 1, 2, 0},
		{"W11 POST after a connection that took nothing", "POST", 1, 1, 1},
		{"W11 POST after two that took nothing", "POST", 2, 1, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var asked atomic.Int32
			up := newUpstream(t, func(c *peer) {
				for r := c.request(); r != nil; r = c.request() {
					if r.Header.Get("Warm") == "" {
						asked.Add(1)
						return
					}
					c.say(ok)
				}
			})
			d := &several{}
			c := New(d, Options{})
			defer c.CloseIdleConnections()
			warm(t, c, up, 3)
			for n := range tc.dead {
				d.made[2-n].dead.Store(true)
			}
			if _, _, err := do(c, up.request(t.Context(), tc.method, "")); err == nil {
				t.Error("no error")
			}
			if asked.Load() != tc.asked || c.pool.idle != tc.idle {
				t.Errorf("asked %d times, %d connections left, want %d and %d", asked.Load(), c.pool.idle, tc.asked, tc.idle)
			}
			for n, m := range d.made {
				if m.dead.Load() && !m.closed.Load() {
					t.Errorf("connection %d is open", n)
				}
			}
		})
	}
}

// TestCancelledOnce checks that a request whose context ends closes no other connection.
func TestCancelledOnce(t *testing.T) {
	asked := make(chan bool, 2)
	up := newUpstream(t, func(c *peer) {
		for r := c.request(); r != nil; r = c.request() {
			if r.Header.Get("Warm") == "" {
				asked <- true
				c.untilGone()
				return
			}
			c.say(ok)
		}
	})
	c := newClient(t, Options{})
	warm(t, c, up, 2)
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error, 1)
	go func() {
		_, _, err := do(c, up.request(ctx, "GET", ""))
		failed <- err
	}()
	wait(t, asked, "the request")
	cancel()
	if err := wait(t, failed, "the request to fail"); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if c.pool.idle != 1 {
		t.Errorf("%d idle connections, want 1", c.pool.idle)
	}
}

// TestSentTwiceTLS checks W11 over TLS: a failed write says nothing about how much of the request has left.
func TestSentTwiceTLS(t *testing.T) {
	var asked atomic.Int32
	up, _, _ := secure(t, func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		_, _ = w.Write([]byte("{}"))
	}, nil)
	d := &dying{}
	c := New(d, Options{TLS: &tls.Config{InsecureSkipVerify: true}}) //nolint:gosec // the test's own server
	defer c.CloseIdleConnections()
	for n := range 2 {
		r, _ := http.NewRequestWithContext(t.Context(), "POST", up.URL, nil)
		if _, _, err := do(c, r); (err == nil) != (n == 0) {
			t.Errorf("request %d: %v", n+1, err)
		}
		d.last.dead.Store(true)
	}
	if asked.Load() != 1 || d.tls.Load() != 1 {
		t.Errorf("asked %d times over %d connections", asked.Load(), d.tls.Load())
	}
}
