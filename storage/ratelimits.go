package storage

import "time"

// ScopeType is the kind of object for which a rate limit or a budget counts.
type ScopeType string

// Scopes of rate limits and budgets.
const (
	ScopeOrganization ScopeType = "org"
	ScopeTeam         ScopeType = "team"
	ScopeUser         ScopeType = "user"
	ScopeRole         ScopeType = "role"
	ScopeGroup        ScopeType = "group"
	ScopeAPIKey       ScopeType = "api_key"
	ScopeMCPServer    ScopeType = "mcp_server"
	ScopeAgent        ScopeType = "agent"
	ScopeProject      ScopeType = "project"
	ScopeLLMProvider  ScopeType = "llm_provider"
	ScopeModel        ScopeType = "model"
	ScopeModelAlias   ScopeType = "model_alias"
)

// Scope names the objects for which a rate limit or a budget is. At most one of ID and Value is set. With neither,
// scopes that name single subjects (user, agent, ...) apply to each of them separately.
type Scope struct {
	Type  ScopeType
	ID    string // uuid of a user, agent, API key, server or provider
	Value string // the name of a group, role, team, project, alias, model, ..., compared exactly
}

// TrafficType is the kind of calls that a rate limit counts.
type TrafficType string

// Kinds of traffic.
const (
	TrafficAll TrafficType = "all"
	TrafficLLM TrafficType = "llm"
	TrafficMCP TrafficType = "mcp"
)

// RateLimit is a rate-limit policy of an organization. An organization has one for a scope and kind of traffic.
type RateLimit struct {
	ID             string
	OrganizationID string
	Name           string
	Scope          Scope
	Traffic        TrafficType
	Enabled        bool
	// RequestsPerMinute and TokensPerMinute are the limits: nil does not limit, 0 blocks. One of them at least is
	// set.
	RequestsPerMinute *int64
	TokensPerMinute   *int64
	CreatedAt         time.Time
	UpdatedAt         time.Time
}
