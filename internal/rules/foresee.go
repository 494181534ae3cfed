package rules

import (
	"context"
	"math"
	"slices"
)

// Lacking says what is not known of a call that is judged afterwards, from what was recorded of it.
type Lacking struct {
	Arguments bool     // all of them
	Members   []string // the values of these arguments; the others are known
	Roles     bool     // the caller's roles and groups
	Claims    bool     // what else the caller's token says
}

// Foreseen is what a set says to a call of which not everything is known.
type Foreseen struct {
	// Certain: whatever the unknown facts are, Effect is what Decide would have said. Else Lacked is what it depends on; of a
	// denial that is certain, Lacked is what it depends on whether a rule denies or none grants.
	Certain bool
	Effect  Effect
	// PolicyID is of the policy that governs the caller, "" for none: that never depends on what is not known.
	PolicyID string
	// Rule is the name of a rule that decides so, "" of a denial when none grants and none is sure to deny, and of a call that
	// is Open and that no rule grants.
	Rule   string
	Lacked Lacking
}

// Foresee judges a call of which some facts are not known, without a guess: what depends on them is not certain. It takes
// each condition that could look at an unknown fact for able to come out otherwise, unless the rest of it decides; so
// more may be certain than it says, and never less. The shadow is not asked.
func (s *Set) Foresee(ctx context.Context, c Call, lacking Lacking) Foreseen {
	if c.Principal == nil || !callable(c.Kind, c.Name) {
		return Foreseen{Certain: true}
	}
	p := s.governing(c.Principal.agentID)
	if p == nil && c.Open {
		return Foreseen{Certain: true, Effect: Allow}
	}
	if p == nil {
		return Foreseen{Certain: true}
	}
	if c.Kind == ResourcesRead {
		lacking.Arguments, lacking.Members = false, nil // they have none: conditions see the URI
	}
	j := judge{ctx: ctx, set: s, principal: c.Principal, kind: c.Kind, name: c.Name, raw: c.Arguments, checked: c.Checked, open: c.Open}
	if lacking.Arguments {
		j.raw, j.unknown = nil, unknownArguments
	}
	defer j.done()
	f := foresight{judge: &j, lacking: &lacking}
	out := f.decide(p)
	out.PolicyID = p.id
	return out
}

// foresight is a question with unknown facts.
type foresight struct {
	*judge
	lacking *Lacking
	lacked  Lacking // what of it mattered
}

// certainty is which rules of one effect match: number is the first that does for sure, -1 when there is none.
type certainty struct {
	number   int32
	possible bool // one may match
}

func (f *foresight) decide(p *policy) Foreseen {
	var room [8]*posting
	found := p.calls[f.kind].match(room[:0], f.name, false)
	denies := f.rules(p, found, Deny)
	if denies.number >= 0 {
		return Foreseen{Certain: true, Effect: Deny, Rule: p.rules[denies.number].name}
	}
	asks := f.rules(p, found, Ask)
	allows := f.rules(p, found, Allow)
	asked, allowed := asks.number >= 0, allows.number >= 0 || f.open
	var possible []Foreseen
	if denies.possible || !asked && !allowed {
		denied := Foreseen{Effect: Deny}
		if denies.possible {
			denied.Lacked = f.lacked
		}
		possible = append(possible, denied)
	}
	if asks.possible {
		possible = append(possible, Foreseen{Effect: Ask, Rule: ruleName(p, asks.number)})
	}
	if (allows.possible || f.open) && !asked {
		possible = append(possible, Foreseen{Effect: Allow, Rule: ruleName(p, allows.number)})
	}
	if len(possible) > 1 {
		return Foreseen{Lacked: f.lacked}
	}
	possible[0].Certain = true
	return possible[0]
}

func ruleName(p *policy, number int32) string {
	if number < 0 {
		return ""
	}
	return p.rules[number].name
}

// rules looks at the rules of one effect. Of those that ask, one that demands the out-of-band channel is named first, as
// Decide does.
func (f *foresight) rules(p *policy, found []*posting, e Effect) certainty {
	best, strict := int32(math.MaxInt32), int32(math.MaxInt32)
	possible := false
	for _, postings := range found {
		for _, n := range *postings.list(e) {
			r := &p.rules[n]
			if n >= best && (!r.outOfBand || e != Ask || n >= strict) {
				continue
			}
			out := f.outcome(r, e)
			can, does := out.grants(), out == yes
			if e == Deny {
				can, does = out&^no != 0, out.denies()
			}
			possible = possible || can
			if does {
				best = min(best, n)
			}
			if does && r.outOfBand {
				strict = min(strict, n)
			}
		}
	}
	if e == Ask && strict != math.MaxInt32 {
		best = strict
	}
	if best == math.MaxInt32 {
		best = -1
	}
	return certainty{best, possible}
}

// outcome is what can come out of asking whether a rule of an effect matches.
func (f *foresight) outcome(r *rule, e Effect) outcome {
	subject := no
	switch {
	case r.subjects.everyone:
		subject = yes
	case f.lacking.Roles:
		f.lacked.Roles = true
		subject = yes | no
	case r.subjects.include(f.principal, e == Deny):
		subject = yes
	}
	if r.condition == nil || subject == no {
		return subject
	}
	if f.eval == nil {
		f.eval = newEvaluation(f.ctx, f.set, f.principal)
		f.eval.lacking, f.eval.lacked = f.lacking, &f.lacked
		f.eval.about(f.kind, f.name, f.raw, f.checked, f.unknown)
	}
	return subject.and(f.eval.matches(r))
}

// foreseen evaluates an expression of a call of which not everything is known.
func (e *evaluation) foreseen(x *expression) (outcome, error) {
	switch {
	case x.reads.roles && e.lacking.Roles:
		e.lacked.Roles = true
		return anything, nil
	case x.reads.claims && e.lacking.Claims:
		e.lacked.Claims = true
		return anything, nil
	case x.reads.anyOf(e.lacking.Members), x.reads.arguments && e.lacking.Arguments:
		// The value in the place of an unknown one must not be looked at, and neither must its absence.
		e.lacked.Arguments = true
		return anything, nil
	}
	out, err := e.evaluate(x)
	if !e.lacking.Arguments || !x.reads.anyArgument() {
		return out, err
	}
	e.lacked.Arguments = true
	if out == yes || out == no {
		// The rest of it decides, but for arguments that make it unevaluable, a number that no double holds among them.
		return out | broken, nil
	}
	return anything, nil
}

// anyOf reports whether the expression can look at one of these arguments.
func (r *reads) anyOf(members []string) bool {
	if len(members) == 0 {
		return false
	}
	return r.arguments || slices.ContainsFunc(r.members, func(name string) bool { return slices.Contains(members, name) })
}
