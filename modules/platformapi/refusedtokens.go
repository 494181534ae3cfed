package platformapi

import "github.com/durward-gateway/durward/internal/identity/refused"

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
