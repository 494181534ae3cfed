package rules

import (
	"fmt"
	"unicode/utf8"

	"github.com/durward-gateway/durward/storage"
)

// Problem is one thing that is wrong with a policy's rules.
type Problem struct {
	Loc     []any  // below "body": "rules", 2, "actions", 0
	Message string // for the one who wrote the rule
	Type    string // a `type` of 422 answers (docs/api.md)
	Input   any    // what is wrong; nil: left out
	// Line and Column are where in an expression, from 1, in characters; 0 when the problem is not inside one.
	Line, Column int
}

// Words for Problem.Type.
const (
	typeMissing    = "missing"
	typeString     = "string_type"
	typeList       = "list_type"
	typeDict       = "dict_type"
	typeTooShort   = "too_short"
	typeTooLong    = "too_long"
	typeShortText  = "string_too_short"
	typeLongText   = "string_too_long"
	typeEnum       = "enum"
	typeExtra      = "extra_forbidden"
	typeValueError = "value_error"
)

// Bounds of a policy's rules.
const (
	MaxRules       = 5000
	MaxExpressions = 2000 // in all conditions of a policy
	MaxRuleName    = 255  // characters
	maxInput       = 512  // bytes of a text that is still given back
	maxProblems    = 1000 // after which nothing more is looked for
)

// Check says everything that is wrong with a policy's rules, in their order; nil when nothing is. Of more than a thousand
// problems it says the first ones.
func Check(rules []storage.Rule) []Problem {
	if len(rules) > MaxRules {
		return []Problem{{Loc: []any{"rules"}, Message: fmt.Sprintf("List should have at most %d items", MaxRules), Type: typeTooLong}}
	}
	var reader conditionReader
	names := make(map[string]bool, len(rules))
	for i := range rules {
		if reader.full() {
			return reader.problems[:maxProblems]
		}
		checkRule(&reader, &rules[i], []any{"rules", i}, names)
	}
	if reader.expressions > MaxExpressions {
		reader.report([]any{"rules"}, typeTooLong, "Rules should have at most %d expressions", MaxExpressions)
	}
	return reader.problems[:min(len(reader.problems), maxProblems)]
}

func checkRule(r *conditionReader, rule *storage.Rule, loc []any, names map[string]bool) {
	wrong := func(input, kind, message string, at ...any) {
		r.problems = append(r.problems, Problem{Loc: below(loc, at...), Message: message, Type: kind, Input: shown(input)})
	}
	switch n := utf8.RuneCountInString(rule.Name); {
	case n == 0:
		wrong(rule.Name, typeShortText, "String should have at least 1 character", "name")
	case n > MaxRuleName:
		wrong(rule.Name, typeLongText, fmt.Sprintf("String should have at most %d characters", MaxRuleName), "name")
	case names[rule.Name]:
		wrong(rule.Name, typeValueError, "another rule of the policy has this name", "name")
	}
	names[rule.Name] = true

	asks := false
	for i, text := range rule.Actions {
		a, err := ParseAction(text)
		switch {
		case err != nil:
			wrong(text, typeValueError, err.Error(), "actions", i)
		case !rule.Authorized && a.Kind > Any:
			wrong(text, typeValueError, "lists are filtered by what may be called, and cannot be denied", "actions", i)
		}
		asks = asks || err == nil && a.Approve
		if r.full() {
			return
		}
	}
	if len(rule.Actions) == 0 {
		r.report(below(loc, "actions"), typeTooShort, "List should have at least 1 item")
	}
	for i, entry := range rule.RolesGroups {
		if err := wrongSubject(entry); err != nil {
			wrong(entry, typeValueError, err.Error(), "roles_groups", i)
		}
		if r.full() {
			return
		}
	}
	if len(rule.RolesGroups) == 0 {
		r.report(below(loc, "roles_groups"), typeTooShort, "List should have at least 1 item")
	}
	if rule.Condition != nil {
		r.read(rule.Condition, below(loc, "condition"))
	}
	switch {
	case rule.Approval == "":
	case rule.Approval != storage.ChannelOutOfBand:
		wrong(string(rule.Approval), typeEnum, "Input should be 'out_of_band'", "approval")
	case !rule.Authorized || !asks:
		// Else a rule would look as if somebody were asked, and grant outright.
		wrong(string(rule.Approval), typeValueError, "needs a rule that grants, with an action that ends in "+approveSuffix, "approval")
	}
}

// shown is a text as a problem's input; nil when it is too long to be given back.
func shown(s string) any {
	if len(s) > maxInput {
		return nil
	}
	return s
}
