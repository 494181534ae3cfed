package engine

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/durward-gateway/durward/storage"
)

// This file is a second evaluator. It is written from the sentences of docs/policies.md, without an index, without
// sharing and without the interpreter. It looks at every rule, and conditions are a few expressions with known answers.
// The property tests compare the two evaluators.

// truth is the value of an expression. It is nil when the expression cannot be evaluated.
type truth = *bool

var (
	right = func() truth { b := true; return &b }()
	wrong = func() truth { b := false; return &b }()
)

// refExpr is an expression with its meaning for given arguments. nil arguments are unknown, and it then returns all
// possible truths.
type refExpr struct {
	text    string
	meaning func(args map[string]any, who refWho, action string) truth
	reads   *refReads // the arguments that it reads; nil: none
}

// refReads lists the names of arguments that an expression looks at, and of members below them. A nil top means all
// arguments.
type refReads struct{ top, below []string }

// torn reports whether a reader that folds case could find another value under a name than the expression does.
func (r *refReads) torn(args map[string]any) bool {
	if r.top == nil {
		return refTwins(args)
	}
	for _, name := range r.top {
		if refVariant(args, name) || refTwins(args[name]) {
			return true
		}
		for _, below := range r.below {
			if o, ok := args[name].(map[string]any); ok && refVariant(o, below) {
				return true
			}
		}
	}
	return false
}

func refVariant(object map[string]any, name string) bool {
	for other := range object {
		if other != name && strings.EqualFold(other, name) {
			return true
		}
	}
	return false
}

func refTwins(v any) bool {
	object, _ := v.(map[string]any)
	for name, below := range object {
		if refVariant(object, name) || refTwins(below) {
			return true
		}
	}
	return false
}

type refWho struct {
	id, agent     string
	roles, groups []string
}

func boolOf(b bool) truth {
	if b {
		return right
	}
	return wrong
}

var refExprs = []refExpr{
	{"true", func(map[string]any, refWho, string) truth { return right }, nil},
	{"false", func(map[string]any, refWho, string) truth { return wrong }, nil},
	{"1 / 0 == 1", func(map[string]any, refWho, string) truth { return nil }, nil},
	{"R.attr.n == 1", func(a map[string]any, _ refWho, _ string) truth {
		v, ok := a["n"]
		if !ok {
			return nil
		}
		return boolOf(v == 1)
	}, &refReads{top: []string{"n"}}},
	{"request.resource.attr['n'] > 1", func(a map[string]any, _ refWho, _ string) truth {
		n, ok := a["n"].(int)
		if !ok {
			return nil
		}
		return boolOf(n > 1)
	}, &refReads{top: []string{"n"}}},
	{"R.attr.n != 1 || P.id == 'u1'", func(a map[string]any, w refWho, _ string) truth {
		if w.id == "u1" {
			return right
		}
		v, ok := a["n"]
		if !ok {
			return nil
		}
		return boolOf(v != 1)
	}, &refReads{top: []string{"n"}}},
	{"R.attr.n == 1 && 'g1' in P.groups", func(a map[string]any, w refWho, _ string) truth {
		if !slices.Contains(w.groups, "g1") {
			return wrong
		}
		v, ok := a["n"]
		if !ok {
			return nil
		}
		return boolOf(v == 1)
	}, &refReads{top: []string{"n"}}},
	{"has(R.attr.s)", func(a map[string]any, _ refWho, _ string) truth { _, ok := a["s"]; return boolOf(ok) }, &refReads{top: []string{"s"}}},
	{"size(R.attr) > 1", func(a map[string]any, _ refWho, _ string) truth { return boolOf(len(a) > 1) }, &refReads{}},
	{"has(R.attr.o.a) || R.attr.o['b'] == 1", func(a map[string]any, _ refWho, _ string) truth {
		o, ok := a["o"].(map[string]any)
		if !ok {
			return nil
		}
		if _, ok := o["a"]; ok {
			return right
		}
		b, ok := o["b"]
		if !ok {
			return nil
		}
		return boolOf(b == 1)
	}, &refReads{top: []string{"o"}, below: []string{"a", "b"}}},
	{"P.agent == 'a1'", func(_ map[string]any, w refWho, _ string) truth { return boolOf(w.agent == "a1") }, nil},
	{"request.action.endsWith('b')", func(_ map[string]any, _ refWho, action string) truth {
		return boolOf(strings.HasSuffix(action, "b"))
	}, nil},
	{"request.principal.roles.exists(r, r == 'r1')", func(_ map[string]any, w refWho, _ string) truth {
		return boolOf(slices.Contains(w.roles, "r1"))
	}, nil},
}

// refCondition is a random condition: an index into refExprs, or a group.
type refCondition struct {
	op   string // "" for an expression
	expr int
	of   []refCondition
}

func (c refCondition) json() map[string]any {
	if c.op == "" {
		return map[string]any{"expr": refExprs[c.expr].text}
	}
	of := make([]any, len(c.of))
	for i, part := range c.of {
		of[i] = part.json()
	}
	return map[string]any{c.op: map[string]any{"of": of}}
}

// refCall is a call to the reference evaluator. nil args are unknown.
type refCall struct {
	who    refWho
	action string
	args   map[string]any
	known  bool
}

// possible returns the truths that a condition may have.
func (c refCondition) possible(call refCall) []truth {
	if c.op == "" {
		e := refExprs[c.expr]
		if !call.known && e.reads != nil {
			// Unknown, unless the answer is the same for all arguments: the expressions here look only at n, s and o.
			var out []truth
			for _, args := range refArguments {
				if !e.reads.torn(args) {
					out = append(out, e.meaning(args, call.who, call.action))
				}
			}
			out = distinctTruths(out)
			if len(out) > 1 {
				// Three-valued: an expression that depends on arguments can have any truth.
				return []truth{right, wrong, nil}
			}
			return distinctTruths(append(out, nil)) // torn arguments spoil it
		}
		if e.reads != nil && e.reads.torn(call.args) {
			return []truth{nil}
		}
		return []truth{e.meaning(call.args, call.who, call.action)}
	}
	combined := []truth{right}
	for _, part := range c.of {
		var next []truth
		for _, a := range combined {
			for _, b := range part.possible(call) {
				if c.op != "all" && b != nil {
					b = boolOf(!*b)
				}
				next = append(next, refAnd(a, b))
			}
		}
		combined = distinctTruths(next)
	}
	if c.op == "any" {
		for i, t := range combined {
			if t != nil {
				combined[i] = boolOf(!*t)
			}
		}
	}
	return combined
}

func refAnd(a, b truth) truth {
	switch {
	case a == wrong || b == wrong:
		return wrong
	case a == nil || b == nil:
		return nil
	}
	return right
}

func distinctTruths(in []truth) []truth {
	var out []truth
	for _, t := range []truth{right, wrong, nil} {
		if slices.Contains(in, t) {
			out = append(out, t)
		}
	}
	return out
}

// refArguments lists the arguments to try.
var refArguments = []map[string]any{
	{}, {"n": 1}, {"n": 2}, {"n": 0}, {"s": "x"}, {"n": 1, "s": "x"}, {"n": 2, "s": "x"}, {"n": "text"}, {"n": 1, "s": "x", "z": true},
	{"N": 1}, {"n": 1, "N": 1}, {"n": 1, "\u017f": "x"}, {"s": "x", "o": map[string]any{"a": 1}}, {"n": 2, "o": map[string]any{"b": 1}}, {"o": map[string]any{"A": 1, "b": 1}}, {"o": map[string]any{"b": 2, "z": 1, "Z": 2}},
	{"n": 2, "z": map[string]any{"A": 1, "a": 2}}, {"O": map[string]any{"a": 1}, "o": map[string]any{"a": 1}},
}

type refRule struct {
	storage.Rule
	condition *refCondition
}

type refPolicy struct {
	storage.Policy
	rules []refRule
}

// refApprovers returns the lists of approvers of a call that asks, in any order.
func refApprovers(policies []refPolicy, call refCall) [][]string {
	_, _, lists := refJudge(policies, call)
	return lists
}

// refDecide returns the effect and the channel that refJudge finds.
func refDecide(policies []refPolicy, call refCall) (effect Effect, outOfBand bool) {
	effect, outOfBand, _ = refJudge(policies, call)
	return effect, outOfBand
}

// refJudge implements "How it is decided" of docs/policies.md. With unknown arguments it tells whether the item is
// listed: Deny means that it is denied for all arguments.
func refJudge(policies []refPolicy, call refCall) (effect Effect, outOfBand bool, lists [][]string) {
	var governing *refPolicy
	for i := range policies {
		p := &policies[i]
		if p.Status != storage.PolicyActive {
			continue
		}
		if slices.Contains(p.ApplicationIDs, call.who.agent) && call.who.agent != "" {
			governing = p
			break
		}
		if len(p.ApplicationIDs) == 0 {
			governing = p
		}
	}
	if governing == nil {
		return Deny, false, nil
	}
	for _, r := range governing.rules {
		matches, _ := refMatches(r, call)
		if !r.Authorized && matches && !slices.Contains(refPossible(r, call), wrong) {
			return Deny, false, nil
		}
	}
	for _, r := range governing.rules {
		matches, plain := refMatches(r, call)
		if !r.Authorized || !slices.Contains(refPossible(r, call), right) {
			continue
		}
		if matches && !plain.onlyPlain {
			effect = Ask
			if by := r.Approval.By; len(by) > 0 {
				lists = append(lists, by)
			}
			outOfBand = outOfBand || r.Approval.Channel == storage.ChannelOutOfBand
		}
		if matches && plain.plain && effect == Deny {
			effect = Allow
		}
	}
	return effect, outOfBand, lists
}

func refPossible(r refRule, call refCall) []truth {
	if r.condition == nil {
		return []truth{right}
	}
	return r.condition.possible(call)
}

type refHow struct{ plain, onlyPlain bool }

// refMatches looks only at actions and subjects.
func refMatches(r refRule, call refCall) (bool, refHow) {
	subject := false
	for _, s := range r.RolesGroups {
		subject = subject || s == "*" ||
			slices.Contains(call.who.roles, strings.TrimPrefix(s, "role:")) && !strings.HasPrefix(s, "group:") ||
			slices.Contains(call.who.groups, strings.TrimPrefix(s, "group:")) && !strings.HasPrefix(s, "role:")
	}
	if !r.Active || !subject {
		return false, refHow{}
	}
	matches, asks, plain := false, false, false
	for _, a := range r.Actions {
		pattern, suffixed := strings.CutSuffix(a, ":approve")
		prefix, star := strings.CutSuffix(pattern, "*")
		if a == "*" || pattern == call.action || star && pattern != "*" && strings.HasPrefix(call.action, prefix) {
			matches = true
			asks = asks || suffixed
			plain = plain || !suffixed
		}
	}
	return matches, refHow{plain: plain, onlyPlain: !asks}
}

func mustJSON(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}
