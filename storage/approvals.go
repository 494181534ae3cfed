package storage

import (
	"errors"
	"time"
)

// ApprovalStatus is what became of a held call.
type ApprovalStatus string

// States of an approval.
const (
	ApprovalPending  ApprovalStatus = "pending"
	ApprovalApproved ApprovalStatus = "approved" // and not used yet
	ApprovalDenied   ApprovalStatus = "denied"
	ApprovalExpired  ApprovalStatus = "expired" // derived on reading: pending or approved, and its time is over
	ApprovalUsed     ApprovalStatus = "used"
)

// ErrTooManyPending: the user and agent have as many pending approvals as they may.
var ErrTooManyPending = errors.New("too many pending approvals")

// ErrTooManyAsked: the user has been asked for the agent as often as may be in a while.
var ErrTooManyAsked = errors.New("too many approvals asked for")

// AskLimits bound what a user may be asked for one client. Zero members do not.
type AskLimits struct {
	Pending int       // that wait at a time
	Asked   int       // that were asked for after Since, whatever became of them; not those that were decided when they were made
	Since   time.Time // ends what counts for Asked
}

// Approval is a call that waits for, or got, a human's word.
type Approval struct {
	ID             string
	OrganizationID string
	UserID         string
	AgentID        string // registered agent; "" when the client is not registered
	Client         string // external id of the client that made the call
	ServerID       string
	Tool           string
	// Binding is a digest of everything the approval is good for: organization, user, agent, server, tool, the tool's
	// pinned definition, policy revision and canonical arguments.
	Binding []byte
	// ArgumentsDigest is the SHA-256 of the canonical arguments alone, in hex, for people.
	ArgumentsDigest string
	// SealedArguments are kept while the call can be decided on or made: nil for one that is denied or used, and sooner or
	// later for one that is expired.
	SealedArguments []byte
	PolicyID        string
	PolicyRevision  int
	Rule            string
	// Channel is where it may be decided. Out of band, too, once the client has said that it cannot ask its user.
	Channel ApprovalChannel
	Status  ApprovalStatus
	// ExpiresAt: while pending, until when it can be decided; once approved, until when it can be used.
	ExpiresAt     time.Time
	CreatedAt     time.Time
	DecidedAt     time.Time // zero: not yet
	DecidedVia    ApprovalChannel
	DecidedBy     string // user id
	DecidedClient string // external id of the client whose token decided; "" for a browser session
	UsedAt        time.Time
}

// ApprovalDecision is a human's word.
type ApprovalDecision struct {
	Approve   bool
	UserID    string
	Via       ApprovalChannel
	Client    string
	At        time.Time
	ExpiresAt time.Time // until when an approval can be used
}

// ApprovalFilter narrows a list of approvals, newest first. Empty members do not narrow.
type ApprovalFilter struct {
	OrganizationID string
	UserID         string
	Status         []ApprovalStatus
	Now            time.Time // decides what has expired
	Page           PageRequest
}
