package forward

import (
	"testing"
	"time"
)

// TestTurn: an answer that never waits gives way after its time, one that is slow only each 64 KiB.
func TestTurn(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name  string
		piece int           // bytes
		every time.Duration // between two pieces
		bytes int           // in all
		turns int           // that ended
	}{
		{"fast", 16 << 10, 10 * time.Microsecond, 32 << 20, 10}, // 2,048 pieces in 20.5 ms
		{"fast in small pieces", 1 << 10, time.Microsecond, 8 << 20, 4}, // 8,192 in 8.2 ms
		{"slow", 1 << 10, time.Millisecond, 1 << 20, 16},
		{"events", 100, time.Second, 60_000, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var turn turn
			now, turns := time.Unix(1_800_000_000, 0), 0
			for carried := 0; carried < test.bytes; carried += test.piece {
				if turn.over(test.piece, now) {
					turns++
				}
				now = now.Add(test.every)
			}
			if turns != test.turns {
				t.Errorf("%d turns, want %d", turns, test.turns)
			}
		})
	}
}
