package engine

import (
	"context"
	"strings"
	"time"
)

// View tells which items of a list one principal may see. An item is visible when some arguments could make a call of
// it allowed or asked. A View serves one goroutine and one answer.
type View struct {
	set       *Set
	ctx       context.Context
	principal *Principal
	memo      memo
	spent     time.Duration // already used for conditions
}

// View returns the view that a principal has of the server's lists. A nil principal is nobody, and sees nothing.
func (s *Set) View(ctx context.Context, p *Principal) *View {
	return &View{set: s, ctx: ctx, principal: p, memo: make(memo)}
}

// Tool reports whether some arguments could make a call of the tool allowed or asked.
func (v *View) Tool(name string) bool { return v.shows(ToolsCall, name) }

// Prompt reports whether some arguments could make a call of the prompt allowed or asked.
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
// may stand for any text here, because the expansions of servers do not keep to the RFC.
//
// Only the expansions that a grant's pattern matches can be read. All expansions that start with the same text meet the
// same prefix rules. So three checks are enough: the fixed start of the template, each longer prefix in the policy, and
// each whole URI in the policy that is an expansion.
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

// showsStart reports whether some resource that starts with a text may be shown. It judges all of them at once.
func (v *View) showsStart(p *policy, start string) bool {
	j := judge{ctx: v.ctx, set: v.set, principal: v.principal, kind: ResourcesRead, name: start, onlyStart: true, unknown: unknownItem, memo: v.memo, spent: &v.spent}
	defer j.done()
	return j.decide(p).effect != Deny
}
