package app

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

// countLimited counts a call that a limit refused.
func countLimited(traffic storage.TrafficType, where string, measure limit.Measure) {
	limitRefusals.WithLabelValues(string(traffic), where, string(measure)).Inc()
}

// keptLimitCounters adds a change of the number of counters that this process keeps.
func keptLimitCounters(delta int) { limitCounters.Add(float64(delta)) }
