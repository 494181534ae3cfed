package engine

import (
	"context"
	"math"
	"slices"
	"time"

	"cel.dev/cel-go/cel"
)

// Reasons that name no rule.
var (
	reasonNobody    = Reason{text: "There is no principal."}
	reasonName      = Reason{text: "The name may not be used through the gateway."}
	reasonNoPolicy  = Reason{text: "No active policy of the server governs the caller."}
	reasonNoGrant   = Reason{text: "No rule grants it."}
	reasonOpen      = Reason{text: "It is open to every connected user unless a rule denies it, and none does."}
	reasonCondition = Reason{text: "No rule grants it: the condition of every rule that might is not met."}
)

// reasonsOfRules holds the reasons that name a rule.
var reasonsOfRules = [...]string{
	Deny:  "Rule %q denies it.",
	Ask:   "Rule %q grants it once a human has approved.",
	Allow: "Rule %q grants it.",
}

// Decide judges a call. Conditions that are not yet evaluated when ctx is done count as impossible to evaluate.
func (s *Set) Decide(ctx context.Context, c Call) Decision { return s.judge(ctx, c, false) }

// Explain judges a call as Decide does. Its Values hold every expression that was evaluated on the way to the verdict,
// including those of rules that did not match.
func (s *Set) Explain(ctx context.Context, c Call) Decision { return s.judge(ctx, c, true) }

func (s *Set) judge(ctx context.Context, c Call, explain bool) Decision {
	switch {
	case c.Principal == nil:
		return Decision{Hidden: true, Reason: reasonNobody}
	case !callable(c.Kind, c.Name):
		return Decision{Hidden: true, Reason: reasonName}
	}
	j := judge{ctx: ctx, set: s, principal: c.Principal, kind: c.Kind, name: c.Name, raw: c.Arguments, checked: c.Checked, open: c.Open}
	defer j.done()
	d := Decision{Reason: reasonNoPolicy}
	if c.Open {
		d = Decision{Effect: Allow, Reason: reasonOpen}
	}
	if p := s.governing(c.Principal.agentID); p != nil {
		v := j.decide(p)
		d = Decision{Effect: v.effect, PolicyID: p.id, PolicyName: p.name, Revision: p.revision, Rule: v.rule(p), OutOfBand: v.outOfBand(), Approvers: v.approvers, Reason: v.reason(p)}
		if d.Values = j.values(p, v); explain {
			d.Values = j.allValues()
		}
	}
	for _, draft := range s.shadows {
		if !s.wouldGovern(draft, c.Principal.agentID) {
			continue
		}
		v := j.decide(draft)
		if v.effect != d.Effect || v.outOfBand() != d.OutOfBand || !slices.EqualFunc(v.approvers, d.Approvers, slices.Equal) {
			d.Shadow = append(d.Shadow, ShadowDecision{
				PolicyID: draft.id, PolicyName: draft.name, Revision: draft.revision,
				Effect: v.effect, Rule: v.rule(draft), OutOfBand: v.outOfBand(), Approvers: v.approvers, Reason: v.reason(draft),
			})
		}
	}
	if d.Effect == Deny {
		d.Hidden = !j.visible()
	}
	return d
}

// judge is one question to a set. It is about a call, or about an item of a list with unknown parts.
type judge struct {
	ctx       context.Context
	set       *Set
	principal *Principal
	kind      Kind
	name      string
	onlyStart bool // name is only the common start of the names in question
	raw       []byte
	checked   bool
	open      bool // a call that no rule denies is allowed
	wary      bool // rules that ask count as soon as they may match: facts about the principal are unknown
	unknown   []*cel.AttributePatternType
	eval      *evaluation    // made when a condition needs it
	denials   int            // number of its first notes that belong to rules that deny
	memo      memo           // of a list; nil for a call
	spent     *time.Duration // time already used for the items of a list; nil for a call
}

func (j *judge) done() {
	if j.eval != nil {
		j.eval.release()
	}
}

// verdict is the answer of a policy. number is the deciding rule, -1 for none.
type verdict struct {
	effect      Effect
	number      int32
	demand      demand
	approvers   [][]string // with othersDecide, for a call
	conditional bool       // no rule granted, and only its condition kept some grant from matching
}

func (v verdict) outOfBand() bool { return v.demand != anyChannel }

// asksMore reports whether a verdict that asks demands more of the decision than another verdict.
func (v verdict) asksMore(than verdict) bool {
	return than.effect == Allow || v.demand > than.demand || len(v.approvers) > len(than.approvers)
}

func (v verdict) rule(p *policy) string {
	if v.number < 0 {
		return ""
	}
	return p.rules[v.number].name
}

func (v verdict) reason(p *policy) Reason {
	switch {
	case v.number >= 0:
		return Reason{text: reasonsOfRules[v.effect], rule: p.rules[v.number].name}
	case v.effect == Allow:
		return reasonOpen
	case v.conditional:
		return reasonCondition
	}
	return reasonNoGrant
}

// decide asks a policy. Any matching deny wins, otherwise any grant that asks, otherwise any plain grant. Otherwise the
// call is denied. The order of the rules only selects which rule is named, among rules with the same effect. With
// unknown parts a deny counts when it is sure to match, a grant when it can match.
func (j *judge) decide(p *policy) verdict {
	var room [8]*posting
	found := p.calls[j.kind].match(room[:0], j.name, j.onlyStart)
	if j.eval != nil {
		j.eval.notes = j.eval.notes[:0]
	}
	if n := j.first(p, found, Deny, anyChannel); n >= 0 {
		return verdict{effect: Deny, number: n}
	}
	if j.eval != nil {
		j.denials = len(j.eval.notes)
	}
	granted := j.granted(p, found)
	if j.principal.unknown == (Unknown{}) || granted.effect == Deny || granted.demand != anyChannel && !p.foreign {
		return granted
	}
	// A principal with known facts might have had to ask. A key must not get more than the token of its user.
	j.wary = true
	asked := j.asked(p, found)
	j.wary = false
	if asked.effect == Ask && asked.asksMore(granted) {
		return asked
	}
	return granted
}

// granted returns the verdict of the rules that grant.
func (j *judge) granted(p *policy, found []*posting) verdict {
	if v := j.asked(p, found); v.effect == Ask {
		return v
	}
	if n := j.first(p, found, Allow, anyChannel); n >= 0 {
		return verdict{effect: Allow, number: n}
	}
	if j.open {
		return verdict{effect: Allow, number: -1}
	}
	return verdict{number: -1, conditional: j.eval != nil && len(j.eval.notes) > j.denials}
}

// asked returns the verdict of the rules that ask. A rule that demands more decides before the others.
func (j *judge) asked(p *policy, found []*posting) verdict {
	for d := demands - 1; ; d-- {
		if d != othersDecide || p.foreign {
			if n := j.first(p, found, Ask, d); n >= 0 {
				v := verdict{effect: Ask, number: n, demand: d}
				if d == othersDecide && j.memo == nil { // no list shows who decides
					v.approvers = j.approvers(p, found)
				}
				return v
			}
		}
		if d == anyChannel {
			return verdict{number: -1}
		}
	}
}

// first returns the number of the first rule, in the order of the policy, that matches with that effect. It returns -1
// when none does. Among rules that ask, it looks only at those with that demand.
func (j *judge) first(p *policy, found []*posting, e Effect, d demand) int32 {
	best := int32(math.MaxInt32)
	for _, postings := range found {
		for _, n := range *postings.list(e) {
			if n >= best {
				break
			}
			if !p.masks[n].meets(j.principal.mask) {
				continue
			}
			r := &p.rules[n]
			if e == Ask && r.demand != d || !r.subjects.include(j.principal, e == Deny || j.wary) || !j.matches(r, e) {
				continue
			}
			best = n
			break
		}
	}
	if best == math.MaxInt32 {
		return -1
	}
	return best
}

func (j *judge) matches(r *rule, e Effect) bool {
	if r.condition == nil {
		return true
	}
	if j.eval == nil {
		j.eval = newEvaluation(j.ctx, j.set, j.principal)
		j.eval.memo, j.eval.spent = j.memo, j.spent
		j.eval.about(j.kind, j.name, j.raw, j.checked, j.unknown)
	}
	out := j.eval.matches(r)
	if e == Deny {
		return out.denies()
	}
	return out.grants() || j.wary && out != no
}

// maxValues limits the entries in Decision.Values. Those of Explain are not limited.
const maxValues = 32

// values returns the notes that explain a verdict, each expression of a rule once. These are the notes of the rule that
// decides, or without one the notes of the rules that grant.
func (j *judge) values(p *policy, v verdict) []ConditionValue {
	if j.eval == nil {
		return nil
	}
	notes := j.eval.notes
	if v.number < 0 {
		notes = notes[j.denials:]
	}
	var out []ConditionValue
	for i := range notes {
		n := &notes[i]
		switch {
		case len(out) == maxValues:
			return out
		case v.number >= 0 && n.rule != &p.rules[v.number]:
		case slices.ContainsFunc(notes[:i], func(before note) bool { return before.rule == n.rule && before.expr == n.expr }):
		default:
			out = append(out, n.value())
		}
	}
	return out
}

// allValues returns all notes, each expression of a rule once. A rule with overlapping patterns is asked once for each
// of them.
func (j *judge) allValues() []ConditionValue {
	if j.eval == nil {
		return nil
	}
	type place struct {
		rule *rule
		expr *expression
	}
	var out []ConditionValue
	seen := make(map[place]bool)
	for _, n := range j.eval.notes {
		if at := (place{n.rule, n.expr}); !seen[at] {
			seen[at] = true
			out = append(out, n.value())
		}
	}
	return out
}

func (n *note) value() ConditionValue {
	value := ConditionValue{Rule: n.rule.name, Expr: n.expr.text}
	switch n.outcome {
	case yes:
		value.Value = "true"
	case no:
		value.Value = "false"
	default:
		value.Error = n.err.Error()
	}
	return value
}

// visible reports whether some arguments could make the call allowed or asked.
func (j *judge) visible() bool {
	p := j.set.governing(j.principal.agentID)
	if p == nil {
		return false
	}
	if j.kind != ResourcesRead {
		j.raw, j.unknown = nil, unknownArguments
	}
	if j.eval != nil {
		j.eval.about(j.kind, j.name, j.raw, j.checked, j.unknown)
	}
	return j.decide(p).effect != Deny
}
