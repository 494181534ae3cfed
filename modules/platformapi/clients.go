package platformapi

import (
	"github.com/durward-gateway/durward/internal/api/slug"
	"github.com/durward-gateway/durward/internal/api/snippets"
	"github.com/durward-gateway/durward/internal/api/validate"
	"github.com/durward-gateway/durward/internal/identity/refused"
	"github.com/durward-gateway/durward/modules/app/paths"
)

// snippetsView holds the texts that tell clients about a server.
type snippetsView struct {
	Server string             `json:"server"`
	URL    string             `json:"url"`
	Data   []snippets.Snippet `json:"data"`
}

func clientSnippets(q *request) (any, error) {
	name := q.Query.Text("server", validate.Text{Flags: validate.Required, Min: 1, Max: slug.MaxLength}).Value
	if name != "" && !slug.Valid(name) {
		q.Query.Report(validate.StringPatternMismatch, "String should match pattern '"+slug.Pattern+"'", "server")
	}
	if err := q.Shape(); err != nil {
		return nil, err
	}
	server, err := q.view(serverRef{slug: name})
	if err != nil {
		return nil, err
	}
	address := q.Core.PublicURL + paths.MCPPrefix + server.Slug
	return snippetsView{Server: server.Slug, URL: address, Data: snippets.For(address, server.Slug)}, nil
}

// refusedTokensView is the answer of GET /api/refused-tokens.
type refusedTokensView struct {
	Tokens []refused.Entry `json:"tokens"`
}

// listRefusedTokens shows the tokens that this node refused within the last hour.
func listRefusedTokens(q *request) (any, error) {
	if err := q.Shape(); err != nil {
		return nil, err
	}
	return refusedTokensView{append([]refused.Entry{}, q.Core.Refused.SeenBy(q.Call.Caller)...)}, nil
}
