package readiness

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

// Clock judges a store's reports about its database's clock.
type Clock struct {
	now    func() time.Time
	logger func() *zap.Logger
	ahead  atomic.Int64 // as last reported

	mu     sync.Mutex
	said   time.Duration // the bound that the last log line named; 0: none
	saidAt time.Time
}

// NewClock makes a clock that agrees with the database's until it is told otherwise.
func NewClock(now func() time.Time, logger func() *zap.Logger) *Clock {
	return &Clock{now: now, logger: logger}
}

// Told judges the result of a comparison. It is called after each one.
func (w *Clock) Told(ahead time.Duration) {
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

// Shared converts a time of this machine's clock to the clock of the database, which all nodes have in common. Times
// that are compared with those of other nodes must be converted: a revocation by a node whose clock is behind would
// otherwise spare tokens, sessions and keys that were made before it (Z-C01). w is nil in tests, whose clock is their own.
func (w *Clock) Shared(local time.Time) time.Time {
	if w == nil {
		return local
	}
	return local.Add(-time.Duration(w.ahead.Load()))
}

// ready returns a *ClockError when the clocks are too far apart.
func (w *Clock) ready() error {
	if w == nil {
		return nil
	}
	if ahead := time.Duration(w.ahead.Load()); ahead.Abs() > clockRefused {
		return &ClockError{ahead}
	}
	return nil
}
