package storage

import "time"

// Offboarding describes what ends, or has ended, when a user leaves an organization.
type Offboarding struct {
	User User
	// Sessions counts the logins with OAuth clients, APIKeys the keys that stand for the user.
	Sessions, APIKeys int
	// Connections counts the stored connections to servers.
	Connections int
	// Approvals counts the held calls that wait for a decision or for their use, Tasks the tasks that the user created.
	Approvals, Tasks int
	// Ended lists the connections that were deleted; nil when things were only counted.
	Ended []Connection
}

// OffboardRequest asks for the end of everything of a user.
type OffboardRequest struct {
	OrganizationID string
	UserID         string
	// At is the time up to which tokens and browser sessions are refused, and the one at which things are counted.
	At time.Time
	// Tell is called in the transaction before its audit record is written, and again when the transaction is tried
	// again; it may be nil. It must not call the store.
	Tell func(*Offboarding)
}
