package gatewayapi

import (
	"cmp"

	"github.com/durward-gateway/durward/internal/api/validate"
	"github.com/durward-gateway/durward/internal/llm/llmedit"
	"github.com/durward-gateway/durward/internal/ops/declare"
	"github.com/durward-gateway/durward/internal/ratelimit/limit"
	"github.com/durward-gateway/durward/modules/app/routes"
	"github.com/durward-gateway/durward/storage"
)

// limitView is the API's view of a rate limit. A number that is null does not limit.
type limitView struct {
	ID                string              `json:"id"`
	OrganizationID    string              `json:"org_id"`
	Name              string              `json:"name"`
	ScopeType         storage.ScopeType   `json:"scope_type"`
	ScopeID           *string             `json:"scope_id"`
	ScopeValue        *string             `json:"scope_value"`
	TrafficType       storage.TrafficType `json:"traffic_type"`
	Enabled           bool                `json:"enabled"`
	RequestsPerMinute *int64              `json:"requests_per_minute"`
	TokensPerMinute   *int64              `json:"tokens_per_minute"`
	CreatedAt         routes.Instant      `json:"created_at"`
	UpdatedAt         routes.Instant      `json:"updated_at"`
	ManagedByFile     bool                `json:"managed_by_file,omitempty"` // an applied file declares it
}

func (q *request) viewLimit(l storage.RateLimit) limitView {
	return limitView{
		ManagedByFile: q.ManagedByFile(declare.KindLimit, l.ID),
		ID:            l.ID, OrganizationID: l.OrganizationID, Name: l.Name, ScopeType: l.Scope.Type, ScopeID: routes.Optional(l.Scope.ID),
		ScopeValue: routes.Optional(l.Scope.Value), TrafficType: l.Traffic, Enabled: l.Enabled, RequestsPerMinute: l.RequestsPerMinute,
		TokensPerMinute: l.TokensPerMinute, CreatedAt: routes.Instant(l.CreatedAt), UpdatedAt: routes.Instant(l.UpdatedAt),
	}
}

func listLimits(q *request) (any, error) {
	if err := q.Shape(); err != nil {
		return nil, err
	}
	limits, err := q.Core.Store.RateLimits(q.Context(), q.Organization())
	return views(limits, q.viewLimit), err
}

var rateLimits = scoped[storage.RateLimit]{
	unknown: errNoLimit,
	new:     llmedit.NewLimit,
	read:    func(o *validate.Object, create bool) edit[storage.RateLimit] { return llmedit.ReadLimit(o, create) },
	view:    func(q *request, l storage.RateLimit) (any, error) { return q.viewLimit(l), nil },
	fields:  func(l *storage.RateLimit) scopedFields { return scopedFields{&l.ID, &l.UpdatedAt, l.Scope} },

	get: storage.Store.RateLimit, create: storage.Store.CreateRateLimit, update: storage.Store.UpdateRateLimit, remove: storage.Store.DeleteRateLimit,
}

// limitStatusView is a limit with the values of its counters; when each subject has its own counter, it is the fullest one.
type limitStatusView struct {
	Policy             limitView     `json:"policy"`
	RequestsUsed       int64         `json:"rpm_used"`
	RequestsLimit      int64         `json:"rpm_limit"`
	RequestsPercentage float64       `json:"rpm_percentage"`
	TokensUsed         int64         `json:"tpm_used"`
	TokensLimit        int64         `json:"tpm_limit"`
	TokensPercentage   float64       `json:"tpm_percentage"`
	Subjects           *subjectsView `json:"subjects"` // null for pools
	Degraded           bool          `json:"degraded"` // counted on this node alone
}

type subjectsView struct {
	Active int           `json:"active"`
	Usage  []subjectView `json:"fullest"`
}

type subjectView struct {
	Subject  string `json:"subject"` // an id, or the name of a subject without one
	Name     any    `json:"name"`    // of an existing subject with an id; else null
	Requests int64  `json:"rpm_used"`
	Tokens   int64  `json:"tpm_used"`
}

func (q *request) viewStatus(s limit.Status) limitStatusView {
	v := limitStatusView{
		Policy: q.viewLimit(s.Limit), RequestsUsed: s.Requests.Used, RequestsLimit: s.Requests.Limit, RequestsPercentage: s.Requests.Percentage,
		TokensUsed: s.Tokens.Used, TokensLimit: s.Tokens.Limit, TokensPercentage: s.Tokens.Percentage, Degraded: s.Degraded,
	}
	if s.Apart {
		v.Subjects = &subjectsView{Active: s.Active, Usage: views(s.Subjects, func(u limit.SubjectUsage) subjectView {
			return subjectView{Subject: u.Subject, Name: q.subjectName(s.Limit.Scope.Type, u.Subject), Requests: u.Requests, Tokens: u.Tokens}
		})}
	}
	return v
}

// subjectName returns the display name of a subject of a limit; nil for a subject that was deleted, or whose id is its
// name.
func (q *request) subjectName(scope storage.ScopeType, id string) any {
	var name string
	var err error
	switch store, organization := q.Core.Store, q.Organization(); scope {
	case storage.ScopeUser:
		var u storage.User
		u, err = store.User(q.Context(), organization, id)
		name = cmp.Or(u.Name, u.Email)
	case storage.ScopeAgent:
		var a storage.Agent
		a, err = store.Agent(q.Context(), organization, id)
		name = a.Application.Name
	case storage.ScopeAPIKey:
		var k storage.APIKey
		k, err = store.APIKey(q.Context(), organization, id)
		name = k.Name
	case storage.ScopeMCPServer:
		var s storage.Server
		s, err = store.Server(q.Context(), organization, id)
		name = s.Slug
	case storage.ScopeLLMProvider:
		if configured, ok := q.Core.Accounts.ConfiguredAccount(id); ok {
			return configured.Name
		}
		var p storage.LLMProvider
		p, err = store.LLMProvider(q.Context(), organization, id)
		name = p.Name
	}
	if err != nil || name == "" {
		return nil
	}
	return name
}

// limitStatus shows the enabled limits with their use in the last minute, as counted by the counters that enforce them.
func limitStatus(q *request) (any, error) {
	if err := q.Shape(); err != nil {
		return nil, err
	}
	found, err := q.Core.Admitter.Status(q.Context(), q.Organization())
	return views(found, q.viewStatus), err
}
