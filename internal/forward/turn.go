package forward

import "time"

const (
	// turnTime is for how long an answer is carried before others have their turn. Left to the scheduler that is 10 ms where
	// neither the upstream nor the client ever keeps it waiting: behind fifty such answers on one processor, a new connection
	// waits for half a second, and once more for its request.
	turnTime = 2 * time.Millisecond
	// turnBytes is after how many bytes the clock is looked at: a stream of small events need not give way at each of them.
	turnBytes = 64 << 10
)

// turn shares the processor between answers that come faster than they can be carried. The zero value is its start.
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
