// Package logins keeps the logins of users with OAuth clients, for the gateway as an authorization server: codes, access
// and refresh tokens, the clients that registered, the keys that sign, and the ends of all of them. internal/identity/authserver
// reads and writes the messages; storage.Logins and storage.Clients keep the state, for all nodes.
package logins

import "time"

// These are the lifetimes. Those of a login are the operator's to choose.
const (
	// AccessLifetime is the longest lifetime of an access token.
	AccessLifetime = 15 * time.Minute
	// CodeLifetime is the time in which a client must exchange a code (RFC 6749 section 4.1.2 recommends ten minutes at most).
	CodeLifetime = time.Minute
	// DefaultLifetime is the time after which a login ends, however often it is used.
	DefaultLifetime = 30 * 24 * time.Hour
	// DefaultIdle is the time after which a login ends that nobody uses.
	DefaultIdle = 7 * 24 * time.Hour
	// grace is the time for which the refresh token before the last one is good: a client may have sent it twice at once.
	grace = 30 * time.Second
	// oldestFacts is the age at which facts are too old to go on with when the identity provider cannot be asked.
	oldestFacts = 24 * time.Hour
)
