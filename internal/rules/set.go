package rules

import (
	"context"

	"github.com/durward-gateway/durward/storage"
)

// Set is what the policies of one server say, compiled.
type Set struct{}

// Compile makes the set of a server from its policies. Active ones decide; drafts with Shadow ride along; all others,
// and those of other servers, are left out. It fails when an active policy would not pass Check, or two of them govern
// the same agent: the caller must refuse then.
func Compile(serverSlug, serverID string, policies []storage.Policy) (*Set, error) { return &Set{}, nil }

// Decide judges a call. A done context makes the conditions that are still to be evaluated unevaluable.
func (s *Set) Decide(ctx context.Context, c Call) Decision { return Decision{Hidden: true} }

// View is what a principal may see of the server in lists.
func (s *Set) View(ctx context.Context, p *Principal) *View { return &View{} }

// View answers for one principal which items a list may show. It is for one goroutine, and for as long as one answer.
type View struct{}

// Tool reports whether some arguments could make a call of the tool allowed or asked.
func (v *View) Tool(name string) bool { return false }

// Prompt is the same for a prompt.
func (v *View) Prompt(name string) bool { return false }

// Resource reports whether the resource may be read.
func (v *View) Resource(uri string) bool { return false }

// Template reports whether some expansion of the URI template (RFC 6570) could be read.
func (v *View) Template(uriTemplate string) bool { return false }

// Principal is who calls.
type Principal struct{}

// NewPrincipal makes the principal of a verified token, once: id is the user's, agentID the registered agent's or "",
// claims what the token says (the protocol's own claims are left out). Nothing of it may change afterwards.
func NewPrincipal(id string, roles, groups []string, agentID string, claims map[string]any) *Principal {
	return &Principal{}
}
