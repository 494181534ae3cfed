package handover

import (
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestReadDeadline checks that reads end when the server wants, whatever deadline the socket had before.
func TestReadDeadline(t *testing.T) {
	const second = time.Second
	for name, test := range map[string]struct {
		before, during []time.Duration // set before and one by one after a second of the read; 0: none
		ends           time.Duration   // 0: not by itself
		set            int64           // deadlines of the socket
	}{
		"none":                        {},
		"one":                         {before: []time.Duration{5 * second}, ends: 5 * second, set: 1},
		"the last counts":             {before: []time.Duration{5 * second, 9 * second, 0, 7 * second}, ends: 7 * second, set: 1},
		"cleared":                     {before: []time.Duration{5 * second, 0}},
		"set meanwhile":               {during: []time.Duration{5 * second}, ends: 6 * second, set: 1},
		"earlier meanwhile":           {before: []time.Duration{9 * second}, during: []time.Duration{5 * second}, ends: 6 * second, set: 2},
		"later meanwhile":             {before: []time.Duration{5 * second}, during: []time.Duration{6 * second, 7 * second, 8 * second}, ends: 11 * second, set: 2},
		"cleared meanwhile":           {before: []time.Duration{5 * second}, during: []time.Duration{0}, set: 2},
		"later and earlier meanwhile": {before: []time.Duration{5 * second}, during: []time.Duration{60 * second, second}, ends: 3 * second, set: 2},
		"long ago":                    {before: []time.Duration{-time.Since(time.Unix(1, 0))}, ends: 1},
		"passed meanwhile":            {before: []time.Duration{5 * second}, during: []time.Duration{-second}, ends: second, set: 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c, spy, client := pair(t)
				set := func(d time.Duration) {
					at := time.Time{}
					if d != 0 {
						at = time.Now().Add(d)
					}
					if d < -time.Hour {
						at = time.Unix(1, 0)
					}
					if err := c.SetReadDeadline(at); err != nil {
						t.Error(err)
					}
				}
				for _, d := range test.before {
					set(d)
				}
				spy.wantAsked(t, 0, 0, 0)
				began, ended := time.Now(), make(chan result, 1)
				go func() {
					p := make([]byte, 16)
					n, err := c.Read(p)
					ended <- result{string(p[:n]), err}
				}()
				for _, d := range test.during {
					time.Sleep(second)
					set(d)
				}
				if test.ends == 0 {
					time.Sleep(time.Hour)
					_, _ = client.Write([]byte("late"))
					if got := <-ended; got.err != nil || got.text != "late" {
						t.Errorf("%q, %v", got.text, got.err)
					}
				} else {
					if got := <-ended; !errors.Is(got.err, os.ErrDeadlineExceeded) {
						t.Errorf("%q, %v", got.text, got.err)
					}
					if d := time.Since(began); d != test.ends && test.ends != 1 {
						t.Errorf("after %v", d)
					}
				}
				if n := spy.readDeadlines.Load(); n != test.set {
					t.Errorf("the socket got %d deadlines", n)
				}
			})
		})
	}
	t.Run("used again", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c, spy, client := pair(t)
			p := make([]byte, 16)
			for range 3 {
				_ = c.SetReadDeadline(time.Now().Add(time.Second))
				if _, err := c.Read(p); !errors.Is(err, os.ErrDeadlineExceeded) {
					t.Error(err)
				}
			}
			spy.wantAsked(t, 5, 3, 0) // the second and the third time what the socket had was over
			_ = c.SetReadDeadline(time.Time{})
			go func() { _, _ = client.Write([]byte("x")) }()
			if n, err := c.Read(p); n != 1 || err != nil {
				t.Error(n, err)
			}
		})
	})
}

// TestWriteDeadline checks that a write that the socket ends too early continues where it was.
func TestWriteDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, spy, client := pair(t)
		_ = c.SetWriteDeadline(time.Now().Add(time.Second))
		_ = c.SetWriteDeadline(time.Now().Add(time.Minute))
		spy.wantAsked(t, 0, 0, 1)
		got := make(chan string)
		go func() {
			p := make([]byte, 3)
			_, _ = io.ReadFull(client, p)
			time.Sleep(10 * time.Second)
			rest, _ := io.ReadAll(client)
			got <- string(p) + string(rest)
		}()
		if n, err := c.Write([]byte("hello")); n != 5 || err != nil {
			t.Error(n, err)
		}
		spy.wantAsked(t, 0, 0, 2)
		_ = c.SetWriteDeadline(time.Time{})
		if n, err := c.Write([]byte(" you")); n != 4 || err != nil {
			t.Error(n, err)
		}
		_ = c.Close()
		if text := <-got; text != "hello you" {
			t.Errorf("%q", text)
		}
	})
	t.Run("passed", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c, _, client := pair(t)
			began := time.Now()
			_ = c.SetWriteDeadline(began.Add(time.Second))
			_ = c.SetWriteDeadline(began.Add(3 * time.Second))
			go func() { _, _ = client.Read(make([]byte, 2)) }()
			n, err := c.Write([]byte("hello"))
			if n != 2 || !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Error(n, err)
			}
			if d := time.Since(began); d != 3*time.Second {
				t.Errorf("after %v", d)
			}
			_ = c.SetWriteDeadline(began) // a time that has passed
			if _, err := c.Write([]byte("x")); !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Error(err)
			}
		})
	})
	t.Run("copied", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c, _, client := pair(t)
			_ = c.SetWriteDeadline(time.Now().Add(time.Second))
			_ = c.SetWriteDeadline(time.Now().Add(time.Minute))
			got := make(chan string)
			go func() {
				time.Sleep(90 * time.Second)
				text, _ := io.ReadAll(client)
				got <- string(text)
			}()
			go func() {
				time.Sleep(5 * time.Second)
				_ = c.SetWriteDeadline(time.Now().Add(2 * time.Minute))
			}()
			if n, err := c.ReadFrom(strings.NewReader("hello")); n != 5 || err != nil {
				t.Error(n, err)
			}
			_ = c.Close()
			if text := <-got; text != "hello" {
				t.Errorf("%q", text)
			}
		})
	})
}

// TestRequestsDeadlines checks that the deadlines that net/http sets for successive requests reach the socket only
// the first time.
func TestRequestsDeadlines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, spy, client := pair(t)
		go func() { _, _ = io.Copy(io.Discard, client) }()
		const requests = 10
		for range requests {
			_ = c.SetReadDeadline(time.Now().Add(time.Minute)) // to come
			go func() { _, _ = client.Write([]byte("request")) }()
			if _, err := c.Read(make([]byte, serverBuffer)); err != nil {
				t.Fatal(err)
			}
			_ = c.SetReadDeadline(time.Now().Add(time.Minute)) // to be read
			ended := background(c)
			_ = c.SetWriteDeadline(time.Now().Add(time.Minute))
			_, _ = c.Write([]byte("answer"))
			_ = c.SetReadDeadline(time.Unix(1, 0))
			<-ended
			_ = c.SetReadDeadline(time.Time{})
			_ = c.SetWriteDeadline(time.Time{})
			State(c, http.StateIdle)
		}
		spy.wantAsked(t, requests, 1, 1)
	})
}
