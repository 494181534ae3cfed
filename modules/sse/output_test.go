package sse

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/durward-gateway/durward/internal/forward"
)

// TestHeartbeats: there is one when nothing was written for as long as between two of them, no earlier and no later.
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
