package forward

import "time"

const (
	// turnTime is the time for which one answer is carried before others get the processor. The scheduler alone takes
	// 10 ms where neither upstream nor client ever waits: behind fifty such answers on one processor, a new connection
	// waits for half a second, and once more for its request.
	turnTime = 2 * time.Millisecond
	// turnBytes is the number of bytes after which the clock is read, so that a stream of small events does not pay for
	// it at each one.
	turnBytes = 64 << 10
)

// turn shares the processor between answers that arrive faster than they can be carried. The zero value is ready.
type turn struct {
	began time.Time
	bytes int
}

// over counts n bytes, and reports whether it is time to let others run.
func (t *turn) over(n int, clock func() time.Time) bool {
	if t.bytes += n; t.bytes < turnBytes {
		return false
	}
	t.bytes = 0
	now := clock()
	if now.Sub(t.began) < turnTime {
		return false
	}
	t.began = now
	return true
}
