package metrics

import (
	"strconv"
	"time"

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

// errorLabel returns the label error_type of OpenTelemetry's conventions: "", which is no label, for success.
func errorLabel(outcome string) string {
	if outcome == "ok" {
		return ""
	}
	return outcome
}

// These follow OpenTelemetry's conventions for clients of models, in names, labels and buckets. The names of models are
// left out: administrators choose them.
var (
	modelUsage = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "gen_ai_client_token_usage", Help: "Tokens of each call to a provider of models.", Buckets: prometheus.ExponentialBuckets(1, 4, 14),
	}, []string{"gen_ai_operation_name", "gen_ai_provider_name", "gen_ai_token_type"})
	modelSeconds = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "gen_ai_client_operation_duration_seconds", Help: "Time of each call to a provider of models, to the end of its answer.", Buckets: prometheus.ExponentialBuckets(0.01, 2, 14),
	}, []string{"gen_ai_operation_name", "gen_ai_provider_name", "error_type"})
)

// ModelCall is a call to a provider of models that has ended.
type ModelCall struct {
	Operation, Provider string
	Outcome             string
	Took                time.Duration
	Input, Output       int64
	TraceID             string // of the recorded trace of the call; "" for none
}

// CountModelCall counts a call to a provider.
func CountModelCall(c ModelCall) {
	observe(modelSeconds.WithLabelValues(c.Operation, c.Provider, errorLabel(c.Outcome)), c.Took, c.TraceID)
	if c.Input > 0 {
		modelUsage.WithLabelValues(c.Operation, c.Provider, "input").Observe(float64(c.Input))
	}
	if c.Output > 0 {
		modelUsage.WithLabelValues(c.Operation, c.Provider, "output").Observe(float64(c.Output))
	}
}

// CountModelRoute counts a decision of a smart model.
func CountModelRoute(d smart.Decision) {
	modelRoutes.WithLabelValues(string(d.Reason), strconv.Itoa(d.Slot)).Inc()
}
