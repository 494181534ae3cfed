package engine

import (
	"fmt"
	"slices"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"

	"github.com/durward-gateway/durward/storage"
)

// Set holds the compiled policies of one server. It is immutable and safe for concurrent use.
type Set struct {
	kind, id ref.Val            // the server's slug and id, as conditions see them
	byAgent  map[string]*policy // nil: no policy names agents
	unscoped *policy            // the policy that names no agent; nil: none
	shadows  []*policy
	skipped  []error
}

// policy is one compiled policy.
type policy struct {
	id, name string
	revision int
	agents   map[string]bool // nil: all
	rules    []rule          // the active rules, in the order of the policy
	masks    []mask          // of the subjects of each rule: a thousand rules for others are skipped without a look at any
	calls    [callKinds]index
	foreign  bool // some rule lets other people than the caller decide
}

// rule is one compiled rule.
type rule struct {
	name      string
	subjects  subjects
	condition *condition // nil: none
	demand    demand
	approvers []string // of a rule with othersDecide, sorted
}

// Compile makes the set of a server from its policies. Active policies decide. Drafts with Shadow are judged as well,
// without effect. All other policies, and those of other servers, are left out. Compile fails when an active policy
// would not pass Check, or when two active policies govern the same agent. The caller must refuse calls then.
func Compile(serverSlug, serverID string, policies []storage.Policy) (*Set, error) {
	s := &Set{kind: types.String(serverSlug), id: types.String(serverID)}
	var reader conditionReader
	for i := range policies {
		p := &policies[i]
		active, shadow := p.Status == storage.PolicyActive, p.Status == storage.PolicyDraft && p.Shadow
		if p.ServerID != serverID || !active && !shadow {
			continue
		}
		compiled, err := compilePolicy(&reader, p)
		switch {
		case err != nil && shadow:
			s.skipped = append(s.skipped, err)
		case err != nil:
			return nil, err
		case shadow:
			s.shadows = append(s.shadows, compiled)
		default:
			if err := s.enforce(compiled); err != nil {
				return nil, err
			}
		}
	}
	return s, nil
}

// Skipped returns one error for each draft that was left out because it would not pass Check.
func (s *Set) Skipped() []error { return s.skipped }

func (s *Set) enforce(p *policy) error {
	if p.agents == nil {
		if s.unscoped != nil {
			return fmt.Errorf("policies %q and %q are both active for all agents", s.unscoped.name, p.name)
		}
		s.unscoped = p
		return nil
	}
	for agent := range p.agents {
		if other := s.byAgent[agent]; other != nil {
			return fmt.Errorf("policies %q and %q are both active for agent %s", other.name, p.name, agent)
		}
		if s.byAgent == nil {
			s.byAgent = make(map[string]*policy)
		}
		s.byAgent[agent] = p
	}
	return nil
}

// governing returns the one policy that decides for an agent. It returns nil when there is none.
func (s *Set) governing(agent string) *policy {
	if agent != "" {
		if p := s.byAgent[agent]; p != nil {
			return p
		}
	}
	return s.unscoped
}

// wouldGovern reports whether a draft would decide for an agent if it were active instead of the policies that it
// overlaps.
func (s *Set) wouldGovern(draft *policy, agent string) bool {
	if draft.agents != nil {
		return agent != "" && draft.agents[agent]
	}
	return agent == "" || s.byAgent[agent] == nil
}

func compilePolicy(reader *conditionReader, p *storage.Policy) (*policy, error) {
	reader.organization = p.OrganizationID
	out := &policy{id: p.ID, name: p.Name, revision: p.Revision}
	if len(p.ApplicationIDs) > 0 {
		out.agents = make(map[string]bool, len(p.ApplicationIDs))
		for _, id := range p.ApplicationIDs {
			out.agents[id] = true
		}
	}
	out.rules, out.masks = make([]rule, 0, len(p.Rules)), make([]mask, 0, len(p.Rules))
	for i := range p.Rules {
		if !p.Rules[i].Active {
			continue
		}
		if err := out.add(reader, &p.Rules[i]); err != nil {
			return nil, fmt.Errorf("policy %q, rule %q: %w", p.Name, p.Rules[i].Name, err)
		}
	}
	for k := range out.calls {
		out.calls[k].finish()
	}
	return out, nil
}

func (p *policy) add(reader *conditionReader, r *storage.Rule) error {
	if err := wrongApprovers(r.Approval); err != nil {
		return err
	}
	compiled := rule{name: r.Name, demand: demandOf(r.Approval), approvers: slices.Compact(slices.Sorted(slices.Values(r.Approval.By)))}
	p.foreign = p.foreign || compiled.demand == othersDecide
	for _, entry := range r.RolesGroups {
		if err := wrongSubject(entry); err != nil {
			return fmt.Errorf("role or group %q: %w", entry, err)
		}
		compiled.subjects.add(entry)
	}
	if r.Condition != nil {
		reader.problems, reader.expressions = nil, 0
		compiled.condition = reader.read(r.Condition, nil)
		if compiled.condition == nil {
			return fmt.Errorf("condition: %s", reader.problems[0].Message)
		}
	}
	at := int32(len(p.rules))
	for _, text := range r.Actions {
		a, err := ParseAction(text)
		if err != nil {
			return fmt.Errorf("action %q: %w", text, err)
		}
		effect := Allow
		switch {
		case !r.Authorized:
			effect = Deny
		case a.Approve:
			effect = Ask
		}
		switch a.Kind {
		case Any:
			for k := range p.calls {
				p.calls[k].all.add(effect, at)
			}
		case SSEStream:
			p.calls[a.Kind].all.add(effect, at)
		case ToolsCall, ResourcesRead, PromptsGet:
			p.calls[a.Kind].at(a.Name, a.Prefix).add(effect, at)
		}
	}
	p.rules, p.masks = append(p.rules, compiled), append(p.masks, compiled.subjects.mask())
	return nil
}
