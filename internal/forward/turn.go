package forward

import "time"

const (
	// turnTime is for how long an answer is carried before others have their turn. Left to the scheduler that is 10 ms where
	// neither the upstream nor the client ever keeps it waiting: behind fifty such answers on one processor, a new connection
	// waits for half a second, and once more for its request.
	turnTime = 2 * time.Millisecond
	// turnBytes is after how many bytes a turn may be over. A stream that waits for its events has none to give away.
	turnBytes = 64 << 10
)

// turn shares the processor between answers that come faster than they can be carried. The zero value is its start.
type turn struct {
	began   time.Time
	carried int
}

// over counts n bytes that were carried at a time, and reports whether it is time to let others run.
func (t *turn) over(n int, now time.Time) bool {
	if t.began.IsZero() {
		t.began = now
	}
	if t.carried += n; t.carried < turnBytes {
		return false
	}
	t.carried = 0
	if now.Sub(t.began) < turnTime {
		return false
	}
	t.began = time.Time{}
	return true
}
