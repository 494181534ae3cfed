package app

import "github.com/prometheus/client_golang/prometheus"

// answersDropped counts what servers sent on /mcp that no request of the client's asked for.
var answersDropped = prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "durward", Name: "mcp_answers_dropped_total",
	Help: "Messages and events of MCP servers that did not belong to their request, by reason."}, []string{"reason"})

// CountDropped counts one by the reason for which it was dropped.
func CountDropped(reason string) { answersDropped.WithLabelValues(reason).Inc() }
