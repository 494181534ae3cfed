package handover

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// socketSpy counts the calls of a socket.
type socketSpy struct {
	net.Conn
	reads, readDeadlines, writeDeadlines atomic.Int64
}

func (s *socketSpy) Read(p []byte) (int, error) {
	s.reads.Add(1)
	return s.Conn.Read(p)
}

func (s *socketSpy) SetReadDeadline(t time.Time) error {
	s.readDeadlines.Add(1)
	return s.Conn.SetReadDeadline(t)
}

func (s *socketSpy) SetWriteDeadline(t time.Time) error {
	s.writeDeadlines.Add(1)
	return s.Conn.SetWriteDeadline(t)
}

func (s *socketSpy) wantAsked(t *testing.T, reads, readDeadlines, writeDeadlines int64) {
	t.Helper()
	if r, rd, wd := s.reads.Load(), s.readDeadlines.Load(), s.writeDeadlines.Load(); r != reads || rd != readDeadlines || wd != writeDeadlines {
		t.Errorf("%d reads, %d read deadlines, %d write deadlines; want %d, %d, %d", r, rd, wd, reads, readDeadlines, writeDeadlines)
	}
}

// pair returns a connection, its socket and its client. While no time passes, the listener does not check.
func pair(t *testing.T) (*Conn, *socketSpy, net.Conn) {
	client, server := net.Pipe()
	t.Cleanup(func() { _ = client.Close() })
	spy := &socketSpy{Conn: server}
	c := (&Listener{connections: make(map[*Conn]struct{})}).add(arrival{raw: spy})
	t.Cleanup(func() { _ = c.Close() })
	return c, spy, client
}

// result holds the result of a Read.
type result struct {
	text string
	err  error
}

// background begins what net/http begins once it has read a request, and waits until it waits.
func background(c *Conn) <-chan result {
	State(c, http.StateActive)
	_ = c.SetReadDeadline(time.Time{})
	ended := make(chan result, 1)
	go func() {
		p := make([]byte, 1)
		n, err := c.Read(p)
		ended <- result{string(p[:n]), err}
	}()
	synctest.Wait()
	return ended
}

// TestLookout checks that a background read does not use the socket until the listener has checked.
func TestLookout(t *testing.T) {
	past := time.Unix(1, 0)
	for name, test := range map[string]struct {
		do                   func(c *Conn, client net.Conn)
		text                 string
		err                  error
		reads, readDeadlines int64
		after                time.Duration
	}{
		"ended":              {do: func(c *Conn, _ net.Conn) { _ = c.SetReadDeadline(past) }, err: os.ErrDeadlineExceeded},
		"closed":             {do: func(c *Conn, _ net.Conn) { _ = c.Close() }, err: io.ErrClosedPipe, reads: 1},
		"a short wait":       {do: func(c *Conn, _ net.Conn) { _ = c.SetReadDeadline(time.Now().Add(lookAfter / 10)) }, err: os.ErrDeadlineExceeded, reads: 1, readDeadlines: 1, after: lookAfter / 10},
		"a byte":             {do: func(_ *Conn, client net.Conn) { _, _ = client.Write([]byte("x")) }, text: "x", reads: 1, after: lookAfter},
		"the client leaves":  {do: func(_ *Conn, client net.Conn) { _ = client.Close() }, err: io.EOF, reads: 1, after: lookAfter},
		"ended after a look": {do: func(c *Conn, _ net.Conn) { time.Sleep(lookAfter); synctest.Wait(); _ = c.SetReadDeadline(past) }, err: os.ErrDeadlineExceeded, reads: 1, readDeadlines: 1, after: lookAfter},
		"attended":           {do: func(c *Conn, client net.Conn) { Attend(Context(context.Background(), c)); _ = client.Close() }, err: io.EOF, reads: 1},
		"cleared, which changes nothing": {do: func(c *Conn, _ net.Conn) {
			_ = c.SetReadDeadline(time.Time{})
			synctest.Wait()
			_ = c.SetReadDeadline(past)
		}, err: os.ErrDeadlineExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, spy, client := pair(t)
				ended, began := background(c), time.Now()
				spy.wantAsked(t, 0, 0, 0)
				test.do(c, client)
				if got := <-ended; got.text != test.text || !errors.Is(got.err, test.err) {
					t.Errorf("%q, %v", got.text, got.err)
				}
				if d := time.Since(began); d != test.after {
					t.Errorf("after %v", d)
				}
				spy.wantAsked(t, test.reads, test.readDeadlines, 0)
			})
		})
	}
	t.Run("ended before it began", func(t *testing.T) {
		c, spy, _ := pair(t)
		State(c, http.StateActive)
		_ = c.SetReadDeadline(past)
		if _, err := c.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Error(err)
		}
		spy.wantAsked(t, 0, 0, 0)
	})
	t.Run("one request after the other", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c, spy, client := pair(t)
			for range 10 {
				ended := background(c)
				_ = c.SetReadDeadline(past)
				<-ended
				State(c, http.StateIdle)
			}
			spy.wantAsked(t, 0, 0, 0)
			c.listener.mu.Lock()
			if n := len(c.listener.lookouts); n != 1 {
				t.Errorf("enlisted %d times", n)
			}
			c.listener.mu.Unlock()
			time.Sleep(2 * lookAfter) // the lookout ends; the clock is the bubble's
			ended := background(c)
			_ = client.Close()
			time.Sleep(lookAfter)
			if got := <-ended; !errors.Is(got.err, io.EOF) {
				t.Error(got.err)
			}
		})
	})
}

// TestNotInBackground checks that HTTP/2 reads frames of one byte, and that handlers that took a connection over can
// read freely.
func TestNotInBackground(t *testing.T) {
	for name, c := range map[string]*Conn{
		"sealed": {phase: active, sealed: true}, "taken over": {phase: gone}, "a request that begins": {phase: begins}, "idle": {phase: idle}, "new": {},
	} {
		if c.background(1) {
			t.Errorf("%s: a read waits", name)
		}
	}
	if c := (&Conn{phase: active}); !c.background(1) || c.background(2) || c.background(serverBuffer) {
		t.Error("reads of more than one byte are not net/http's background reads")
	}
}

// TestClientLeaves checks that the context of a request ends when its client leaves, over TLS, too.
func TestClientLeaves(t *testing.T) {
	certificate := httptest.NewUnstartedServer(nil)
	certificate.StartTLS()
	t.Cleanup(certificate.Close)
	for name, config := range map[string]*tls.Config{"plain": nil, "TLS": {Certificates: certificate.TLS.Certificates}} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			s.tls = config
			entered, left := make(chan struct{}), make(chan error, 1)
			one := s.start("one", func(_ http.ResponseWriter, r *http.Request) bool {
				_, _ = io.Copy(io.Discard, r.Body)
				close(entered)
				<-r.Context().Done()
				left <- r.Context().Err()
				return false
			})
			w := s.dial()
			if config != nil {
				c := tls.Client(w.Conn, &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // the certificate is the test's own
				w = &wire{t, c, bufio.NewReader(c)}
			}
			w.send(request)
			<-entered
			_ = w.Close()
			select {
			case err := <-left:
				if !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
			case <-time.After(patience):
				t.Error("nobody noticed")
			}
			one.stop()
		})
	}
}

// TestPipelinedMeanwhile checks that bytes that come while a request is worked on become the next request, whether
// the listener checked meanwhile or not.
func TestPipelinedMeanwhile(t *testing.T) {
	for name, looks := range map[string]bool{"not looked": false, "looked": true} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			entered, leave := make(chan struct{}), make(chan struct{})
			one := s.start("one", func(_ http.ResponseWriter, r *http.Request) bool {
				_, _ = io.Copy(io.Discard, r.Body)
				entered <- struct{}{}
				<-leave
				return true
			})
			w := s.dial()
			w.send(request)
			<-entered
			w.send(request)
			if looks {
				one.listener.look()
			}
			leave <- struct{}{}
			w.want("one")
			<-entered
			leave <- struct{}{}
			w.want("one")
			one.await(1)
			two := s.start("two", nil)
			one.retire(short(t, patience))
			w.send(request)
			w.want("two")
			two.stop()
		})
	}
}
