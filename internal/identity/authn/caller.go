package authn

import (
	"errors"
	"time"

	"github.com/durward-gateway/durward/internal/identity/apikey"
	"github.com/durward-gateway/durward/internal/identity/caller"
)

// Caller is the party that makes a request: proven, and resolved against the store.
type Caller struct {
	Issuer         string
	Subject        string
	OrganizationID string
	UserID         string
	Name           string
	Email          string
	Roles          []string
	Groups         []string
	Teams          []string
	Projects       []string
	// Agent is the external id of the client that holds the token (azp, client_id).
	Agent string
	// Login is the id of the login with the gateway that the token came of; "" for tokens of other issuers.
	Login string
	// Console reports whether the login is a browser's with the gateway's own console. Its token is good for the API only.
	Console bool
	// ProvenAt is the time at which the identity provider asked the user of a console who they are; zero: unknown.
	ProvenAt time.Time
	// Credential is the id of the credential with which an agent logged in at the gateway without a person; "" for all
	// others.
	Credential string
	// Powers holds the rights that the issuer's roles give. No key has any.
	caller.Powers
	// Machine reports whether there is no person behind the token (client credentials).
	Machine bool
	// ExpiresAt is the time from which the token is no longer valid, including the tolerance for clock differences; it is
	// zero for a key that never ends.
	ExpiresAt time.Time
	// Key is the API key that the caller sent instead of a token; nil for tokens. The key of an organization or a group
	// has no UserID, and its caller is a Machine. Keys with scope mcp have the roles, groups, teams and projects of their
	// user's newest token, and the agent that they were made for. Other requests share it.
	Key *APIKey
}

// APIKey describes the key with which a caller proved their identity. It does not contain the raw key.
type APIKey struct {
	ID     string
	Name   string
	Scopes apikey.Scopes
}

// RefusedError is the refusal of a credential whose caller is known.
type RefusedError struct {
	Err    error
	Caller *Caller
}

// Error returns the text of the refusal.
func (e *RefusedError) Error() string { return e.Err.Error() }

// Unwrap returns the refusal.
func (e *RefusedError) Unwrap() error { return e.Err }

// RefusedCaller returns the caller whose credential an error refuses; nil when the caller is not known.
func RefusedCaller(err error) *Caller {
	if refused, ok := errors.AsType[*RefusedError](err); ok {
		return refused.Caller
	}
	return nil
}

// sizeOf returns the length of all names.
func sizeOf(lists ...[]string) (size int) {
	for _, names := range lists {
		for _, name := range names {
			size += len(name)
		}
	}
	return size
}
