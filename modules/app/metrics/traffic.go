package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/durward-gateway/durward/internal/mcp/method"
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

// ObserveMCP notes the time until the response headers of an upstream of /mcp. traceID names the recorded trace of the
// call; "" for none.
func (m *Traffic) ObserveMCP(took time.Duration, traceID string) {
	if m.mcpSeconds == nil {
		m.ObserveUpstream("mcp", took, traceID)
		return
	}
	observe(m.mcpSeconds, took, traceID)
}

// ObserveUpstream does the work of ObserveMCP for each family.
func (m *Traffic) ObserveUpstream(family string, took time.Duration, traceID string) {
	if m.UpstreamSeconds != nil {
		observe(m.UpstreamSeconds.WithLabelValues(family), took, traceID)
	}
}

// messageSeconds follows OpenTelemetry's conventions for MCP clients, in names, labels and buckets. The names of tools are
// left out: servers choose them.
var messageSeconds = prometheus.NewHistogramVec(prometheus.HistogramOpts{
	Name: "mcp_client_operation_duration_seconds", Help: "Time of each request to an MCP server, to the end of its answer.",
	Buckets: []float64{0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300},
}, []string{"mcp_method_name", "error_type"})

// toolSeconds is for every usual call and is looked up once.
var toolSeconds = messageSeconds.WithLabelValues(toolsCall, "")

const toolsCall = "tools/call"

// ObserveMessage notes the time of a request to an MCP server.
func ObserveMessage(name, outcome string, took time.Duration, traceID string) {
	if name == toolsCall && outcome == "ok" {
		observe(toolSeconds, took, traceID)
		return
	}
	if method.Of(name, false) == method.Unknown { // with `durward_policy off`, clients may send any name
		name = "_OTHER"
	}
	observe(messageSeconds.WithLabelValues(name, errorLabel(outcome)), took, traceID)
}

// observe notes a time, with the trace of one that a collector has as an example.
func observe(by prometheus.Observer, took time.Duration, traceID string) {
	if examples, ok := by.(prometheus.ExemplarObserver); ok && traceID != "" {
		examples.ObserveWithExemplar(took.Seconds(), prometheus.Labels{"trace_id": traceID})
		return
	}
	by.Observe(took.Seconds())
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
