package rules

import (
	"context"
	"strings"
	"time"
)

// View answers for one principal which items a list may show: those for which some arguments could make a call allowed
// or asked. It is for one goroutine, and for as long as one answer.
type View struct {
	set       *Set
	ctx       context.Context
	principal *Principal
	memo      memo
	spent     time.Duration // on conditions
}

// View is what a principal may see of the server in lists; nil is nobody, who sees nothing.
func (s *Set) View(ctx context.Context, p *Principal) *View {
	return &View{set: s, ctx: ctx, principal: p, memo: make(memo)}
}

// Tool reports whether some arguments could make a call of the tool allowed or asked.
func (v *View) Tool(name string) bool { return v.shows(ToolsCall, name) }

// Prompt is the same for a prompt.
func (v *View) Prompt(name string) bool { return v.shows(PromptsGet, name) }

// Resource reports whether the resource may be read, with or without approval.
func (v *View) Resource(uri string) bool { return v.shows(ResourcesRead, uri) }

func (v *View) shows(k Kind, name string) bool {
	if v.principal == nil || !callable(k, name) {
		return false
	}
	j := judge{ctx: v.ctx, set: v.set, principal: v.principal, kind: k, name: name, memo: v.memo, spent: &v.spent}
	defer j.done()
	return j.visible()
}

// Template reports whether some expansion of the URI template (RFC 6570) could be read. An expression of the template
// is taken for any text: what servers put there does not keep to the RFC.
//
// The expansions that matter are those that a grant's pattern matches. All that start with one text meet the same rules
// of prefixes, so it is enough to ask about the fixed start of the template, about each longer prefix in the policy, and
// about each whole URI in it that is an expansion.
func (v *View) Template(uriTemplate string) bool {
	start, _, varies := strings.Cut(uriTemplate, "{")
	if !varies {
		return v.Resource(uriTemplate)
	}
	if v.principal == nil {
		return false
	}
	p := v.set.governing(v.principal.agentID)
	if p == nil || refusedStart(start) {
		return false
	}
	if v.showsStart(p, start) {
		return true
	}
	parts := literals(uriTemplate)
	ix := &p.calls[ResourcesRead]
	for i := range ix.prefixes {
		text := ix.prefixes[i].text
		if len(text) > len(start) && expands(parts, text, true) && v.showsStart(p, text) {
			return true
		}
	}
	for uri := range ix.exact {
		if expands(parts, uri, false) && v.Resource(uri) {
			return true
		}
	}
	return false
}

// showsStart asks about all resources that start with a text.
func (v *View) showsStart(p *policy, start string) bool {
	j := judge{ctx: v.ctx, set: v.set, principal: v.principal, kind: ResourcesRead, name: start, onlyStart: true, unknown: unknownItem, memo: v.memo, spent: &v.spent}
	defer j.done()
	return j.decide(p).effect != Deny
}
