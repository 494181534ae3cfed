package replay

import (
	"cmp"
	"slices"
)

// maxGroups bounds the number of groups: names of tools come from callers.
const maxGroups = 1_000

// Group holds the calls of one tool, prompt or resource for which one rule newly makes the same decision.
type Group struct {
	Kind   string `json:"kind"`
	Name   string `json:"name,omitempty"`
	Former string `json:"former_decision"`
	New    string `json:"new_decision"`
	Rule   string `json:"rule"` // the rule of the new decision; "": no rule grants it
	Calls  int    `json:"calls"`
}

// Counts holds numbers of the calls that the policy would decide.
type Counts struct {
	Calls        int       `json:"calls"`
	Same         int       `json:"same"`
	NewlyDenied  int       `json:"newly_denied"`
	NewlyAllowed int       `json:"newly_allowed"`
	NewlyAsking  int       `json:"newly_asking"`
	NotJudged    NotJudged `json:"not_judged"`
}

// NotJudged counts calls that could not be judged, by the missing data; one call may lack several.
type NotJudged struct {
	Calls     int `json:"calls"`
	Arguments int `json:"arguments"`
	Roles     int `json:"roles"`
	Claims    int `json:"claims"`
	Streams   int `json:"streams"`
}

// Tally counts verdicts in bounded memory, and keeps the latest differences.
type Tally struct {
	Records int // entries that were read
	Counts
	// Ungrouped counts the calls of groups for which there was no room.
	Ungrouped int

	keep   int
	latest map[string][]Difference // by new decision, in the order of arrival
	groups map[Group]int           // without Calls
}

// NewTally makes a Tally that keeps so many examples of each new decision.
func NewTally(examples int) *Tally {
	return &Tally{keep: examples, latest: make(map[string][]Difference), groups: make(map[Group]int)}
}

// Add counts the result of a judge.
func (t *Tally) Add(v Verdict, d *Difference, m Missing) {
	t.Records++
	if v == Elsewhere {
		return
	}
	t.Calls++
	switch v {
	case Same:
		t.Same++
	case Unjudged:
		t.missing(m)
	case Changed:
		t.changed(d)
	}
}

func (t *Tally) missing(m Missing) {
	u := &t.NotJudged
	u.Calls++
	for _, one := range []struct {
		is bool
		n  *int
	}{{m.Arguments, &u.Arguments}, {m.Roles, &u.Roles}, {m.Claims, &u.Claims}, {m.Streams, &u.Streams}} {
		if one.is {
			*one.n++
		}
	}
}

func (t *Tally) changed(d *Difference) {
	switch d.New.Decision {
	case "deny":
		t.NewlyDenied++
	case "ask":
		t.NewlyAsking++
	default:
		t.NewlyAllowed++
	}
	group := Group{Kind: d.Kind, Name: d.Name, Former: d.Former.Decision, New: d.New.Decision, Rule: d.New.Rule}
	if _, known := t.groups[group]; known || len(t.groups) < maxGroups {
		t.groups[group]++
	} else {
		t.Ungrouped++
	}
	if t.keep <= 0 {
		return
	}
	kept := append(t.latest[d.New.Decision], *d)
	if len(kept) >= 2*t.keep {
		kept = slices.Delete(kept, 0, len(kept)-t.keep)
	}
	t.latest[d.New.Decision] = kept
}

// Groups returns the differences by group, the most frequent first.
func (t *Tally) Groups() []Group {
	groups := make([]Group, 0, len(t.groups))
	for g, n := range t.groups {
		g.Calls = n
		groups = append(groups, g)
	}
	slices.SortFunc(groups, func(a, b Group) int {
		return cmp.Or(cmp.Compare(b.Calls, a.Calls), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name), cmp.Compare(a.New, b.New),
			cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Former, b.Former))
	})
	return groups
}

// Examples returns the latest differences with that new decision, the latest last.
func (t *Tally) Examples(decision string) []Difference {
	kept := t.latest[decision]
	latest := slices.Clone(kept[max(0, len(kept)-t.keep):])
	slices.SortStableFunc(latest, func(a, b Difference) int { return a.Time.Compare(b.Time) })
	return latest
}
