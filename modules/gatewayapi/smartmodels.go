package gatewayapi

import (
	"fmt"

	"github.com/durward-gateway/durward/internal/api/validate"
	"github.com/durward-gateway/durward/modules/app/routes"
	"github.com/durward-gateway/durward/storage"
)

// These are the bounds of smart models.
const (
	maxSlots                = 32
	maxLabel                = 1024
	maxBreakpoint           = 100_000_000 // tokens
	maxDeterminerInput      = 1_000_000   // characters
	defaultDeterminerInput  = 4_000
	textBreakpoints         = "Value error, token counts have to ascend"
	textTooManyBreakpoints  = "Value error, there is at most one between each two slots"
	textNoSuchSlot          = "Value error, there is no slot with this index"
	textDeterminer          = "Value error, several slots need a determiner"
	textDefaultBelowReached = "default_slot_on_failure is below slots that long requests need: when the determiner fails they go to slot %d all the same"
)

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
	Warnings                []string            `json:"warnings,omitempty"` // where one is saved
}

func viewSmart(m storage.SmartModel) smartView {
	return smartView{
		ID: m.ID, OrganizationID: m.OrganizationID, Alias: m.Alias, Description: m.Description, Enabled: m.Enabled,
		Determiner: routes.Optional(m.DeterminerAlias), Slots: routes.List(m.Slots), Breakpoints: routes.List(m.Breakpoints),
		DeterminerInputMaxChars: m.DeterminerInputMaxChars, DefaultSlot: m.DefaultSlot, Sticky: m.Sticky,
		CreatedAt: routes.Instant(m.CreatedAt), UpdatedAt: routes.Instant(m.UpdatedAt),
	}
}

// savedSmart returns the view of a smart model that was just saved, with warnings about it.
func savedSmart(m storage.SmartModel) smartView {
	v := viewSmart(m)
	if m.DefaultSlot < len(m.Breakpoints) {
		v.Warnings = append(v.Warnings, fmt.Sprintf(textDefaultBelowReached, m.DefaultSlot))
	}
	return v
}

// smartEdit holds the fields of a body about a smart model.
type smartEdit struct {
	alias, description, determiner validate.Field[string]
	enabled, sticky                validate.Field[bool]
	slots                          validate.Field[[]storage.ModelSlot]
	breakpoints                    validate.Field[[]int64]
	maxChars, defaultSlot          validate.Field[int64]
}

func readSmart(o *validate.Object, create bool) smartEdit {
	e := smartEdit{
		alias:       aliasField(o, create),
		description: descriptionField(o),
		determiner:  o.Text("determiner_model_alias", validate.Text{Flags: validate.Nullable, Pattern: aliasText}),
		enabled:     o.Bool("enabled", 0),
		sticky:      o.Bool("sticky", 0),
	}
	slots := o.Objects("slots", validate.List{Flags: required(create), Min: 1, Max: maxSlots})
	e.slots = validate.Field[[]storage.ModelSlot]{Present: slots.Present}
	for _, s := range slots.Value {
		e.slots.Value = append(e.slots.Value, storage.ModelSlot{
			Alias: s.Text("model_alias", validate.Text{Flags: validate.Required, Pattern: aliasText}).Value,
			Label: s.Text("label", validate.Text{Flags: validate.Nullable, Max: maxLabel}).Value,
		})
	}
	e.breakpoints = o.Ints("context_breakpoints", validate.List{Flags: validate.Nullable, Max: maxSlots}, validate.Integer{Min: 1, Max: maxBreakpoint})
	e.maxChars = o.Int("determiner_input_max_chars", validate.Integer{Min: 1, Max: maxDeterminerInput})
	e.defaultSlot = o.Int("default_slot_on_failure", validate.Integer{Max: maxSlots})
	return e
}

// apply changes a smart model and returns the problems of the whole smart model after the change.
func (e smartEdit) apply(m *storage.SmartModel) validate.Problems {
	set(&m.Alias, e.alias)
	replace(&m.Description, e.description)
	set(&m.Enabled, e.enabled)
	set(&m.Sticky, e.sticky)
	set(&m.Slots, e.slots)
	replace(&m.DeterminerAlias, e.determiner)
	if e.breakpoints.Present {
		m.Breakpoints = nil
		for _, n := range e.breakpoints.Value {
			m.Breakpoints = append(m.Breakpoints, int(n))
		}
	}
	if e.maxChars.Set() {
		m.DeterminerInputMaxChars = int(e.maxChars.Value)
	}
	if e.defaultSlot.Set() {
		m.DefaultSlot = int(e.defaultSlot.Value)
	}
	var found validate.Problems
	wrong := func(msg string, place ...any) {
		found = append(found, validate.Problem{Loc: append([]any{"body"}, place...), Msg: msg, Type: validate.ValueError})
	}
	for i := 1; i < len(m.Breakpoints); i++ {
		if m.Breakpoints[i] <= m.Breakpoints[i-1] {
			wrong(textBreakpoints, "context_breakpoints", i)
		}
	}
	if len(m.Slots) == 0 {
		return found // which is reported already
	}
	if len(m.Breakpoints) > len(m.Slots)-1 {
		wrong(textTooManyBreakpoints, "context_breakpoints")
	}
	if m.DefaultSlot >= len(m.Slots) {
		wrong(textNoSuchSlot, "default_slot_on_failure")
	}
	if m.DeterminerAlias == "" && len(m.Slots) > 1 {
		wrong(textDeterminer, "determiner_model_alias")
	}
	return found
}

func listSmart(q *request) (any, error) {
	if err := q.Shape(); err != nil {
		return nil, err
	}
	all, err := q.Core.Store.ModelSet(q.Context(), q.Organization())
	return views(all.Smart, viewSmart), err
}

func getSmart(q *request) (any, error) {
	if err := q.Shape(); err != nil {
		return nil, err
	}
	m, err := q.Core.Store.SmartModel(q.Context(), q.Organization(), q.id())
	if err != nil {
		return nil, routes.Missing(err, errNoSmart)
	}
	return viewSmart(m), nil
}

func createSmart(q *request) (any, error) {
	now := q.now()
	m := storage.SmartModel{
		OrganizationID: q.Organization(), Enabled: true, DeterminerInputMaxChars: defaultDeterminerInput, CreatedAt: now, UpdatedAt: now,
	}
	if err := q.Read(false, func(o *validate.Object) { q.Note(notWrong(o, readSmart(o, true).apply(&m)).Err()) }); err != nil {
		return nil, err
	}
	var err error
	if m.ID, err = q.newID(); err != nil {
		return nil, err
	}
	if err := q.Core.Store.CreateSmartModel(q.Context(), q.configured(), m); err != nil {
		return nil, answered(err, errNoSmart)
	}
	return savedSmart(m), nil
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
	var edit smartEdit
	if err := q.Read(false, func(o *validate.Object) {
		edit = readSmart(o, false)
		if lookup == nil {
			changed := present
			q.Note(notWrong(o, edit.apply(&changed)).Err())
		}
	}); err != nil {
		return nil, err
	}
	if lookup != nil {
		return nil, routes.Missing(lookup, errNoSmart)
	}
	m, err := q.Core.Store.UpdateSmartModel(q.Context(), q.configured(), q.Organization(), present.ID, func(m *storage.SmartModel) error {
		m.UpdatedAt = q.now()
		return edit.apply(m).Err()
	})
	if err != nil {
		return nil, answered(err, errNoSmart)
	}
	return savedSmart(m), nil
}

func deleteSmart(q *request) (any, error) {
	if err := q.Shape(); err != nil {
		return nil, err
	}
	return deleted(q.Core.Store.DeleteSmartModel(q.Context(), q.Organization(), q.id()), errNoSmart)
}
