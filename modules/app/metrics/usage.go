package metrics

import (
	"slices"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/durward-gateway/durward/internal/llm/metering"
)

// usageCounters shows the counts of the meters of this process. It reads them when Prometheus scrapes.
var usageCounters = newUsageCollector()

type usageCollector struct {
	batches, aside, unpriced, coarse, refusals, alerts, rows *prometheus.Desc

	mu     sync.Mutex
	meters []*metering.Meter
	past   metering.Stats // of meters that are closed: a counter never falls
}

// WatchUsage adds the counts of a meter that was opened.
func WatchUsage(m *metering.Meter) { usageCounters.watch(m) }

// ForgetUsage keeps the counts of a meter that was closed.
func ForgetUsage(m *metering.Meter) { usageCounters.forget(m) }

func newUsageCollector() *usageCollector {
	return &usageCollector{
		batches:  prometheus.NewDesc("durward_usage_batches_total", "Attempts to store usage, by result.", []string{"result"}, nil),
		aside:    prometheus.NewDesc("durward_usage_refused_rows_total", "Rows of usage that the store could not keep, which are set aside.", nil, nil),
		unpriced: prometheus.NewDesc("durward_usage_unpriced_requests_total", "Calls to models that no price is known of.", nil, nil),
		coarse:   prometheus.NewDesc("durward_usage_coarse_requests_total", "Calls whose usage was written down without who made them.", nil, nil),
		refusals: prometheus.NewDesc("durward_budget_refusals_total", "Calls that a budget had no room for.", nil, nil),
		alerts:   prometheus.NewDesc("durward_budget_alerts_total", "Budgets of which as much was spent as is told of.", nil, nil),
		rows:     prometheus.NewDesc("durward_usage_pending_rows", "Rows of usage that are not known to be stored.", nil, nil),
	}
}

func (c *usageCollector) watch(m *metering.Meter) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.meters = append(c.meters, m)
}

func (c *usageCollector) forget(m *metering.Meter) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if i := slices.Index(c.meters, m); i >= 0 {
		c.meters = slices.Delete(c.meters, i, i+1)
		c.past = sumStats(c.past, m.Stats())
		c.past.Rows = 0
	}
}

func sumStats(a, b metering.Stats) metering.Stats {
	return metering.Stats{
		Batches: a.Batches + b.Batches, Failures: a.Failures + b.Failures, Rows: a.Rows + b.Rows, Aside: a.Aside + b.Aside, Coarse: a.Coarse + b.Coarse,
		Unpriced: a.Unpriced + b.Unpriced, Refused: a.Refused + b.Refused, Alerts: a.Alerts + b.Alerts,
	}
}

// Describe implements prometheus.Collector.
func (c *usageCollector) Describe(descriptions chan<- *prometheus.Desc) {
	for _, d := range [...]*prometheus.Desc{c.batches, c.aside, c.unpriced, c.coarse, c.refusals, c.alerts, c.rows} {
		descriptions <- d
	}
}

// Collect implements prometheus.Collector.
func (c *usageCollector) Collect(figures chan<- prometheus.Metric) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.past
	for _, m := range c.meters {
		s = sumStats(s, m.Stats())
	}
	count := func(d *prometheus.Desc, n int64, labels ...string) {
		figures <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(n), labels...)
	}
	count(c.batches, s.Batches, "ok")
	count(c.batches, s.Failures, "failed")
	count(c.aside, s.Aside)
	count(c.unpriced, s.Unpriced)
	count(c.coarse, s.Coarse)
	count(c.refusals, s.Refused)
	count(c.alerts, s.Alerts)
	figures <- prometheus.MustNewConstMetric(c.rows, prometheus.GaugeValue, float64(s.Rows))
}
