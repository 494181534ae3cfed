package logwriter

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
)

// dropped exists once per process: every configuration brings a new registry, and writers outlive configurations.
var dropped = prometheus.NewCounter(prometheus.CounterOpts{Namespace: "durward", Name: "log_lines_dropped_total",
	Help: "Lines of logs that were dropped because nobody read them or they could not be written."})

func registerMetrics(registry *prometheus.Registry) error {
	var registered prometheus.AlreadyRegisteredError
	if err := registry.Register(dropped); err != nil && !errors.As(err, &registered) {
		return err
	}
	return nil
}

func countDropped(lines int) { dropped.Add(float64(lines)) }
