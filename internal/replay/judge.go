package replay

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/durward-gateway/durward/internal/rules"
	"github.com/durward-gateway/durward/storage"
)

// Verdict is what a policy makes of an entry of the audit log.
type Verdict uint8

// Verdicts.
const (
	Elsewhere Verdict = iota // the policy does not decide about it, or it is no call
	Same
	Changed
	Unjudged // it depends on what was not recorded
)

// Decided is what was, or would have been, decided on a call.
type Decided struct {
	Decision string `json:"decision"` // allow, deny, ask; off for a call that nothing judged
	Rule     string `json:"rule,omitempty"`
	PolicyID string `json:"policy_id,omitempty"`
	Revision int    `json:"policy_revision,omitempty"`
}

// Difference is a call that the policy would have decided otherwise.
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

// Missing is what kept a call from being judged: more than one may have.
type Missing struct {
	Arguments bool // they were not recorded, or not all of them
	Roles     bool // the caller's roles and groups were not recorded
	Claims    bool // what else the caller's token said, which is never recorded
	Streams   bool // whether a stream needed a grant, which the configuration says
}

// Scope is which calls a policy decides about, or would if it were active.
type Scope struct {
	policy   storage.Policy
	excluded []string // agents whom another active policy governs
}

// NewScope is the scope of a policy of any status. present are the policies of its server: for which agents the policy
// would decide depends on those that are active.
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
	return kind != 0 && e.ServerID == s.policy.ServerID && decided(e) && s.governs(e.AgentID) && (kind == rules.SSEStream || e.Tool != "")
}

// governs reports whether the policy would decide for an agent, "" for a client that was not registered.
func (s *Scope) governs(agent string) bool {
	if len(s.policy.ApplicationIDs) > 0 {
		return agent != "" && slices.Contains(s.policy.ApplicationIDs, agent)
	}
	return agent == "" || !slices.Contains(s.excluded, agent)
}

// Judge judges entries by one policy as though it were active. It is for one goroutine.
type Judge struct {
	Scope
	slug string
	set  *rules.Set
}

// NewJudge makes the judge of a policy, as NewScope does. It fails when the policy would not be accepted any more.
func NewJudge(p storage.Policy, present []storage.Policy) (*Judge, error) {
	j := &Judge{Scope: NewScope(p, present)}
	return j, j.compile("")
}

func (j *Judge) compile(slug string) error {
	set, err := rules.Compile(slug, j.policy.ServerID, []storage.Policy{j.policy})
	if err != nil {
		return fmt.Errorf("compiling: %w", err)
	}
	j.slug, j.set = slug, set
	return nil
}

// Judge says what the policy would have made of an entry. The difference is set when it is Changed, what is missing when
// it is Unjudged. Its error is the context's.
func (j *Judge) Judge(ctx context.Context, e *storage.AuditEntry) (Verdict, Difference, Missing, error) {
	if !j.Holds(e) {
		return Elsewhere, Difference{}, Missing{}, nil
	}
	kind := kindOf(e.Method)
	if e.Detail["name_bytes"] != nil && kind != rules.ToolsCall {
		return Unjudged, Difference{}, Missing{Arguments: true}, nil // only the beginning of the URI was recorded
	}
	if e.Server != j.slug {
		if err := j.compile(e.Server); err != nil {
			return Elsewhere, Difference{}, Missing{}, err // not reached: it compiled before
		}
	}
	call, lacking := callOf(e, kind)
	said := j.set.Foresee(ctx, call, lacking)
	if err := ctx.Err(); err != nil {
		return Elsewhere, Difference{}, Missing{}, err // conditions were not evaluated to their end
	}
	former, missing := former(e), Missing{Arguments: said.Lacked.Arguments, Roles: said.Lacked.Roles, Claims: said.Lacked.Claims}
	if said.Certain && kind == rules.SSEStream {
		said.Effect, said.Certain = stream(e, &said, &missing)
	}
	if !said.Certain {
		return Unjudged, Difference{}, missing, nil
	}
	if passes(former.Decision) == said.Effect {
		return Same, Difference{}, Missing{}, nil
	}
	return Changed, Difference{
		RecordID: e.ID, Time: e.At, UserID: e.UserID, AgentID: e.AgentID, Client: e.Client, Kind: kind.String(), Name: e.Tool,
		Former: former, New: Decided{Decision: said.Effect.String(), Rule: said.Rule, PolicyID: j.policy.ID, Revision: j.policy.Revision},
	}, Missing{}, nil
}

func passes(decision string) rules.Effect {
	switch decision {
	case "allow", "off":
		return rules.Allow
	case "ask":
		return rules.Ask
	}
	return rules.Deny
}

// former is what was decided.
func former(e *storage.AuditEntry) Decided {
	return Decided{Decision: e.Decision, Rule: e.Rule, PolicyID: e.PolicyID, Revision: e.PolicyRevision}
}

// openByDefault: no rule granted the stream and none denied it, and it was opened, because the configuration demands no
// grant.
func openByDefault(e *storage.AuditEntry) bool {
	return kindOf(e.Method) == rules.SSEStream && e.Decision == "allow" && e.Rule == ""
}

func ungranted(e *storage.AuditEntry) bool { return e.Decision == "deny" && e.Rule == "" }

// stream is what becomes of a stream: one that no rule denies may be open to everybody. Whether it was is told only by a
// record of one that no rule granted.
func stream(e *storage.AuditEntry, said *rules.Foreseen, missing *Missing) (effect rules.Effect, certain bool) {
	switch {
	case said.Effect != rules.Deny || said.Rule != "":
		return said.Effect, true
	case *missing != Missing{}:
		return rules.Deny, false // a rule may deny it
	case openByDefault(e):
		return rules.Allow, true
	case ungranted(e):
		return rules.Deny, true
	}
	missing.Streams = true
	return rules.Deny, false
}
