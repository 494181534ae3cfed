package app

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
)

// Metrics are the gateway's collectors. No label names a user, an organization, a key or an argument: their number would
// have no bound, and whoever may read metrics may not read those.
type Metrics struct {
	// Authentications counts verified requests by result: ok, missing, invalid, forbidden, unavailable.
	Authentications *prometheus.CounterVec
	// Calls counts proxied requests by family (mcp, sse) and result: the class of the status, or the gateway's refusal.
	Calls *prometheus.CounterVec
	// UpstreamSeconds is the time until an upstream's response headers, by family.
	UpstreamSeconds *prometheus.HistogramVec
	// Streams is the number of open event streams, by family.
	Streams *prometheus.GaugeVec
	// Connections counts connection events: connected, failed, refreshed, refresh_failed, broken, disconnected.
	Connections *prometheus.CounterVec
}

// metrics exist once per process: every configuration brings a new registry, and counters must not restart with it.
var metrics = newMetrics()

func newMetrics() *Metrics {
	const namespace = "durward"
	return &Metrics{
		Authentications: prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: namespace, Name: "authentications_total",
			Help: "Requests by the result of their authentication."}, []string{"result"}),
		Calls: prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: namespace, Name: "calls_total",
			Help: "Proxied requests by family and result."}, []string{"family", "result"}),
		UpstreamSeconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{Namespace: namespace, Name: "upstream_response_seconds",
			Help: "Time until the response headers of an upstream.", Buckets: prometheus.ExponentialBuckets(0.001, 4, 10)}, []string{"family"}),
		Streams: prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: namespace, Name: "open_streams",
			Help: "Event streams that are open now."}, []string{"family"}),
		Connections: prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: namespace, Name: "connection_events_total",
			Help: "What happened to users' connections to third parties."}, []string{"event"}),
	}
}

func registerMetrics(registry *prometheus.Registry) (*Metrics, error) {
	for _, collector := range []prometheus.Collector{metrics.Authentications, metrics.Calls, metrics.UpstreamSeconds, metrics.Streams, metrics.Connections, auditCounters} {
		var registered prometheus.AlreadyRegisteredError
		if err := registry.Register(collector); err != nil && !errors.As(err, &registered) {
			return nil, err
		}
	}
	return metrics, nil
}
