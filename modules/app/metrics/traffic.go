package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Traffic holds the collectors of requests and connections, which handlers use directly.
type Traffic struct {
	// Authentications counts verified requests by result: ok, missing, invalid, forbidden, limited,
	// unavailable.
	Authentications *prometheus.CounterVec
	// Calls counts proxied requests by family (mcp, sse, llm) and result: ok, refused, denied, limited, unavailable,
	// not_connected, upstream_error, client_gone and further refusals of the gateway's.
	Calls *prometheus.CounterVec
	// UpstreamSeconds is the time until an upstream's response headers, by family.
	UpstreamSeconds *prometheus.HistogramVec
	// Streams is the number of open event streams, by family.
	Streams *prometheus.GaugeVec
	// Connections counts connection events: connected, failed, refreshed, refresh_failed, broken, disconnected.
	Connections *prometheus.CounterVec

	// These counters are for every usual call and are looked up once: Authentications of result ok, Calls of mcp and ok,
	// UpstreamSeconds of mcp. They are nil in a Traffic that a test has made.
	authenticated, called prometheus.Counter
	mcpSeconds            prometheus.Observer
}

// CountAuthentication counts a request by the result of its authentication.
func (m *Traffic) CountAuthentication(result string) {
	if result == "ok" && m.authenticated != nil {
		m.authenticated.Inc()
		return
	}
	m.Authentications.WithLabelValues(result).Inc()
}

// CountMCP counts a request to /mcp by its result.
func (m *Traffic) CountMCP(result string) {
	if result == "ok" && m.called != nil {
		m.called.Inc()
		return
	}
	m.Calls.WithLabelValues("mcp", result).Inc()
}

// ObserveMCP notes the time until the response headers of an upstream of /mcp.
func (m *Traffic) ObserveMCP(took time.Duration) {
	if m.mcpSeconds == nil {
		m.UpstreamSeconds.WithLabelValues("mcp").Observe(took.Seconds())
		return
	}
	m.mcpSeconds.Observe(took.Seconds())
}

var traffic = newTraffic()

func newTraffic() *Traffic {
	const namespace = "durward"
	m := &Traffic{
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
	m.authenticated = m.Authentications.WithLabelValues("ok")
	m.called = m.Calls.WithLabelValues("mcp", "ok")
	m.mcpSeconds = m.UpstreamSeconds.WithLabelValues("mcp")
	return m
}
