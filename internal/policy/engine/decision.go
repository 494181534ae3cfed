package engine

import "fmt"

// Effect is the answer to a call.
type Effect uint8

// Effects, from strict to lax. The default is the first one.
const (
	Deny Effect = iota
	Ask         // a human confirms this very call first
	Allow
)

// String returns "deny", "ask" or "allow".
func (e Effect) String() string { return [...]string{"deny", "ask", "allow"}[min(e, Allow)] }

// Call describes the call to be judged.
type Call struct {
	Principal *Principal // nil: nobody, who is denied everything
	Kind      Kind       // ToolsCall, ResourcesRead, PromptsGet or SSEStream
	Name      string     // the tool, URI or prompt, as it stands in the message; "" for SSEStream
	// Arguments is a JSON object: the arguments of a tool or prompt, or the filters of a stream. It holds the bytes as
	// they were received, after the strict reader accepted them. nil means {}. A resource has no arguments: its
	// conditions see {"uri": Name}.
	Arguments []byte
	// Checked reports whether the strict reader has accepted the text that contains Arguments. They are then not read
	// as a whole again.
	Checked bool
	// Open allows the call if no rule denies it. Streams of /sse are open unless the configuration demands a grant.
	Open bool
}

// Decision is the answer of a set to a call.
type Decision struct {
	Effect Effect
	// Hidden reports, for a denied call, that no arguments could make it allowed or asked. A list does not show it
	// (View).
	Hidden bool
	// PolicyID, PolicyName and Revision describe the policy that decided. They are "" and 0 when no active policy
	// governs.
	PolicyID   string
	PolicyName string
	Revision   int
	// Rule is the name of the rule that decided. A denied call without a rule met no rule that denies, and no rule
	// grants it. An allowed call without a rule is Open, and no rule denies it.
	Rule string
	// OutOfBand reports whether a rule that asks demands that channel.
	OutOfBand bool
	// Approvers lists the people who decide on a call in place of the caller, see storage.Approval. It is nil when the
	// caller does.
	Approvers [][]string
	// Values holds the evaluated expressions of the deciding rule's condition. For a call that no rule grants, it holds
	// those of the grants that only their condition kept from matching. Explain puts all evaluated expressions here.
	Values []ConditionValue
	Reason Reason // a sentence for people, without any part of the arguments
	// Shadow lists the drafts in the shadow that would have decided otherwise.
	Shadow []ShadowDecision
}

// RuleConfirmation is the name, in the place of a rule's, of an agent's write_confirmations_required: see Confirmed.
const RuleConfirmation = "write_confirmations_required"

var reasonConfirmation = Reason{text: "It is granted once a human has approved: the agent needs a confirmation for every tool that does not say of itself that it only reads."}

// Confirmed returns the decision on a call that a human must confirm whatever the policies say: one that they allow asks,
// all others stay as they are. Drafts in the shadow would have led to the same confirmation.
func (d Decision) Confirmed() Decision {
	if d.Effect == Allow {
		d.Effect, d.Rule, d.Reason = Ask, RuleConfirmation, reasonConfirmation
	}
	var shadow []ShadowDecision
	for _, s := range d.Shadow {
		if s.Effect == Allow {
			s.Effect, s.Rule, s.Reason = Ask, RuleConfirmation, reasonConfirmation
		}
		if s.Effect != d.Effect || s.OutOfBand != d.OutOfBand {
			shadow = append(shadow, s)
		}
	}
	d.Shadow = shadow
	return d
}

// ConditionValue is the result of one expression.
type ConditionValue struct {
	Rule  string
	Expr  string
	Value string // "true" or "false"; "" when it could not be evaluated
	Error string // the reason; may hold names of arguments, never their values
}

// ShadowDecision is the decision that a draft in the shadow would have made if it were active.
type ShadowDecision struct {
	PolicyID   string
	PolicyName string
	Revision   int
	Effect     Effect
	Rule       string
	OutOfBand  bool
	Approvers  [][]string
	Reason     Reason
}

// Reason explains a decision to people. Its text is made on demand. When each rule kept its texts, they were a tenth of
// the memory that the garbage collector visited on a node with many policies.
type Reason struct {
	text string // a format if there is a rule
	rule string // the rule's name; "": it names no rule
}

// String returns the reason as a sentence.
func (r Reason) String() string {
	if r.rule == "" {
		return r.text
	}
	return fmt.Sprintf(r.text, r.rule)
}
