package engine

import (
	"slices"
	"sort"
	"strings"
)

// posting lists the rules that have one pattern, by their effect. Each list is in the order of the policy.
type posting struct{ deny, ask, allow []int32 }

func (p *posting) list(e Effect) *[]int32 {
	switch e {
	case Deny:
		return &p.deny
	case Ask:
		return &p.ask
	}
	return &p.allow
}

func (p *posting) add(e Effect, rule int32) {
	if l := p.list(e); len(*l) == 0 || (*l)[len(*l)-1] != rule {
		*l = append(*l, rule)
	}
}

// index finds the rules of a policy whose pattern matches a name, for one kind of action. Its cost does not grow with
// the number of rules for other names.
type index struct {
	all      posting // of the pattern *
	exact    map[string]*posting
	prefixes []prefix // sorted by text
}

type prefix struct {
	text   string
	parent int // index of the longest other prefix that this one starts with; -1: none
	rules  *posting
}

// at returns the posting of a pattern. It makes one for a new pattern. It is for compiling only.
func (ix *index) at(name string, isPrefix bool) *posting {
	switch {
	case isPrefix && name == "":
		return &ix.all
	case isPrefix:
		i, found := slices.BinarySearchFunc(ix.prefixes, name, func(p prefix, name string) int { return strings.Compare(p.text, name) })
		if !found {
			ix.prefixes = slices.Insert(ix.prefixes, i, prefix{text: name, rules: new(posting)})
		}
		return ix.prefixes[i].rules
	}
	if ix.exact == nil {
		ix.exact = make(map[string]*posting)
	}
	p := ix.exact[name]
	if p == nil {
		p = new(posting)
		ix.exact[name] = p
	}
	return p
}

// finish links each prefix to its parent. In sorted order a prefix comes before all prefixes that start with it. So the
// prefixes that are still open at a position form a stack.
func (ix *index) finish() {
	var open []int
	for i := range ix.prefixes {
		p := &ix.prefixes[i]
		for len(open) > 0 && !strings.HasPrefix(p.text, ix.prefixes[open[len(open)-1]].text) {
			open = open[:len(open)-1]
		}
		p.parent = -1
		if len(open) > 0 {
			p.parent = open[len(open)-1]
		}
		open = append(open, i)
	}
}

// match appends the rules whose pattern matches name. With onlyStart it appends the rules whose pattern is sure to
// match every name that begins with name.
func (ix *index) match(into []*posting, name string, onlyStart bool) []*posting {
	if !onlyStart {
		if p := ix.exact[name]; p != nil {
			into = append(into, p)
		}
	}
	// The longest matching prefix is the last one that sorts before the name, or a prefix of that one.
	i := sort.Search(len(ix.prefixes), func(i int) bool { return ix.prefixes[i].text > name }) - 1
	for i >= 0 && !strings.HasPrefix(name, ix.prefixes[i].text) {
		i = ix.prefixes[i].parent
	}
	for ; i >= 0; i = ix.prefixes[i].parent {
		into = append(into, ix.prefixes[i].rules)
	}
	return append(into, &ix.all)
}
