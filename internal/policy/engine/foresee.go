package engine

import (
	"context"
	"math"
	"slices"
)

// Lacking lists the unknown facts of a call that is judged afterwards, from a record of it.
type Lacking struct {
	Arguments bool     // all arguments are unknown
	Members   []string // the arguments with unknown values; the others are known
	Roles     bool     // the caller's roles and groups
	Claims    bool     // the other claims of the caller's token
}

// Foreseen is the answer of a set for a call with unknown facts.
type Foreseen struct {
	// Certain reports whether Decide would have answered Effect for any values of the unknown facts. If it is false,
	// Lacked lists the facts that the answer depends on. For a certain denial, Lacked lists the facts that tell whether
	// a rule denies or no rule grants.
	Certain bool
	Effect  Effect
	// PolicyID is the policy that governs the caller, "" for none. It never depends on unknown facts.
	PolicyID string
	// Rule names a rule that leads to Effect. It is "" for a denial where no rule grants and no rule is sure to deny.
	// It is also "" for a call that is Open and that no rule grants.
	Rule   string
	Lacked Lacking
}

// Foresee judges a call with unknown facts. It does not guess: an answer that depends on an unknown fact is not
// certain. A condition that could look at an unknown fact counts as able to come out otherwise, unless the rest of the
// condition decides. So Foresee may call too few answers certain, never too many. It does not ask drafts in the shadow.
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
		lacking.Arguments, lacking.Members = false, nil // resources have no arguments: conditions see the URI
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

// foresight is one question with unknown facts.
type foresight struct {
	*judge
	lacking *Lacking
	lacked  Lacking // the unknown facts that mattered
}

// certainty tells which rules of one effect match. number is the first rule that is sure to match, -1 for none.
type certainty struct {
	number   int32
	possible bool // some rule may match
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

// rules looks at the rules of one effect. Among the rules that ask, it names a rule with the greatest demand,
// as Decide does.
func (f *foresight) rules(p *policy, found []*posting, e Effect) certainty {
	first := [demands]int32{math.MaxInt32, math.MaxInt32, math.MaxInt32} // by demand; only rules that ask have one
	possible := false
	for _, postings := range found {
		for _, n := range *postings.list(e) {
			r := &p.rules[n]
			d := anyChannel
			if e == Ask {
				d = r.demand
			}
			if n >= first[d] {
				continue
			}
			out := f.outcome(r, e)
			can, does := out.grants(), out == yes
			if e == Deny {
				can, does = out&^no != 0, out.denies()
			}
			possible = possible || can
			if does {
				first[d] = n
			}
		}
	}
	for _, n := range slices.Backward(first[:]) {
		if n != math.MaxInt32 {
			return certainty{n, possible}
		}
	}
	return certainty{-1, possible}
}

// outcome returns the possible answers to the question whether a rule of an effect matches.
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

// foreseen evaluates an expression of a call with unknown facts.
func (e *evaluation) foreseen(x *expression) (outcome, error) {
	switch {
	case x.reads.roles && e.lacking.Roles:
		e.lacked.Roles = true
		return anything, nil
	case x.reads.claims && e.lacking.Claims:
		e.lacked.Claims = true
		return anything, nil
	case x.reads.anyOf(e.lacking.Members), x.reads.arguments && e.lacking.Arguments:
		// The expression must not look at the value that stands in for an unknown one. It must not see that value as
		// missing, either.
		e.lacked.Arguments = true
		return anything, nil
	}
	out, err := e.evaluate(x)
	if !e.lacking.Arguments || !x.reads.anyArgument() {
		return out, err
	}
	e.lacked.Arguments = true
	if out == yes || out == no {
		// The rest of the expression decides. Arguments may still make it impossible to evaluate, for example a number
		// that no double holds.
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
