package llmedit

import (
	"github.com/durward-gateway/durward/internal/api/validate"
	"github.com/durward-gateway/durward/storage"
)

// Aliases holds the aliases that an organization has.
type Aliases struct{ plain, smart map[string]bool }

// AliasesOf returns the aliases of an organization's models and those of the configuration.
func AliasesOf(all *storage.ModelSet, configured storage.ConfiguredModels) Aliases {
	a := Aliases{plain: make(map[string]bool), smart: make(map[string]bool)}
	for alias := range configured.Aliases {
		a.plain[alias] = true
	}
	for _, m := range all.Mappings {
		a.plain[m.Alias] = true
	}
	for _, m := range all.Smart {
		a.smart[m.Alias] = true
	}
	return a
}

// check returns the reason why nothing may refer to an alias.
func (a Aliases) check(alias, own string, refused storage.TargetError) *storage.TargetError {
	switch refused.Smart = a.smart[alias] || alias == own; {
	case refused.Smart, !a.plain[alias]:
		return &refused
	}
	return nil
}

// CheckMapping refuses a mapping whose fallbacks would keep it from being saved.
func (a Aliases) CheckMapping(m *storage.ModelMapping) *storage.TargetError {
	for i, alias := range m.Fallbacks {
		if wrong := a.check(alias, m.Alias, storage.TargetError{Field: "fallbacks", Index: i}); wrong != nil {
			return wrong
		}
	}
	return nil
}

// CheckSmart refuses a smart model whose references would keep it from being saved.
func (a Aliases) CheckSmart(m *storage.SmartModel) *storage.TargetError {
	if m.DeterminerAlias != "" {
		if wrong := a.check(m.DeterminerAlias, m.Alias, storage.TargetError{Field: "determiner_model_alias"}); wrong != nil {
			return wrong
		}
	}
	for i, slot := range m.Slots {
		if wrong := a.check(slot.Alias, m.Alias, storage.TargetError{Field: "slots", Index: i}); wrong != nil {
			return wrong
		}
	}
	return nil
}

// TargetProblems returns the problem with a reference of a model.
func TargetProblems(e *storage.TargetError) validate.Problems {
	loc := []any{"body", e.Field}
	switch e.Field {
	case "targets":
		loc = append(loc, e.Index, "provider_id")
	case "slots":
		loc = append(loc, e.Index, "model_alias")
	case "fallbacks":
		loc = append(loc, e.Index)
	}
	msg := "Value error, there is no such alias"
	switch {
	case e.Field == "targets":
		msg = "Value error, there is no such provider"
	case e.Smart:
		msg = "Value error, this must be another alias, and not that of a smart model"
	}
	return validate.Problems{{Loc: loc, Msg: msg, Type: validate.ValueError}}
}
