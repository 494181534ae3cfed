package llmedit

import (
	"time"

	"github.com/durward-gateway/durward/internal/api/validate"
	"github.com/durward-gateway/durward/storage"
)

// These are the bounds of smart models.
const (
	MaxSlots               = 32
	MaxLabel               = 1024
	maxBreakpoint          = 100_000_000 // tokens
	maxDeterminerInput     = 1_000_000   // characters
	defaultDeterminerInput = 4_000
)

// TextNoSuchSlot is the problem of an index.
const TextNoSuchSlot = "Value error, there is no slot with this index"

const (
	textBreakpoints        = "Value error, token counts have to ascend"
	textTooManyBreakpoints = "Value error, there is at most one between each two slots"
	textDeterminer         = "Value error, several slots need a determiner"
)

// NewSmart returns a smart model with the defaults.
func NewSmart(organization string, now time.Time) storage.SmartModel {
	return storage.SmartModel{OrganizationID: organization, Enabled: true, DeterminerInputMaxChars: defaultDeterminerInput, CreatedAt: now, UpdatedAt: now}
}

// SmartEdit holds what was written about a smart model.
type SmartEdit struct {
	alias, description, determiner validate.Field[string]
	enabled, sticky                validate.Field[bool]
	slots                          validate.Field[[]storage.ModelSlot]
	breakpoints                    validate.Field[[]int64]
	maxChars, defaultSlot          validate.Field[int64]
}

// ReadSmart reads a smart model.
func ReadSmart(o *validate.Object, create bool) SmartEdit {
	e := SmartEdit{
		alias:       aliasField(o, create),
		description: descriptionField(o),
		determiner:  o.Text("determiner_model_alias", validate.Text{Flags: validate.Nullable, Pattern: Alias.Pattern}),
		enabled:     o.Bool("enabled", 0),
		sticky:      o.Bool("sticky", 0),
	}
	slots := o.Objects("slots", validate.List{Flags: required(create), Min: 1, Max: MaxSlots})
	e.slots = validate.Field[[]storage.ModelSlot]{Present: slots.Present}
	for _, s := range slots.Value {
		e.slots.Value = append(e.slots.Value, storage.ModelSlot{
			Alias: s.Text("model_alias", validate.Text{Flags: validate.Required, Pattern: Alias.Pattern}).Value,
			Label: s.Text("label", validate.Text{Flags: validate.Nullable, Max: MaxLabel}).Value,
		})
	}
	e.breakpoints = o.Ints("context_breakpoints", validate.List{Flags: validate.Nullable, Max: MaxSlots}, validate.Integer{Min: 1, Max: maxBreakpoint})
	e.maxChars = o.Int("determiner_input_max_chars", validate.Integer{Min: 1, Max: maxDeterminerInput})
	e.defaultSlot = o.Int("default_slot_on_failure", validate.Integer{Max: MaxSlots})
	return e
}

// Apply changes a smart model and returns the problems of the whole smart model after the change.
func (e SmartEdit) Apply(m *storage.SmartModel) validate.Problems {
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
		wrong(TextNoSuchSlot, "default_slot_on_failure")
	}
	if m.DeterminerAlias == "" && len(m.Slots) > 1 {
		wrong(textDeterminer, "determiner_model_alias")
	}
	return found
}
