package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/durward-gateway/durward/internal/policy/announce"
)

// announcements counts the attempts to tell a receiver about a held call.
var announcements = prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "durward", Name: "announcements_total",
	Help: "Attempts to announce a held call, by the kind of the receiver and the result."}, []string{"kind", "result"})

// CountAnnouncement counts an attempt to tell a receiver about a held call.
func CountAnnouncement(kind announce.Kind, result string) {
	announcements.WithLabelValues(string(kind), result).Inc()
}
