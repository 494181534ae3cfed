package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/durward-gateway/durward/internal/ratelimit/limit"
	"github.com/durward-gateway/durward/storage"
)

var (
	// limitRefusals counts the calls that limits refused, by the kind of traffic, the place, and the counted unit.
	limitRefusals = prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "durward", Name: "limit_refusals_total",
		Help: "What rate limits refused, by the kind of traffic, where, and what was counted."}, []string{"traffic", "where", "measure"})
	// limitCounters is the number of counters that this process keeps.
	limitCounters = prometheus.NewGauge(prometheus.GaugeOpts{Namespace: "durward", Name: "limit_counters",
		Help: "Counters of rate limits in memory, as of the last sweep."})
	// limitDegraded shows whether this process counts alone although it should count with others.
	limitDegraded = prometheus.NewGauge(prometheus.GaugeOpts{Namespace: "durward", Name: "limit_degraded",
		Help: "1 while the counters that nodes share cannot be reached."})
	// limitAlone counts the decisions that were made meanwhile.
	limitAlone = prometheus.NewCounter(prometheus.CounterOpts{Namespace: "durward", Name: "limit_alone_total",
		Help: "Charges that did not reach the counters that nodes share."})
)

// CountLimited counts a call that a limit refused.
func CountLimited(traffic storage.TrafficType, where string, measure limit.Measure) {
	limitRefusals.WithLabelValues(string(traffic), where, string(measure)).Inc()
}

// AddLimitCounters adds a change of the number of counters that this process keeps.
func AddLimitCounters(delta int) { limitCounters.Add(float64(delta)) }

// CountAlone counts a charge that did not reach the counters that nodes share.
func CountAlone() { limitAlone.Inc() }

// SetAlone notes that counters which nodes share cannot be reached, or can be reached again.
func SetAlone(alone bool) {
	if alone {
		limitDegraded.Inc()
	} else {
		limitDegraded.Dec()
	}
}
