package storage

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// RuleApproval holds the demands of a rule on the decision about a held call. The zero value makes none.
type RuleApproval struct {
	// Channel is "out_of_band" when the rule demands that channel, else "".
	Channel ApprovalChannel
	// By lists the people who decide in place of the caller: user:ID, role:NAME or group:NAME. Empty: the caller does.
	By []string
}

// approvalBy is the form of a RuleApproval that names people.
type approvalBy struct {
	By      []string        `json:"by"`
	Channel ApprovalChannel `json:"channel"`
}

// IsZero reports whether the rule demands nothing. Package encoding/json leaves such a value out.
func (a RuleApproval) IsZero() bool { return a.Channel == "" && len(a.By) == 0 }

// Equal reports whether two rules demand the same.
func (a RuleApproval) Equal(b RuleApproval) bool {
	return a.Channel == b.Channel && slices.Equal(a.By, b.By)
}

// Choices lists the JSON forms of the value, for the API's description.
func (RuleApproval) Choices() []any { return []any{ApprovalChannel(""), approvalBy{}} }

// MarshalJSON implements json.Marshaler. A channel alone is written as its name. Programs that know no other form
// cannot read one with people, and refuse its policy: they would let the caller decide.
func (a RuleApproval) MarshalJSON() ([]byte, error) {
	if len(a.By) == 0 {
		return json.Marshal(a.Channel)
	}
	text, err := plainJSON(approvalBy{a.By, a.Channel})
	return []byte(text), err
}

var errNoApprover = errors.New("the approval of a rule names nobody")

// UnmarshalJSON implements json.Unmarshaler.
func (a *RuleApproval) UnmarshalJSON(text []byte) error {
	*a = RuleApproval{}
	if len(text) > 0 && text[0] != '{' {
		return json.Unmarshal(text, &a.Channel)
	}
	var by approvalBy
	if err := json.Unmarshal(text, &by); err != nil {
		return fmt.Errorf("decoding the approval of a rule: %w", err)
	}
	if len(by.By) == 0 {
		return errNoApprover // it must not come to mean the caller
	}
	a.Channel, a.By = by.Channel, by.By
	return nil
}
