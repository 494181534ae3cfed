package metrics

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/durward-gateway/durward/internal/llm/smart"
)

// modelTokens counts the tokens of calls to models.
var modelTokens = prometheus.NewCounterVec(prometheus.CounterOpts{
	Namespace: "durward", Name: "llm_tokens_total", Help: "Tokens of calls to models, by direction; cached ones are input ones too.",
}, []string{"direction"})

// These are the counters of each direction, looked up once.
var (
	inputTokens  = modelTokens.WithLabelValues("input")
	outputTokens = modelTokens.WithLabelValues("output")
	cachedTokens = modelTokens.WithLabelValues("cached")
)

// modelRoutes counts the decisions of smart models. A slot is its index, of which there are few.
var modelRoutes = prometheus.NewCounterVec(prometheus.CounterOpts{
	Namespace: "durward", Name: "llm_routes_total", Help: "Decisions of smart models, by their reason and the index of the slot.",
}, []string{"reason", "slot"})

// CountModelTokens counts the tokens of a call to a model. cached is a part of input.
func CountModelTokens(input, output, cached int64) {
	inputTokens.Add(float64(max(input, 0)))
	outputTokens.Add(float64(max(output, 0)))
	cachedTokens.Add(float64(max(cached, 0)))
}

// CountModelRoute counts a decision of a smart model.
func CountModelRoute(d smart.Decision) {
	modelRoutes.WithLabelValues(string(d.Reason), strconv.Itoa(d.Slot)).Inc()
}
