package storage

import (
	"errors"
	"time"
)

// ApprovalStatus is the state of a held call.
type ApprovalStatus string

// States of an approval.
const (
	ApprovalPending  ApprovalStatus = "pending"
	ApprovalApproved ApprovalStatus = "approved" // and not used yet
	ApprovalDenied   ApprovalStatus = "denied"
	ApprovalExpired  ApprovalStatus = "expired" // derived on reading: pending or approved, and its time is over
	ApprovalUsed     ApprovalStatus = "used"
)

// ErrTooManyPending says that the user and agent have the maximum number of pending approvals.
var ErrTooManyPending = errors.New("too many pending approvals")

// ErrTooManyAsked says that the user was asked too often for the agent within a time.
var ErrTooManyAsked = errors.New("too many approvals asked for")

// AskLimits bounds the questions to a user for one client. Zero members set no bound.
type AskLimits struct {
	Pending int       // waiting at the same time
	Asked   int       // asked for after Since, in any state; not those that were decided when they were made
	Since   time.Time // beginning of the time that counts for Asked
}

// Approval is a call that waits for, or got, a human's decision.
type Approval struct {
	ID             string
	OrganizationID string
	UserID         string
	AgentID        string // registered agent; "" when the client is not registered
	Client         string // external id of the client that made the call
	ServerID       string
	Tool           string
	// Binding is a digest of everything for which the approval is valid: organization, user, agent, server, tool, the
	// tool's pinned definition, policy revision and canonical arguments.
	Binding []byte
	// ArgumentsDigest is the SHA-256 of the canonical arguments alone, in hex, for people.
	ArgumentsDigest string
	// SealedArguments holds the arguments while the call can be decided on or made. It is nil for a denied or used
	// one, and sooner or later for an expired one.
	SealedArguments []byte
	PolicyID        string
	PolicyRevision  int
	Rule            string
	// Approvers lists the people who decide in place of the user, as it was when the call was held. Each list holds
	// user:ID, role:NAME or group:NAME, and the decider must be in all lists. Empty: the user alone decides.
	Approvers [][]string
	// Channel is the channel on which it may be decided. Out of band is allowed too, once the client has said that it
	// cannot ask its user.
	Channel ApprovalChannel
	Status  ApprovalStatus
	// ExpiresAt is the time until which a pending approval can be decided, and an approved one can be used.
	ExpiresAt     time.Time
	CreatedAt     time.Time
	DecidedAt     time.Time // zero: not yet
	DecidedVia    ApprovalChannel
	DecidedBy     string // user id
	DecidedClient string // external id of the client whose token decided; "" for a browser session
	UsedAt        time.Time
}

// ApprovalDecision is a human's decision.
type ApprovalDecision struct {
	Approve   bool
	UserID    string // the decider
	Via       ApprovalChannel
	Client    string
	At        time.Time
	ExpiresAt time.Time // the time until which an approval can be used
}

// ForeignApproval is a pending approval on which another person than its user decides.
type ForeignApproval struct {
	ID        string
	UserID    string
	Approvers [][]string
}

// SessionFacts holds the roles and groups that the identity provider named at a user's last login with a browser.
type SessionFacts struct {
	Roles  []string  `json:"roles,omitempty"`
	Groups []string  `json:"groups,omitempty"`
	At     time.Time `json:"-"` // of the login
}

// ApprovalFilter narrows a list of approvals, newest first. Empty members do not narrow.
type ApprovalFilter struct {
	OrganizationID string
	UserID         string
	Status         []ApprovalStatus
	Now            time.Time // the time for deciding which have expired
	Page           PageRequest
}
