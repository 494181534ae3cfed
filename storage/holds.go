package storage

import "time"

// Hold is a call that waits for its user's word while its client waits for the answer: the client can take it back.
type Hold struct {
	ID             string
	OrganizationID string
	UserID         string
	ServerID       string
	// Call is a digest of whose call it is, in which session, and of its id there.
	Call string
	// ExpiresAt: a hold that its node did not end, because it died, is forgotten then.
	ExpiresAt time.Time
}
