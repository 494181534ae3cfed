package platformapi

import (
	"cmp"
	"slices"

	"github.com/durward-gateway/durward/internal/llm/llmedit"
	"github.com/durward-gateway/durward/internal/ratelimit/limit"
	"github.com/durward-gateway/durward/modules/app/routes"
	"github.com/durward-gateway/durward/storage"
)

// ownLimitsView shows what bounds the caller, and how much of it is used.
type ownLimitsView struct {
	RateLimits []ownLimitView  `json:"rate_limits"`
	Budgets    []ownBudgetView `json:"budgets"`
}

// ownLimitView is a rate limit with its use in the last minute: the caller's own, or that of all who share the limit.
type ownLimitView struct {
	ID                 string              `json:"id"`
	Name               string              `json:"name"`
	ScopeType          storage.ScopeType   `json:"scope_type"`
	TrafficType        storage.TrafficType `json:"traffic_type"`
	Shared             bool                `json:"shared"`
	RequestsUsed       int64               `json:"rpm_used"`
	RequestsLimit      *int64              `json:"rpm_limit"` // null: requests are not limited
	RequestsPercentage float64             `json:"rpm_percentage"`
	TokensUsed         int64               `json:"tpm_used"`
	TokensLimit        *int64              `json:"tpm_limit"`
	TokensPercentage   float64             `json:"tpm_percentage"`
	Degraded           bool                `json:"degraded"` // counted on this node alone
}

// ownBudgetView is a budget with what is spent of it in the present period.
type ownBudgetView struct {
	ID          string               `json:"id"`
	Name        string               `json:"name"`
	ScopeType   storage.ScopeType    `json:"scope_type"`
	Shared      bool                 `json:"shared"`
	Period      storage.BudgetPeriod `json:"period"`
	PeriodStart routes.Instant       `json:"period_start"`
	Amount      llmedit.Amount       `json:"amount"`
	Spent       llmedit.Amount       `json:"spent"`
	Reserved    llmedit.Amount       `json:"reserved"` // for running calls
	HardStop    bool                 `json:"hard_stop"`
}

// listOwnLimits shows the rate limits and budgets that count the caller, whatever they call, from the counters that enforce
// them. Those for a server, provider, model or key depend on the call, and are left out.
func listOwnLimits(q *request) (any, error) {
	if err := q.Shape(); err != nil {
		return nil, err
	}
	v := ownLimitsView{RateLimits: []ownLimitView{}, Budgets: []ownBudgetView{}}
	var subject limit.Subject
	for _, traffic := range []storage.TrafficType{storage.TrafficMCP, storage.TrafficLLM} {
		subject = q.Call.Admission().LimitSubject(traffic)
		found, err := q.Core.Admitter.StatusOf(q.Context(), q.Organization(), &subject)
		if err != nil {
			return nil, err
		}
		for _, s := range found {
			if !slices.ContainsFunc(v.RateLimits, func(seen ownLimitView) bool { return seen.ID == s.Limit.ID }) {
				v.RateLimits = append(v.RateLimits, viewOwnLimit(&s))
			}
		}
	}
	slices.SortFunc(v.RateLimits, func(a, b ownLimitView) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID)) })
	spendings, err := q.Core.Usage.Spendings(q.Context(), q.Organization(), subject)
	if err != nil {
		return nil, err
	}
	for _, s := range spendings {
		b := &s.Budget
		v.Budgets = append(v.Budgets, ownBudgetView{
			ID: b.ID, Name: b.Name, ScopeType: b.Scope.Type, Shared: !s.Apart && b.Scope.Type != storage.ScopeUser, Period: b.Period, PeriodStart: routes.Instant(s.Start),
			Amount: llmedit.Amount(b.Amount), Spent: llmedit.Amount(s.Spent), Reserved: llmedit.Amount(s.Reserved), HardStop: b.HardStop,
		})
	}
	return v, nil
}

func viewOwnLimit(s *limit.Status) ownLimitView {
	return ownLimitView{
		ID: s.Limit.ID, Name: s.Limit.Name, ScopeType: s.Limit.Scope.Type, TrafficType: s.Limit.Traffic, Shared: !s.Apart && s.Limit.Scope.Type != storage.ScopeUser,
		RequestsUsed: s.Requests.Used, RequestsLimit: s.Limit.RequestsPerMinute, RequestsPercentage: s.Requests.Percentage,
		TokensUsed: s.Tokens.Used, TokensLimit: s.Limit.TokensPerMinute, TokensPercentage: s.Tokens.Percentage, Degraded: s.Degraded,
	}
}
