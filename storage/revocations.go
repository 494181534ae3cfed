package storage

import "time"

// RevocationLifetime is for how long a provider is asked again and again to forget tokens.
const RevocationLifetime = 24 * time.Hour

// Revocation asks a provider to forget tokens that nobody will use any more (RFC 7009).
type Revocation struct {
	ID             string
	OrganizationID string
	// Sealed has the tokens, where the provider is to be told, and as which client.
	Sealed    []byte
	CreatedAt time.Time
	// NextAt is when the provider may be asked next.
	NextAt   time.Time
	Attempts int // that failed
}
