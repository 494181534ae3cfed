package app

import (
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/durward-gateway/durward/modules/app/metrics"
)

// These bounds are for clocks that differ (Z-C01): tokens, approvals and limits end too early or too late at a node
// whose clock differs from those of the others. All nodes use one database, so each compares its clock with the clock
// of the database.
const (
	// clockAlarm is the gap above which the log warns, clockRefused the one above which the node is not ready.
	clockAlarm   = 5 * time.Second
	clockRefused = time.Minute
	// clockReminder is the interval at which the log repeats a warning.
	clockReminder = time.Minute
)

// clockMend is the advice for mending it.
const clockMend = "Have both machines keep their time by NTP (chrony or systemd-timesyncd). The gateway is ready again by itself."

// ClockError says that this machine's clock and the database's are too far apart to serve.
type ClockError struct {
	// Ahead is the time by which this machine's clock is ahead, negative when it is behind.
	Ahead time.Duration
}

func (e *ClockError) Error() string {
	way := "ahead of"
	if e.Ahead < 0 {
		way = "behind"
	}
	return fmt.Sprintf("this machine's clock is %s %s the database's: tokens, approvals and limits would end too early or too late",
		e.Ahead.Abs().Round(100*time.Millisecond), way)
}

// clockWatch judges a store's reports about its database's clock.
type clockWatch struct {
	now    func() time.Time
	logger func() *zap.Logger
	ahead  atomic.Int64 // as last reported

	mu     sync.Mutex
	said   time.Duration // the bound that the last log line named; 0: none
	saidAt time.Time
}

// told judges the result of a comparison. It is called after each one.
func (w *clockWatch) told(ahead time.Duration) {
	w.ahead.Store(int64(ahead))
	metrics.SetClockAhead(ahead)
	var passed time.Duration
	switch apart := ahead.Abs(); {
	case apart > clockRefused:
		passed = clockRefused
	case apart > clockAlarm:
		passed = clockAlarm
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	// A gap close to a bound passes it again and again. Unless the gap is worse than the last one in the log, it is logged
	// only as a reminder.
	if passed <= w.said && (w.said == 0 || w.now().Sub(w.saidAt) < clockReminder) {
		return
	}
	w.said, w.saidAt = passed, w.now()
	found := zap.NamedError("found", &ClockError{ahead})
	switch passed {
	case 0:
		w.logger().Info("this machine's clock and the database's agree again")
	case clockAlarm:
		w.logger().Warn("clocks are apart", found, zap.String("mend", clockMend))
	default:
		w.logger().Error("clocks are too far apart: the gateway is not ready", found, zap.String("mend", clockMend))
	}
}

// shared converts a time of this machine's clock to the database's clock, which all nodes have in common.
func (w *clockWatch) shared(local time.Time) time.Time {
	return local.Add(-time.Duration(w.ahead.Load()))
}

// ready returns a *ClockError when the clocks are too far apart.
func (w *clockWatch) ready() error {
	if ahead := time.Duration(w.ahead.Load()); ahead.Abs() > clockRefused {
		return &ClockError{ahead}
	}
	return nil
}
