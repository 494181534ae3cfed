package metrics

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/durward-gateway/durward/internal/audit"
)

// auditCounters shows the records that the audit logs of this process could not keep or pass on. It reads the numbers
// when Prometheus scrapes: calls pay nothing for it.
var auditCounters = &auditCollector{
	lost: prometheus.NewDesc("durward_audit_lost_total", "Audit records that could not be kept or passed on, by where.", []string{"where"}, nil),
	past: make(map[string]int64),
}

type auditCollector struct {
	lost *prometheus.Desc

	mu     sync.Mutex
	trails []*audit.Trail
	past   map[string]int64 // of trails that are closed: a counter never falls
}

// WatchAudit adds the losses of an audit log that was opened.
func WatchAudit(t *audit.Trail) { auditCounters.watch(t) }

// ForgetAudit keeps the losses of an audit log that is about to be closed.
func ForgetAudit(t *audit.Trail) { auditCounters.forget(t) }

func (c *auditCollector) watch(t *audit.Trail) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.trails = append(c.trails, t)
}

func (c *auditCollector) forget(t *audit.Trail) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, watched := range c.trails {
		if watched == t {
			c.trails = append(c.trails[:i:i], c.trails[i+1:]...)
			for where, n := range t.Losses() {
				c.past[where] += n
			}
		}
	}
}

// Describe implements prometheus.Collector.
func (c *auditCollector) Describe(descriptions chan<- *prometheus.Desc) { descriptions <- c.lost }

// Collect implements prometheus.Collector.
func (c *auditCollector) Collect(figures chan<- prometheus.Metric) {
	c.mu.Lock()
	defer c.mu.Unlock()
	lost := make(map[string]int64)
	for where, n := range c.past {
		lost[where] += n
	}
	for _, t := range c.trails {
		for where, n := range t.Losses() {
			lost[where] += n
		}
	}
	for where, n := range lost {
		figures <- prometheus.MustNewConstMetric(c.lost, prometheus.CounterValue, float64(n), where)
	}
}
