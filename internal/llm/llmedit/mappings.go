package llmedit

import (
	"regexp"

	"github.com/durward-gateway/durward/internal/api/validate"
	"github.com/durward-gateway/durward/internal/identity/apikey"
	"github.com/durward-gateway/durward/internal/llm/accounts"
	"github.com/durward-gateway/durward/storage"
)

// These are the bounds of models.
const (
	maxTargets     = 32
	maxFallbacks   = 32
	maxDescription = 4096
)

// Alias is the rule for aliases of models.
var Alias = validate.Text{Pattern: regexp.MustCompile(apikey.AliasPattern)}

// aliasField reads the alias that a record is for.
func aliasField(o *validate.Object, create bool) validate.Field[string] {
	return o.Text("model_alias", validate.Text{Flags: required(create), Pattern: Alias.Pattern})
}

func descriptionField(o *validate.Object) validate.Field[string] {
	return o.Text("description", validate.Text{Flags: validate.Nullable, Max: maxDescription})
}

// MappingEdit holds what was written about a mapping.
type MappingEdit struct {
	alias, description validate.Field[string]
	targets            validate.Field[[]storage.ModelTarget]
	fallbacks          validate.Field[[]string]
	maxOutput          validate.Field[int64]
}

// ReadMapping reads an alias for models.
func ReadMapping(o *validate.Object, create bool) MappingEdit {
	e := MappingEdit{alias: aliasField(o, create), description: descriptionField(o)}
	targets := o.Objects("targets", validate.List{Flags: required(create), Min: 1, Max: maxTargets})
	e.targets = validate.Field[[]storage.ModelTarget]{Present: targets.Present}
	for _, t := range targets.Value {
		e.targets.Value = append(e.targets.Value, storage.ModelTarget{
			ProviderID: t.Text("provider_id", validate.Text{Flags: validate.Required, Min: 1, Max: MaxName}).Value,
			Model:      t.Text("model", validate.Text{Flags: validate.Required, Min: 1, Max: MaxName}).Value,
			Weight:     int(t.Int("weight", validate.Integer{Max: accounts.MaxWeight}).Value),
			Timeouts:   readTimeouts(t).Value,
		})
	}
	e.maxOutput = o.Int("max_output_tokens", validate.Integer{Flags: validate.Nullable, Min: 1, Max: accounts.MaxOutput})
	e.fallbacks = o.Texts("fallbacks", validate.List{Flags: validate.Nullable, Max: maxFallbacks}, Alias)
	return e
}

// Apply changes a mapping.
func (e MappingEdit) Apply(m *storage.ModelMapping) {
	set(&m.Alias, e.alias)
	replace(&m.Description, e.description)
	set(&m.Targets, e.targets)
	replace(&m.Fallbacks, e.fallbacks)
	replace(&m.MaxOutputTokens, e.maxOutput)
}
