package storage

import (
	"encoding/json"
	"fmt"
	"time"
)

// PolicyStatus is the state of a policy in its lifecycle. Only active ones are enforced.
type PolicyStatus string

// Lifecycle of a policy.
const (
	PolicyDraft    PolicyStatus = "DRAFT"
	PolicyActive   PolicyStatus = "ACTIVE"
	PolicyInactive PolicyStatus = "INACTIVE"
	PolicyArchived PolicyStatus = "ARCHIVED" // final; its name is free
)

// CanBecome reports whether a policy may pass from one status to another.
func (s PolicyStatus) CanBecome(next PolicyStatus) bool {
	switch {
	case s == next:
		return true
	case s == PolicyArchived || next == PolicyDraft:
		return false
	case s == PolicyDraft:
		return next == PolicyActive || next == PolicyArchived
	}
	return true // ACTIVE <-> INACTIVE, either -> ARCHIVED
}

// Rule is one rule of a policy.
type Rule struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	Active      bool   `json:"active"`
	// Authorized says that the rule grants; else it denies.
	Authorized  bool     `json:"authorized"`
	Actions     []string `json:"actions"`
	RolesGroups []string `json:"roles_groups"`
	// Condition is the object {"match":...} as it was written; nil when the rule has none.
	Condition json.RawMessage `json:"condition,omitempty"`
	// Approval says who decides about calls that the rule holds, and where.
	Approval RuleApproval `json:"approval,omitzero"`
}

// Policy ties a server and a set of agents to rules.
type Policy struct {
	ID             string
	OrganizationID string
	Name           string // unique among the organization's policies that are not archived
	Description    string
	SupportContact string
	Tags           []string
	Status         PolicyStatus
	ServerID       string // never changes
	// ApplicationIDs holds the ids of the agents for which the policy is; empty means all agents.
	ApplicationIDs []string
	Rules          []Rule
	// Shadow, on a draft, says that it is evaluated beside the active policy, and that differences are recorded.
	Shadow bool
	// Revision counts the writes, from 1.
	Revision  int
	CreatedAt time.Time
	UpdatedAt time.Time
	CreatedBy string // user id; "" when the gateway itself wrote it
	UpdatedBy string
}

// PolicyView is a policy with the names of the objects to which it refers. The name of a deleted object is "".
type PolicyView struct {
	Policy
	ServerName       string
	ApplicationNames []string // in the order of ApplicationIDs
	CreatedByName    string
	UpdatedByName    string
}

// PolicyFilter narrows a list of policies. Empty members do not narrow.
type PolicyFilter struct {
	OrganizationID string
	Search         string // the id, or a case-insensitive substring of name, description or support contact, taken literally
	Status         []PolicyStatus
	ServerIDs      []string
	AgentIDs       []string // policies that name one of them
	Page           PageRequest
}

// PolicyRevision describes one write to a policy.
type PolicyRevision struct {
	OrganizationID string
	PolicyID       string
	Number         int
	At             time.Time
	UserID         string // "" when the gateway itself wrote it
	UserName       string
	Changes        []FieldChange
	// Policy is the policy as it was after the write.
	Policy Policy
}

// FieldChange describes one member of a policy, named as in the API, before and after a write. Before is null in the
// first revision.
type FieldChange struct {
	Field  string          `json:"field"`
	Before json.RawMessage `json:"before"`
	After  json.RawMessage `json:"after"`
}

// OverlapError says that another active policy of the server already governs one of the agents (or, when both name
// none, all agents).
type OverlapError struct{ PolicyID, PolicyName string }

func (e *OverlapError) Error() string {
	return fmt.Sprintf("overlaps the active policy %q", e.PolicyName)
}

// Is makes errors.Is(err, ErrConflict) hold.
func (e *OverlapError) Is(target error) bool { return target == ErrConflict }

// ReferenceError says that a policy names servers or agents that are not live objects of the organization.
type ReferenceError struct {
	Server       bool  // mcp_server_id
	Applications []int // indexes in application_ids
}

func (e *ReferenceError) Error() string { return "refers to what does not exist" }
