package gatewayapi

import (
	"regexp"

	"github.com/durward-gateway/durward/internal/api/validate"
	"github.com/durward-gateway/durward/internal/identity/apikey"
	"github.com/durward-gateway/durward/internal/llm/accounts"
	"github.com/durward-gateway/durward/modules/app/routes"
	"github.com/durward-gateway/durward/storage"
)

// These are the bounds of models.
const (
	maxTargets     = 32
	maxFallbacks   = 32
	maxDescription = 4096
)

var (
	aliasText = regexp.MustCompile(apikey.AliasPattern)
	alias     = validate.Text{Pattern: aliasText}
)

// aliasField reads the alias that a record is for.
func aliasField(o *validate.Object, create bool) validate.Field[string] {
	return o.Text("model_alias", validate.Text{Flags: required(create), Pattern: aliasText})
}

func descriptionField(o *validate.Object) validate.Field[string] {
	return o.Text("description", validate.Text{Flags: validate.Nullable, Max: maxDescription})
}

type targetView struct {
	ProviderID string       `json:"provider_id"`
	Model      string       `json:"model"`
	Weight     int          `json:"weight"`
	Timeouts   timeoutsView `json:"timeouts"`
}

// mappingView is the API's view of a mapping.
type mappingView struct {
	ID             string         `json:"id"`
	OrganizationID string         `json:"org_id"`
	Alias          string         `json:"model_alias"`
	Description    string         `json:"description"`
	Targets        []targetView   `json:"targets"`
	Fallbacks      []string       `json:"fallbacks"`
	MaxOutput      *int64         `json:"max_output_tokens"` // null: the gateway's
	CreatedAt      routes.Instant `json:"created_at"`
	UpdatedAt      routes.Instant `json:"updated_at"`
}

func viewMapping(m storage.ModelMapping) mappingView {
	v := mappingView{
		ID: m.ID, OrganizationID: m.OrganizationID, Alias: m.Alias, Description: m.Description,
		Targets: views(m.Targets, func(t storage.ModelTarget) targetView {
			return targetView{t.ProviderID, t.Model, t.Weight, viewTimeouts(t.Timeouts)}
		}),
		Fallbacks: routes.List(m.Fallbacks), CreatedAt: routes.Instant(m.CreatedAt), UpdatedAt: routes.Instant(m.UpdatedAt),
	}
	if m.MaxOutputTokens > 0 {
		v.MaxOutput = &m.MaxOutputTokens
	}
	return v
}

// mappingEdit holds the fields of a body about a mapping.
type mappingEdit struct {
	alias, description validate.Field[string]
	targets            validate.Field[[]storage.ModelTarget]
	fallbacks          validate.Field[[]string]
	maxOutput          validate.Field[int64]
}

func readMapping(o *validate.Object, create bool) mappingEdit {
	e := mappingEdit{alias: aliasField(o, create), description: descriptionField(o)}
	targets := o.Objects("targets", validate.List{Flags: required(create), Min: 1, Max: maxTargets})
	e.targets = validate.Field[[]storage.ModelTarget]{Present: targets.Present}
	for _, t := range targets.Value {
		e.targets.Value = append(e.targets.Value, storage.ModelTarget{
			ProviderID: t.Text("provider_id", validate.Text{Flags: validate.Required, Min: 1, Max: maxName}).Value,
			Model:      t.Text("model", validate.Text{Flags: validate.Required, Min: 1, Max: maxName}).Value,
			Weight:     int(t.Int("weight", validate.Integer{Max: accounts.MaxWeight}).Value),
			Timeouts:   readTimeouts(t).Value,
		})
	}
	e.maxOutput = o.Int("max_output_tokens", validate.Integer{Flags: validate.Nullable, Min: 1, Max: accounts.MaxOutput})
	e.fallbacks = o.Texts("fallbacks", validate.List{Flags: validate.Nullable, Max: maxFallbacks}, alias)
	return e
}

func (e mappingEdit) apply(m *storage.ModelMapping) {
	set(&m.Alias, e.alias)
	replace(&m.Description, e.description)
	set(&m.Targets, e.targets)
	replace(&m.Fallbacks, e.fallbacks)
	replace(&m.MaxOutputTokens, e.maxOutput)
}

func listMappings(q *request) (any, error) {
	if err := q.Shape(); err != nil {
		return nil, err
	}
	all, err := q.Core.Store.ModelSet(q.Context(), q.Organization())
	return views(all.Mappings, viewMapping), err
}

func getMapping(q *request) (any, error) {
	if err := q.Shape(); err != nil {
		return nil, err
	}
	m, err := q.Core.Store.ModelMapping(q.Context(), q.Organization(), q.id())
	if err != nil {
		return nil, routes.Missing(err, errNoMapping)
	}
	return viewMapping(m), nil
}

func createMapping(q *request) (any, error) {
	now := q.now()
	m := storage.ModelMapping{OrganizationID: q.Organization(), CreatedAt: now, UpdatedAt: now}
	if err := q.Read(false, func(o *validate.Object) { readMapping(o, true).apply(&m) }); err != nil {
		return nil, err
	}
	var err error
	if m.ID, err = q.newID(); err != nil {
		return nil, err
	}
	if err := q.Core.Store.CreateModelMapping(q.Context(), q.configured(), m); err != nil {
		return nil, answered(err, errNoMapping)
	}
	return viewMapping(m), nil
}

func updateMapping(q *request) (any, error) {
	var edit mappingEdit
	if err := q.Read(false, func(o *validate.Object) { edit = readMapping(o, false) }); err != nil {
		return nil, err
	}
	m, err := q.Core.Store.UpdateModelMapping(q.Context(), q.configured(), q.Organization(), q.id(), func(m *storage.ModelMapping) error {
		m.UpdatedAt = q.now()
		edit.apply(m)
		return nil
	})
	if err != nil {
		return nil, answered(err, errNoMapping)
	}
	return viewMapping(m), nil
}

func deleteMapping(q *request) (any, error) {
	if err := q.Shape(); err != nil {
		return nil, err
	}
	return deleted(q.Core.Store.DeleteModelMapping(q.Context(), q.Organization(), q.id()), errNoMapping)
}
