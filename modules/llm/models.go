package llm

import (
	"net/http"

	"github.com/durward-gateway/durward/internal/identity/authn"
	"github.com/durward-gateway/durward/internal/llm/accounts"
	"github.com/durward-gateway/durward/internal/llm/wire"
	"github.com/durward-gateway/durward/modules/app"
)

// owner is the owner of models in lists.
const owner = "durward"

// serveModels answers with the models that the caller may use, or with the one of that alias.
func (h *Handler) serveModels(a *answerer, call *app.Call, alias string) {
	known, err := call.Core.Accounts.Models(a.r.Context(), call.Caller.OrganizationID)
	if err != nil {
		call.Core.LogFailure(h.Logger, "reading models", err)
		a.refuse(refusedStore)
		return
	}
	if alias != "" {
		model, ok := known.Find(alias)
		if !ok || !mayUse(call.Caller, alias) {
			a.refuse(refusedUnknown)
			return
		}
		one := []wire.Model{listed(model)}
		if a.anthropic {
			a.write(http.StatusOK, wire.AnthropicModelEntry(one[0]))
			return
		}
		a.write(http.StatusOK, wire.ModelEntry(one[0]))
		return
	}
	var list []wire.Model
	for model := range known.All {
		if mayUse(call.Caller, model.Alias) {
			list = append(list, listed(model))
		}
	}
	if a.anthropic {
		a.write(http.StatusOK, wire.AnthropicModelList(list))
		return
	}
	a.write(http.StatusOK, wire.ModelList(list))
}

func listed(m *accounts.Model) wire.Model {
	return wire.Model{ID: m.Alias, Owner: owner, Created: m.CreatedAt}
}

// mayUse reports whether the caller may use an alias of their organization: every one of them, unless a key is limited
// to some.
func mayUse(who *authn.Caller, alias string) bool {
	return who.Key == nil || who.Key.Scopes.Model(alias)
}
