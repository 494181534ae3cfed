package rules

import "fmt"

// Effect is what becomes of a call.
type Effect uint8

// Effects, the default first, from strict to lax.
const (
	Deny Effect = iota
	Ask         // a human confirms this very call first
	Allow
)

// String is "deny", "ask" or "allow".
func (e Effect) String() string { return [...]string{"deny", "ask", "allow"}[min(e, Allow)] }

// Call is what is judged.
type Call struct {
	Principal *Principal // nil: nobody, who is denied everything
	Kind      Kind       // ToolsCall, ResourcesRead, PromptsGet or SSEStream
	Name      string     // the tool, URI or prompt, as it stands in the message; "" for SSEStream
	// Arguments is the JSON object of a tool's or prompt's arguments or of a stream's filters, as it was received and
	// already passed by the strict reader; nil is {}. A resource has none: its conditions see {"uri": Name}.
	Arguments []byte
	// Checked: the strict reader has accepted the text that Arguments are a part of, and they are not read again as a whole.
	Checked bool
	// Open: what no rule denies is allowed, as streams of /sse are unless the configuration demands a grant.
	Open bool
}

// Decision is what a set says to a call.
type Decision struct {
	Effect Effect
	// Hidden, of a denied call: no arguments could make it allowed or asked, so a list does not show it (View).
	Hidden bool
	// PolicyID, PolicyName and Revision are of the policy that decided; "" and 0 when no active policy governs.
	PolicyID   string
	PolicyName string
	Revision   int
	// Rule is the name of the rule that decided. A denied call without one met no rule that denies: nothing grants it; an
	// allowed one is Open, and nothing denies it.
	Rule string
	// OutOfBand: a rule that asks demands that channel.
	OutOfBand bool
	// Values are the expressions of the deciding rule's condition that were evaluated; of a call that no rule grants,
	// those of the grants that only their condition kept from matching. Of Explain: all that were evaluated.
	Values []ConditionValue
	Reason Reason // a sentence for people, without any part of the arguments
	// Shadow are the drafts in the shadow that would have decided otherwise.
	Shadow []ShadowDecision
}

// ConditionValue is what became of one expression.
type ConditionValue struct {
	Rule  string
	Expr  string
	Value string // "true" or "false"; "" when it could not be evaluated
	Error string // why not; may hold names of arguments, never their values
}

// ShadowDecision is what a draft in the shadow would have decided were it active.
type ShadowDecision struct {
	PolicyID   string
	PolicyName string
	Revision   int
	Effect     Effect
	Rule       string
	OutOfBand  bool
	Reason     Reason
}

// Reason is why something was decided, for people. Its text is made when somebody asks: kept with each rule, texts were a
// tenth of what the collector went through on a node with many policies.
type Reason struct {
	text string // a format where there is a rule
	rule string // its name; "": it names none
}

// String is a sentence.
func (r Reason) String() string {
	if r.rule == "" {
		return r.text
	}
	return fmt.Sprintf(r.text, r.rule)
}
