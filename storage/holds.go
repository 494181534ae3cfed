package storage

import "time"

// Hold is a call that waits for its user's decision while its client waits for the answer: the client can cancel it.
type Hold struct {
	ID             string
	OrganizationID string
	UserID         string
	ServerID       string
	// Call is a digest of the call's owner, of its session, and of its id there.
	Call string
	// ExpiresAt is the time at which a hold is deleted that its node did not end because the node died.
	ExpiresAt time.Time
}
