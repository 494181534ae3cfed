package storage

import (
	"encoding/json"
	"time"
)

// MaxConversations bounds the conversations of a user with a server; a further one ends the oldest.
const MaxConversations = 50

// Conversation is an MCP session that the gateway began with a client, because its user had not connected their
// account at the server. After connecting, it continues in a session of the upstream's.
type Conversation struct {
	ID             string // as in the client's session id
	OrganizationID string
	UserID         string
	ServerID       string
	// Declared holds the params of the client's initialize, with which the upstream's session is opened.
	Declared json.RawMessage
	// Upstream is the upstream's session id, sealed as for the client; "" while there is none.
	Upstream  string
	CreatedAt time.Time
	ExpiresAt time.Time
}
