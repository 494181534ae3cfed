package sse

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/durward-gateway/durward/internal/proxy/forward"
)

// TestHeartbeats checks that a heartbeat is written when nothing else was written for one interval, no earlier and no
// later.
func TestHeartbeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := httptest.NewRecorder()
		o := newOutput(new(forward.Response).Client(http.ResponseWriter(w)), 15*time.Second)
		beats := func() int {
			o.mu.Lock() // the timer's goroutine writes
			defer o.mu.Unlock()
			return strings.Count(w.Body.String(), ":\n\n")
		}
		for _, step := range []struct {
			after time.Duration
			beats int
		}{{10 * time.Second, 0}, {14 * time.Second, 0}, {time.Second, 0}, {14 * time.Second, 0}, {14*time.Second + 999*time.Millisecond, 0}} {
			time.Sleep(step.after)
			synctest.Wait()
			if beats() != step.beats {
				t.Errorf("%d heartbeats", beats())
			}
			if !o.raw([]byte("data: 1\n\n")) {
				t.Error("not written")
			}
		}
		for n := range 3 {
			time.Sleep(15*time.Second - 1)
			synctest.Wait()
			if beats() != n {
				t.Errorf("%d heartbeats too early", beats())
			}
			time.Sleep(time.Nanosecond)
			synctest.Wait()
			if beats() != n+1 {
				t.Errorf("%d heartbeats after %d times", beats(), n+1)
			}
		}
		o.close()
		time.Sleep(time.Hour)
		if beats() != 3 || o.raw(nil) || o.event("x", nil) {
			t.Error("written after the end")
		}
	})
}

// TestHeartbeatDoesNotWait checks that a heartbeat does not wait for a client that takes nothing of something else, and
// there are more once it does (W01).
func TestHeartbeatDoesNotWait(t *testing.T) {
	w := httptest.NewRecorder()
	o := newOutput(new(forward.Response).Client(w), time.Hour)
	o.mu.Lock() // as whoever writes does
	returned := make(chan struct{})
	go func() {
		defer close(returned)
		o.beat()
	}()
	select {
	case <-returned:
	case <-time.After(10 * time.Second):
		t.Error("a heartbeat waits")
	}
	o.mu.Unlock()
	<-returned
	o.close()

	synctest.Test(t, func(t *testing.T) {
		w := httptest.NewRecorder()
		o := newOutput(new(forward.Response).Client(w), 15*time.Second)
		o.mu.Lock()
		time.Sleep(20 * time.Second)
		o.mu.Unlock()
		time.Sleep(11 * time.Second)
		o.close()
		if n := strings.Count(w.Body.String(), ":\n\n"); n != 1 {
			t.Errorf("%d heartbeats", n)
		}
	})
}
