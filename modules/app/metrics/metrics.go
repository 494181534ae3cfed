// Package metrics holds the gateway's collectors for Prometheus. No label names a user, an organization, a key or an
// argument: their number would have no bound, and readers of metrics have no right to read them.
//
// The collectors exist once per process. Every configuration brings a new registry, and counters must not restart with
// it.
package metrics

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
)

// Register adds all collectors to the registry of a configuration. It returns those that handlers use directly.
func Register(registry *prometheus.Registry) (*Traffic, error) {
	for _, collector := range []prometheus.Collector{
		traffic.Authentications, traffic.Calls, traffic.UpstreamSeconds, traffic.Streams, traffic.Connections, auditCounters, usageCounters,
		limitRefusals, limitCounters, limitDegraded, limitAlone, modelTokens, modelRoutes, modelUsage, modelSeconds, messageSeconds, clockAhead, storeFailing, answersDropped, announcements,
	} {
		var registered prometheus.AlreadyRegisteredError
		if err := registry.Register(collector); err != nil && !errors.As(err, &registered) {
			return nil, err
		}
	}
	return traffic, nil
}
