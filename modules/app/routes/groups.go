package routes

import (
	"strings"

	"github.com/durward-gateway/durward/internal/api/openapi"
)

// groups are the groups of operations in the API's description, by the first segment of a path that names a collection,
// or by the last one of a path without any.
var groups = map[string]openapi.Tag{
	"servers":            {Name: "servers", Description: "MCP servers, your connections to them, and their tools."},
	"server-directory":   {Name: "server directory", Description: "The entries from which servers are made."},
	"agents":             {Name: "agents", Description: "OAuth clients that policies can name, and their credentials."},
	"tools":              {Name: "tools", Description: "The tools of all servers, with what is accepted of each."},
	"jobs":               {Name: "jobs", Description: "Work that takes longer than a request."},
	"configuration":      {Name: "configuration", Description: "The directory, servers, agents and policies as files."},
	"config":             {Name: "settings", Description: "What the gateway's own configuration fixed."},
	"clients":            {Name: "clients", Description: "The setup of MCP clients."},
	"policies":           {Name: "policies", Description: "The rules that decide on calls."},
	"policy":             {Name: "policies", Description: "The rules that decide on calls."},
	"approvals":          {Name: "approvals", Description: "Calls that wait for a decision of their user."},
	"webhook-deliveries": {Name: "approvals", Description: "Calls that wait for a decision of their user."},
	"audit":              {Name: "audit", Description: "The audit log."},
	"organizations":      {Name: "organizations", Description: "The organizations of this gateway."},
	"me":                 {Name: "users", Description: "The users of the organization."},
	"users":              {Name: "users", Description: "The users of the organization."},
	"sessions":           {Name: "sessions", Description: "Logins of users with OAuth clients at this gateway."},
	"refused-tokens":     {Name: "refused tokens", Description: "Tokens that were refused, for setting up an identity provider."},
	"api-keys":           {Name: "API keys", Description: "Keys for models, and for MCP servers."},
	"limits":             {Name: "rate limits", Description: "Limits of requests and tokens in a minute, and their counters."},
	"rate-limits":        {Name: "rate limits", Description: "Limits of requests and tokens in a minute, and their counters."},
	"budgets":            {Name: "budgets", Description: "Amounts of money that models may cost in a period."},
	"usage":              {Name: "usage", Description: "Requests, tokens and cost that were counted."},
	"providers":          {Name: "providers", Description: "LLM providers, and the accounts at them."},
	"model-mappings":     {Name: "model aliases", Description: "Names under which callers ask for models."},
	"smart-models":       {Name: "smart models", Description: "Models that choose another one for each request."},
	"health":             {Name: "health", Description: "Checks of the process, and what its parts say of themselves."},
	"healthz":            {Name: "health", Description: "Checks of the process, and what its parts say of themselves."},
	"readyz":             {Name: "health", Description: "Checks of the process, and what its parts say of themselves."},
	"docs":               {Name: "description", Description: "The description of this API."},
	"openapi.json":       {Name: "description", Description: "The description of this API."},
}

// groupOf returns the group of an operation, with an empty name when its collection has none.
func groupOf(path string) openapi.Tag {
	last := ""
	for segment := range strings.SplitSeq(strings.Trim(path, "/"), "/") {
		if name, locates := resources[segment]; (!locates || name != "") && !isParameter(segment) {
			return groups[segment]
		}
		last = segment
	}
	return groups[last]
}
