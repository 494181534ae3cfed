package storage

import (
	"testing"
	"time"
)

func TestClockReading(t *testing.T) {
	t.Parallel()
	theirs := time.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC)
	for _, c := range []struct {
		name                  string
		ours, trip, precision time.Duration // ours after theirs
		want                  time.Duration
	}{
		{"they agree", 0, 0, 0, 0},
		{"ahead", 7 * time.Second, 0, 0, 7 * time.Second},
		{"behind", -7 * time.Second, 0, 0, -7 * time.Second},
		{"read at the trip's begin", 2 * time.Second, 2 * time.Second, 0, 0},
		{"read at its end", 0, 2 * time.Second, 0, 0},
		{"a slow answer proves nothing", 9 * time.Second, 9 * time.Second, 0, 0},
		{"ahead after a trip", 9 * time.Second, 2 * time.Second, 0, 7 * time.Second},
		{"behind after a trip", -7 * time.Second, 2 * time.Second, 0, -7 * time.Second},
		{"told in seconds", 7 * time.Second, 0, time.Second, 6 * time.Second},
		{"told in seconds, behind", -7 * time.Second, 0, time.Second, -6 * time.Second},
		{"ten years", 87600 * time.Hour, time.Second, 0, 87600*time.Hour - time.Second},
	} {
		r := ClockReading{Theirs: theirs, Ours: theirs.Add(c.ours), Trip: c.trip, Precision: c.precision}
		if got := r.Ahead(); got != c.want {
			t.Errorf("%s: %v, not %v", c.name, got, c.want)
		}
	}
}
