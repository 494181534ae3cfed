package storage

import (
	"encoding/json"
	"fmt"
	"slices"
)

// PolicyChanges lists the members that differ between two states of a policy, by the API's names and in its order.
// With before nil, for the first revision, it lists every member. Missing and empty lists are equal, and so are two
// spellings of a condition that differ in blanks only. An error means a condition that is not JSON.
func PolicyChanges(before *Policy, after Policy) ([]FieldChange, error) {
	var former Policy
	if before != nil {
		former = *before
	}
	var changes []FieldChange
	for _, f := range []struct {
		name          string
		before, after any
	}{
		{"name", former.Name, after.Name},
		{"description", former.Description, after.Description},
		{"support_contact", former.SupportContact, after.SupportContact},
		{"tags", list(former.Tags), list(after.Tags)},
		{"status", former.Status, after.Status},
		{"mcp_server_id", former.ServerID, after.ServerID},
		{"application_ids", list(former.ApplicationIDs), list(after.ApplicationIDs)},
		{"rules", ruleList(former.Rules), ruleList(after.Rules)},
		{"shadow", former.Shadow, after.Shadow},
	} {
		old, err := plainJSON(f.before)
		if err != nil {
			return nil, fmt.Errorf("comparing %s: %w", f.name, err)
		}
		now, err := plainJSON(f.after)
		if err != nil {
			return nil, fmt.Errorf("comparing %s: %w", f.name, err)
		}
		if before == nil {
			old = "null"
		}
		if old != now {
			changes = append(changes, FieldChange{Field: f.name, Before: json.RawMessage(old), After: json.RawMessage(now)})
		}
	}
	return changes, nil
}

// EncodeChanges writes changes as the JSON text that drivers store with a revision.
func EncodeChanges(changes []FieldChange) (string, error) { return plainJSON(list(changes)) }

func list[T any](l []T) []T {
	if l == nil {
		return []T{}
	}
	return l
}

func ruleList(rules []Rule) []Rule {
	rules = slices.Clone(list(rules))
	for i := range rules {
		rules[i].Actions, rules[i].RolesGroups = list(rules[i].Actions), list(rules[i].RolesGroups)
	}
	return rules
}
