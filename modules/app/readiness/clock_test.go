package readiness

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

// TestClockWatch checks the effect of a gap between the clocks, and how often the log reports it (Z-C01).
func TestClockWatch(t *testing.T) {
	core, logs := observer.New(zap.InfoLevel)
	now := time.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC)
	w := &Clock{now: func() time.Time { return now }, logger: func() *zap.Logger { return zap.New(core) }}
	for _, c := range []struct {
		name  string
		later time.Duration
		ahead time.Duration
		logs  []string
		ready bool
	}{
		{"they agree", 0, 0, nil, true},
		{"at the bound", time.Second, clockAlarm, nil, true},
		{"over it", time.Second, clockAlarm + time.Millisecond, []string{"warn"}, true},
		{"still", time.Second, 6 * time.Second, nil, true},
		{"about the bound, within", time.Second, 4 * time.Second, nil, true},
		{"about the bound, over", time.Second, -6 * time.Second, nil, true},
		{"at the other bound", time.Second, -clockRefused, nil, true},
		{"over that at once, behind", time.Second, -clockRefused - time.Millisecond, []string{"error"}, false},
		{"under it", time.Second, -59 * time.Second, nil, true},
		{"over it again", time.Second, 5 * time.Minute, nil, false},
		{"a reminder", clockReminder, 87600 * time.Hour, []string{"error"}, false},
		{"less", clockReminder, 30 * time.Second, []string{"warn"}, true},
		{"a step back", time.Second, 0, nil, true},
		{"for a minute", clockReminder, time.Second, []string{"info"}, true},
		{"and for good", clockReminder, 0, nil, true},
		{"anew", time.Second, -time.Hour, []string{"error"}, false},
	} {
		now = now.Add(c.later)
		w.Told(c.ahead)
		if shared := w.Shared(now); !shared.Equal(now.Add(-c.ahead)) {
			t.Errorf("%s: by the database's clock it is %v", c.name, shared)
		}
		var said []string
		for _, entry := range logs.TakeAll() {
			said = append(said, entry.Level.String())
		}
		if diff := cmp.Diff(c.logs, said); diff != "" {
			t.Errorf("%s: the log %s", c.name, diff)
		}
		err := w.ready()
		if (err == nil) != c.ready {
			t.Errorf("%s: %v", c.name, err)
		}
		if err != nil {
			details := Refusal(err).Details
			if diff := cmp.Diff([]string{"clock"}, details["missing"]); diff != "" || details["clock"] != err.Error() || !strings.Contains(details["mend"].(string), "NTP") {
				t.Errorf("%s: /readyz says %v", c.name, details)
			}
			way := map[bool]string{true: "ahead of", false: "behind"}[c.ahead > 0]
			if !errors.As(err, new(*ClockError)) || !strings.Contains(err.Error(), way) {
				t.Errorf("%s: %v", c.name, err)
			}
		}
	}
}
