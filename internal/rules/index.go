package rules

import (
	"slices"
	"sort"
	"strings"
)

// posting are the rules that one pattern belongs to, by what they do, each list in the order of the policy.
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
// the rules for other names.
type index struct {
	all      posting // of the pattern *
	exact    map[string]*posting
	prefixes []prefix // sorted by text
}

type prefix struct {
	text   string
	parent int // the longest other prefix that this one starts with; -1: none
	rules  *posting
}

// at is the posting of a pattern, made when it is new. Only while compiling.
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

// finish links the prefixes. In sorted order a prefix stands before all that start with it, so those that are open at a
// place are a stack.
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

// match appends the rules whose pattern matches name; with onlyStart, every rule whose pattern is sure to match all names
// that begin with it.
func (ix *index) match(into []*posting, name string, onlyStart bool) []*posting {
	if !onlyStart {
		if p := ix.exact[name]; p != nil {
			into = append(into, p)
		}
	}
	// The last prefix that sorts before the name, or one of those it starts with, is the longest that matches.
	i := sort.Search(len(ix.prefixes), func(i int) bool { return ix.prefixes[i].text > name }) - 1
	for i >= 0 && !strings.HasPrefix(name, ix.prefixes[i].text) {
		i = ix.prefixes[i].parent
	}
	for ; i >= 0; i = ix.prefixes[i].parent {
		into = append(into, ix.prefixes[i].rules)
	}
	return append(into, &ix.all)
}
