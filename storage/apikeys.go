package storage

import "time"

// APIKeyHMACSize is the length of APIKey.HMAC in bytes.
const APIKeyHMACSize = 32

// APIKey lets its bearer call models in the name of an organization, of one of its users, or of a group. The raw key
// is stored nowhere.
type APIKey struct {
	ID             string
	OrganizationID string
	Name           string
	// Prefix is the first eight characters of the raw key, for people. It is not unique and never identifies a key.
	Prefix string
	// HMAC is the HMAC of the whole raw key, under a key of the gateway that is not in the store. No two keys have
	// the same.
	HMAC []byte
	// Scopes are "llm", "model:<alias>" and "mcp".
	Scopes    []string
	UserID    string // the user for whom the key stands; "" for keys of the organization or of a group
	GroupName string // "" for keys of the organization or of a user
	// AgentID is the agent for which the key was made; "" for none. The key is revoked together with the agent.
	AgentID string
	// MadeWith is the external id of the client with whose token the key was made; "" for keys of former versions,
	// which did not record it.
	MadeWith  string
	CreatedBy string // user id
	CreatedAt time.Time
	ExpiresAt time.Time // zero: never
	RevokedAt time.Time // zero: not revoked; final
	Disabled  bool
	// UsedAt is about the time of the last use: NoteAPIKey is called seldom. Zero: it was never used, or by a former version.
	UsedAt time.Time
}

// Valid reports whether the key is valid at a time: not revoked, not disabled, and before its expiry.
func (k *APIKey) Valid(now time.Time) bool {
	return k.RevokedAt.IsZero() && !k.Disabled && (k.ExpiresAt.IsZero() || now.Before(k.ExpiresAt))
}

// APIKeyHolder holds an API key and the user and agent for whom it stands.
type APIKeyHolder struct {
	APIKey
	User *User // nil for keys of the organization or of a group
	// Agent is nil for a key that was made for no agent, and for one whose agent is gone. The latter is no longer
	// valid.
	Agent *Agent
}
