package gatewayapi

import (
	"github.com/durward-gateway/durward/internal/api/validate"
	"github.com/durward-gateway/durward/internal/llm/llmedit"
	"github.com/durward-gateway/durward/internal/ops/declare"
	"github.com/durward-gateway/durward/modules/app/routes"
	"github.com/durward-gateway/durward/storage"
)

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
	ManagedByFile  bool           `json:"managed_by_file,omitempty"` // an applied file declares it
}

func (q *request) viewMapping(m storage.ModelMapping) mappingView {
	v := mappingView{
		ManagedByFile: q.ManagedByFile(declare.KindMapping, m.ID),
		ID:            m.ID, OrganizationID: m.OrganizationID, Alias: m.Alias, Description: m.Description,
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

func listMappings(q *request) (any, error) {
	if err := q.Shape(); err != nil {
		return nil, err
	}
	all, err := q.Core.Store.ModelSet(q.Context(), q.Organization())
	return views(all.Mappings, q.viewMapping), err
}

func getMapping(q *request) (any, error) {
	if err := q.Shape(); err != nil {
		return nil, err
	}
	m, err := q.Core.Store.ModelMapping(q.Context(), q.Organization(), q.id())
	if err != nil {
		return nil, routes.Missing(err, errNoMapping)
	}
	return q.viewMapping(m), nil
}

func createMapping(q *request) (any, error) {
	now := q.now()
	m := storage.ModelMapping{OrganizationID: q.Organization(), CreatedAt: now, UpdatedAt: now}
	if err := q.Read(false, func(o *validate.Object) { llmedit.ReadMapping(o, true).Apply(&m) }); err != nil {
		return nil, err
	}
	var err error
	if m.ID, err = q.newID(); err != nil {
		return nil, err
	}
	if err := q.Core.Store.CreateModelMapping(q.Context(), q.configured(), m); err != nil {
		return nil, answered(err, errNoMapping)
	}
	return q.viewMapping(m), nil
}

func updateMapping(q *request) (any, error) {
	var edit llmedit.MappingEdit
	if err := q.Read(false, func(o *validate.Object) { edit = llmedit.ReadMapping(o, false) }); err != nil {
		return nil, err
	}
	m, err := q.Core.Store.UpdateModelMapping(q.Context(), q.configured(), q.Organization(), q.id(), func(m *storage.ModelMapping) error {
		m.UpdatedAt = q.now()
		edit.Apply(m)
		return nil
	})
	if err != nil {
		return nil, answered(err, errNoMapping)
	}
	return q.viewMapping(m), nil
}

func deleteMapping(q *request) (any, error) {
	if err := q.Shape(); err != nil {
		return nil, err
	}
	return deleted(q.Core.Store.DeleteModelMapping(q.Context(), q.Organization(), q.id()), errNoMapping)
}
