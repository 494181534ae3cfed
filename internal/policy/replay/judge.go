package replay

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/durward-gateway/durward/internal/policy/engine"
	"github.com/durward-gateway/durward/storage"
)

// Verdict is the result of a policy for an entry of the audit log.
type Verdict uint8

// Verdicts of a judge.
const (
	Elsewhere Verdict = iota // the policy does not decide about it, or it is not a call
	Same
	Changed
	Unjudged // it depends on data that was not recorded
)

// Decided holds the real or the new decision on a call.
type Decided struct {
	Decision string `json:"decision"` // allow, deny, ask; off for a call without policies
	Rule     string `json:"rule,omitempty"`
	PolicyID string `json:"policy_id,omitempty"`
	Revision int    `json:"policy_revision,omitempty"`
}

// Difference is a call that the policy would have decided differently.
type Difference struct {
	RecordID string    `json:"record_id"` // of the audit log
	Time     time.Time `json:"time"`
	UserID   string    `json:"user_id"`
	AgentID  string    `json:"agent_id,omitempty"`
	Client   string    `json:"client,omitempty"`
	Kind     string    `json:"kind"`           // tools/call, resources/read, prompts/get or sse/stream
	Name     string    `json:"name,omitempty"` // of the tool or prompt, or the URI
	Former   Decided   `json:"former"`
	New      Decided   `json:"new"`
}

// Missing says which data was missing to judge a call. One call may lack several.
type Missing struct {
	Arguments bool // they were not recorded, or not all of them
	Roles     bool // the caller's roles and groups were not recorded
	Claims    bool // other facts of the caller's token, which are never recorded
	Streams   bool // whether a stream needed a grant, which depends on the configuration
}

// Scope selects the calls that a policy decides about, or would if it were active.
type Scope struct {
	policy   storage.Policy
	excluded []string // agents with another active policy
}

// NewScope returns the scope of a policy of any status. present are the policies of its server: the active ones affect
// for which agents the policy would decide.
func NewScope(p storage.Policy, present []storage.Policy) Scope {
	p.Status, p.Shadow = storage.PolicyActive, false
	s := Scope{policy: p}
	for _, other := range present {
		if other.ID != p.ID && other.ServerID == p.ServerID && other.Status == storage.PolicyActive && len(p.ApplicationIDs) == 0 {
			s.excluded = append(s.excluded, other.ApplicationIDs...)
		}
	}
	return s
}

// Holds reports whether an entry of the audit log is a decision on a call that the policy decides about.
func (s *Scope) Holds(e *storage.AuditEntry) bool {
	kind := kindOf(e.Method)
	return kind != 0 && e.ServerID == s.policy.ServerID && decided(e) && s.governs(e.AgentID) && (kind == engine.SSEStream || e.Tool != "")
}

// governs reports whether the policy would decide for an agent; "" is a client that was not registered.
func (s *Scope) governs(agent string) bool {
	if len(s.policy.ApplicationIDs) > 0 {
		return agent != "" && slices.Contains(s.policy.ApplicationIDs, agent)
	}
	return agent == "" || !slices.Contains(s.excluded, agent)
}

// Judge judges entries by one policy as if it were active. It is for one goroutine.
type Judge struct {
	Scope
	slug string
	set  *engine.Set
}

// NewJudge makes the judge of a policy, with the arguments of NewScope. It fails when the policy would no longer be
// accepted.
func NewJudge(p storage.Policy, present []storage.Policy) (*Judge, error) {
	j := &Judge{Scope: NewScope(p, present)}
	return j, j.compile("")
}

func (j *Judge) compile(slug string) error {
	set, err := engine.Compile(slug, j.policy.ServerID, []storage.Policy{j.policy})
	if err != nil {
		return fmt.Errorf("compiling: %w", err)
	}
	j.slug, j.set = slug, set
	return nil
}

// Judge returns the policy's verdict on an entry. The difference is set when the verdict is Changed, the missing data
// when it is Unjudged. The error is the context's.
func (j *Judge) Judge(ctx context.Context, e *storage.AuditEntry) (Verdict, Difference, Missing, error) {
	if !j.Holds(e) {
		return Elsewhere, Difference{}, Missing{}, nil
	}
	kind := kindOf(e.Method)
	if e.Detail["name_bytes"] != nil && kind != engine.ToolsCall {
		return Unjudged, Difference{}, Missing{Arguments: true}, nil // only the beginning of the URI was recorded
	}
	if e.Server != j.slug {
		if err := j.compile(e.Server); err != nil {
			return Elsewhere, Difference{}, Missing{}, err // not reached: the policy compiled before
		}
	}
	call, lacking := callOf(e, kind)
	said := j.set.Foresee(ctx, call, lacking)
	if err := ctx.Err(); err != nil {
		return Elsewhere, Difference{}, Missing{}, err // conditions were not fully evaluated
	}
	former, missing := former(e), Missing{Arguments: said.Lacked.Arguments, Roles: said.Lacked.Roles, Claims: said.Lacked.Claims}
	if said.Certain && kind == engine.SSEStream {
		said.Effect, said.Certain = stream(e, &said, &missing)
	}
	if !said.Certain {
		return Unjudged, Difference{}, missing, nil
	}
	if said.Effect == engine.Allow && former.Decision == "ask" && former.Rule == engine.RuleConfirmation {
		said.Effect = engine.Ask // the agent's own rule asked, whatever policies allow
	}
	if passes(former.Decision) == said.Effect {
		return Same, Difference{}, Missing{}, nil
	}
	return Changed, Difference{
		RecordID: e.ID, Time: e.At, UserID: e.UserID, AgentID: e.AgentID, Client: e.Client, Kind: kind.String(), Name: e.Tool,
		Former: former, New: Decided{Decision: said.Effect.String(), Rule: said.Rule, PolicyID: j.policy.ID, Revision: j.policy.Revision},
	}, Missing{}, nil
}

func passes(decision string) engine.Effect {
	switch decision {
	case "allow", "off":
		return engine.Allow
	case "ask":
		return engine.Ask
	}
	return engine.Deny
}

// former returns the real decision.
func former(e *storage.AuditEntry) Decided {
	return Decided{Decision: e.Decision, Rule: e.Rule, PolicyID: e.PolicyID, Revision: e.PolicyRevision}
}

// openByDefault reports whether a stream was opened although no rule granted it and none denied it, because the
// configuration demands no grant.
func openByDefault(e *storage.AuditEntry) bool {
	return kindOf(e.Method) == engine.SSEStream && e.Decision == "allow" && e.Rule == ""
}

func ungranted(e *storage.AuditEntry) bool { return e.Decision == "deny" && e.Rule == "" }

// stream returns the effect on a stream. A stream that no rule denies may be open to everybody. Only a record of a
// stream without a grant tells whether it was.
func stream(e *storage.AuditEntry, said *engine.Foreseen, missing *Missing) (effect engine.Effect, certain bool) {
	switch {
	case said.Effect != engine.Deny || said.Rule != "":
		return said.Effect, true
	case *missing != Missing{}:
		return engine.Deny, false // a rule may deny it
	case openByDefault(e):
		return engine.Allow, true
	case ungranted(e):
		return engine.Deny, true
	}
	missing.Streams = true
	return engine.Deny, false
}
