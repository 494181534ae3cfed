package engine

import (
	"fmt"
	"unicode/utf8"

	"github.com/durward-gateway/durward/storage"
)

// Problem describes one mistake in a policy's rules.
type Problem struct {
	Loc     []any  // below "body": "rules", 2, "actions", 0
	Message string // for the author of the rule
	Type    string // a `type` of 422 answers (docs/api.md)
	Input   any    // the wrong value; nil: left out
	// Line and Column are the place inside an expression, in characters from 1. They are 0 for a problem outside
	// expressions.
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
	MaxExpressions = 2000 // in all conditions of a policy together
	MaxRuleName    = 255  // characters
	maxInput       = 512  // bytes of the longest text that a problem repeats
	maxProblems    = 1000 // the check stops after so many
)

// Check returns all mistakes in a policy's rules, in the order of the rules. It returns nil when there is none. If
// there are more than a thousand, it returns the first thousand.
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
		c := ruleCheck{&reader, &rules[i], []any{"rules", i}}
		c.all(names)
	}
	if reader.expressions > MaxExpressions {
		reader.report([]any{"rules"}, typeTooLong, "Rules should have at most %d expressions", MaxExpressions)
	}
	return reader.problems[:min(len(reader.problems), maxProblems)]
}

// ruleCheck reports the mistakes of one rule, which is at loc.
type ruleCheck struct {
	reader *conditionReader
	rule   *storage.Rule
	loc    []any
}

func (c *ruleCheck) wrong(input, kind, message string, at ...any) {
	r := c.reader
	r.problems = append(r.problems, Problem{Loc: below(c.loc, at...), Message: message, Type: kind, Input: shown(input)})
}

// all checks the whole rule. names holds the names of the rules before it.
func (c *ruleCheck) all(names map[string]bool) {
	r := c.reader
	c.name(names)
	asks := c.actions()
	if r.full() {
		return
	}
	if c.subjects(); r.full() {
		return
	}
	if c.rule.Condition != nil {
		r.read(c.rule.Condition, below(c.loc, "condition"))
	}
	c.approval(asks)
}

func (c *ruleCheck) name(names map[string]bool) {
	rule := c.rule
	switch n := utf8.RuneCountInString(rule.Name); {
	case n == 0:
		c.wrong(rule.Name, typeShortText, "String should have at least 1 character", "name")
	case n > MaxRuleName:
		c.wrong(rule.Name, typeLongText, fmt.Sprintf("String should have at most %d characters", MaxRuleName), "name")
	case names[rule.Name]:
		c.wrong(rule.Name, typeValueError, "another rule of the policy has this name", "name")
	}
	names[rule.Name] = true
}

// actions checks the actions, and reports whether one of them asks for an approval.
func (c *ruleCheck) actions() (asks bool) {
	for i, text := range c.rule.Actions {
		a, err := ParseAction(text)
		switch {
		case err != nil:
			c.wrong(text, typeValueError, err.Error(), "actions", i)
		case !c.rule.Authorized && a.Kind > Any:
			c.wrong(text, typeValueError, "lists are filtered by what may be called, and cannot be denied", "actions", i)
		}
		asks = asks || err == nil && a.Approve
		if c.reader.full() {
			return asks
		}
	}
	if len(c.rule.Actions) == 0 {
		c.reader.report(below(c.loc, "actions"), typeTooShort, "List should have at least 1 item")
	}
	return asks
}

func (c *ruleCheck) subjects() {
	for i, entry := range c.rule.RolesGroups {
		if err := wrongSubject(entry); err != nil {
			c.wrong(entry, typeValueError, err.Error(), "roles_groups", i)
		}
		if c.reader.full() {
			return
		}
	}
	if len(c.rule.RolesGroups) == 0 {
		c.reader.report(below(c.loc, "roles_groups"), typeTooShort, "List should have at least 1 item")
	}
}

func (c *ruleCheck) approval(asks bool) {
	wanted := c.rule.Approval
	place := []any{"approval"}
	if len(wanted.By) > 0 {
		place = append(place, "channel")
	}
	switch {
	case wanted.IsZero():
		return
	case wanted.Channel != storage.ChannelOutOfBand:
		c.wrong(string(wanted.Channel), typeEnum, "Input should be 'out_of_band'", place...)
	case !c.rule.Authorized || !asks:
		// Otherwise a rule would look as if somebody were asked, and would grant without asking.
		c.wrong(string(wanted.Channel), typeValueError, "needs a rule that grants, with an action that ends in "+approveSuffix, "approval")
	}
	if len(wanted.By) > MaxApprovers {
		c.reader.report(below(c.loc, "approval", "by"), typeTooLong, "List should have at most %d items", MaxApprovers)
		return
	}
	for i, entry := range wanted.By {
		if err := wrongApprover(entry); err != nil {
			c.wrong(entry, typeValueError, err.Error(), "approval", "by", i)
		}
	}
}

// shown returns a text as the input of a problem. It returns nil for a text that is too long to repeat.
func shown(s string) any {
	if len(s) > maxInput {
		return nil
	}
	return s
}
