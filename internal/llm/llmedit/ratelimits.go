package llmedit

import (
	"time"

	"github.com/durward-gateway/durward/internal/api/validate"
	"github.com/durward-gateway/durward/storage"
)

// NewLimit returns a rate limit with the defaults.
func NewLimit(organization string, now time.Time) storage.RateLimit {
	return storage.RateLimit{OrganizationID: organization, Traffic: storage.TrafficAll, Enabled: true, CreatedAt: now, UpdatedAt: now}
}

// LimitEdit holds what was written about a rate limit.
type LimitEdit struct {
	name, traffic    validate.Field[string]
	enabled          validate.Field[bool]
	scope            scopeEdit
	requests, tokens validate.Field[int64]
}

// ReadLimit reads a rate limit.
func ReadLimit(o *validate.Object, create bool) LimitEdit {
	return LimitEdit{
		name:  o.Name(required(create), MaxName),
		scope: readScope(o, create),
		traffic: o.Text("traffic_type", validate.Text{
			Enum: []string{string(storage.TrafficAll), string(storage.TrafficLLM), string(storage.TrafficMCP)},
		}),
		enabled:  o.Bool("enabled", 0),
		requests: o.Int("requests_per_minute", validate.Integer{Flags: validate.Nullable}),
		tokens:   o.Int("tokens_per_minute", validate.Integer{Flags: validate.Nullable}),
	}
}

// Apply changes a limit and returns the problems of the whole limit after the change.
func (e LimitEdit) Apply(l *storage.RateLimit) validate.Problems {
	set(&l.Name, e.name)
	set(&l.Enabled, e.enabled)
	e.scope.apply(&l.Scope, l.OrganizationID)
	if e.traffic.Set() {
		l.Traffic = storage.TrafficType(e.traffic.Value)
	}
	if e.requests.Present {
		l.RequestsPerMinute = e.requests.Ptr()
	}
	if e.tokens.Present {
		l.TokensPerMinute = e.tokens.Ptr()
	}
	found := checkScope(l.Scope)
	if l.RequestsPerMinute == nil && l.TokensPerMinute == nil {
		found = append(found, validate.Problem{
			Loc: []any{"body", "requests_per_minute"}, Msg: "Value error, give requests_per_minute or tokens_per_minute", Type: validate.ValueError,
		})
	}
	misfit := false
	switch l.Scope.Type {
	case storage.ScopeMCPServer:
		misfit = l.Traffic == storage.TrafficLLM
	case storage.ScopeLLMProvider, storage.ScopeModel, storage.ScopeModelAlias:
		misfit = l.Traffic == storage.TrafficMCP
	}
	if misfit {
		found = append(found, validate.Problem{
			Loc: []any{"body", "traffic_type"}, Msg: "Value error, no " + string(l.Traffic) + " traffic has a scope of the type " + string(l.Scope.Type),
			Type: validate.ValueError,
		})
	}
	return found
}
