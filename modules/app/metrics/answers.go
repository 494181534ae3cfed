package metrics

import "github.com/prometheus/client_golang/prometheus"

// answersDropped counts messages of servers on /mcp that answer no request of the client.
var answersDropped = prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "durward", Name: "mcp_answers_dropped_total",
	Help: "Messages and events of MCP servers that did not belong to their request, by reason."}, []string{"reason"})

// CountDropped counts one dropped message by the reason.
func CountDropped(reason string) { answersDropped.WithLabelValues(reason).Inc() }
