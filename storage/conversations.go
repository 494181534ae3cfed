package storage

import (
	"encoding/json"
	"time"
)

// MaxConversations is how many conversations a user may have with a server; one more ends the oldest.
const MaxConversations = 50

// Conversation is a session of MCP that the gateway began with a client, because its user had not connected their account
// at the server. Once they have, it goes on in a session of the upstream's.
type Conversation struct {
	ID             string // what the client's session id carries
	OrganizationID string
	UserID         string
	ServerID       string
	// Declared are the params of the client's initialize, with which the upstream's session is opened.
	Declared json.RawMessage
	// Upstream is the upstream's session id, sealed as for the client; "" while there is none.
	Upstream  string
	CreatedAt time.Time
	ExpiresAt time.Time
}
