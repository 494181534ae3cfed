package gatewayapi

import (
	"fmt"

	"github.com/durward-gateway/durward/internal/api/validate"
	"github.com/durward-gateway/durward/internal/llm/llmedit"
	"github.com/durward-gateway/durward/internal/ops/declare"
	"github.com/durward-gateway/durward/modules/app/routes"
	"github.com/durward-gateway/durward/storage"
)

const textDefaultBelowReached = "default_slot_on_failure is below slots that long requests need: when the determiner fails they go to slot %d all the same"

// smartView is the API's view of a smart model.
type smartView struct {
	ID                      string              `json:"id"`
	OrganizationID          string              `json:"org_id"`
	Alias                   string              `json:"model_alias"`
	Description             string              `json:"description"`
	Enabled                 bool                `json:"enabled"`
	Determiner              *string             `json:"determiner_model_alias"`
	Slots                   []storage.ModelSlot `json:"slots"`
	Breakpoints             []int               `json:"context_breakpoints"`
	DeterminerInputMaxChars int                 `json:"determiner_input_max_chars"`
	DefaultSlot             int                 `json:"default_slot_on_failure"`
	Sticky                  bool                `json:"sticky"`
	CreatedAt               routes.Instant      `json:"created_at"`
	UpdatedAt               routes.Instant      `json:"updated_at"`
	Warnings                []string            `json:"warnings,omitempty"`        // where one is saved
	ManagedByFile           bool                `json:"managed_by_file,omitempty"` // an applied file declares it
}

func (q *request) viewSmart(m storage.SmartModel) smartView {
	return smartView{
		ManagedByFile: q.ManagedByFile(declare.KindSmart, m.ID),
		ID:            m.ID, OrganizationID: m.OrganizationID, Alias: m.Alias, Description: m.Description, Enabled: m.Enabled,
		Determiner: routes.Optional(m.DeterminerAlias), Slots: routes.List(m.Slots), Breakpoints: routes.List(m.Breakpoints),
		DeterminerInputMaxChars: m.DeterminerInputMaxChars, DefaultSlot: m.DefaultSlot, Sticky: m.Sticky,
		CreatedAt: routes.Instant(m.CreatedAt), UpdatedAt: routes.Instant(m.UpdatedAt),
	}
}

// savedSmart returns the view of a smart model that was just saved, with warnings about it.
func (q *request) savedSmart(m storage.SmartModel) smartView {
	v := q.viewSmart(m)
	if m.DefaultSlot < len(m.Breakpoints) {
		v.Warnings = append(v.Warnings, fmt.Sprintf(textDefaultBelowReached, m.DefaultSlot))
	}
	return v
}

func listSmart(q *request) (any, error) {
	if err := q.Shape(); err != nil {
		return nil, err
	}
	all, err := q.Core.Store.ModelSet(q.Context(), q.Organization())
	return views(all.Smart, q.viewSmart), err
}

func getSmart(q *request) (any, error) {
	if err := q.Shape(); err != nil {
		return nil, err
	}
	m, err := q.Core.Store.SmartModel(q.Context(), q.Organization(), q.id())
	if err != nil {
		return nil, routes.Missing(err, errNoSmart)
	}
	return q.viewSmart(m), nil
}

func createSmart(q *request) (any, error) {
	m := llmedit.NewSmart(q.Organization(), q.now())
	if err := q.Read(false, func(o *validate.Object) { q.Note(llmedit.NotWrong(o, llmedit.ReadSmart(o, true).Apply(&m)).Err()) }); err != nil {
		return nil, err
	}
	var err error
	if m.ID, err = q.newID(); err != nil {
		return nil, err
	}
	if err := q.Core.Store.CreateSmartModel(q.Context(), q.configured(), m); err != nil {
		return nil, answered(err, errNoSmart)
	}
	return q.savedSmart(m), nil
}

// presentSmart returns the smart model in the path. No model has an id that is not a uuid.
func (q *request) presentSmart() (storage.SmartModel, error) {
	if q.id() == "" {
		return storage.SmartModel{}, storage.ErrNotFound
	}
	return q.Core.Store.SmartModel(q.Context(), q.Organization(), q.id())
}

func updateSmart(q *request) (any, error) {
	present, lookup := q.presentSmart()
	var edit llmedit.SmartEdit
	if err := q.Read(false, func(o *validate.Object) {
		edit = llmedit.ReadSmart(o, false)
		if lookup == nil {
			changed := present
			q.Note(llmedit.NotWrong(o, edit.Apply(&changed)).Err())
		}
	}); err != nil {
		return nil, err
	}
	if lookup != nil {
		return nil, routes.Missing(lookup, errNoSmart)
	}
	m, err := q.Core.Store.UpdateSmartModel(q.Context(), q.configured(), q.Organization(), present.ID, func(m *storage.SmartModel) error {
		m.UpdatedAt = q.now()
		return edit.Apply(m).Err()
	})
	if err != nil {
		return nil, answered(err, errNoSmart)
	}
	return q.savedSmart(m), nil
}

func deleteSmart(q *request) (any, error) {
	if err := q.Shape(); err != nil {
		return nil, err
	}
	return deleted(q.Core.Store.DeleteSmartModel(q.Context(), q.Organization(), q.id()), errNoSmart)
}
