package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

var (
	// clockAhead is the time by which this machine's clock is ahead of the database's.
	clockAhead = prometheus.NewGauge(prometheus.GaugeOpts{Namespace: "durward", Name: "clock_ahead_seconds",
		Help: "By how much this machine's clock is ahead of the database's at the least, negative when it is behind."})
	// storeFailing is 1 while the store fails requests.
	storeFailing = prometheus.NewGauge(prometheus.GaugeOpts{Namespace: "durward", Name: "store_failing",
		Help: "1 while requests are refused because the store is away, out of time, full or read-only."})
)

// SetClockAhead shows by how much this machine's clock is ahead of the database's. It is negative when it is behind.
func SetClockAhead(ahead time.Duration) { clockAhead.Set(ahead.Seconds()) }

// SetStoreFailing shows whether the store fails requests.
func SetStoreFailing(failing bool) {
	if failing {
		storeFailing.Set(1)
	} else {
		storeFailing.Set(0)
	}
}
