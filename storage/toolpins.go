package storage

import (
	"encoding/json"
	"time"
)

// ToolPin holds a tool's definition (name, description, schemas, annotations) as it was first seen or last accepted,
// and as it was last seen. The two differ after the upstream changed it.
type ToolPin struct {
	OrganizationID string
	ServerID       string
	Name           string
	Hash           string // SHA-256 of the canonical definition, hex
	Definition     json.RawMessage
	SeenHash       string
	SeenDefinition json.RawMessage
	FirstSeenAt    time.Time
	ChangedAt      time.Time // when SeenHash last changed; zero: never
	AcceptedAt     time.Time // zero: pinned when first seen
	AcceptedBy     string    // user id
}

// Changed reports whether the tool differs from its pin.
func (p *ToolPin) Changed() bool { return p.Hash != p.SeenHash }

// ObservedTool is a tool as an upstream lists it now.
type ObservedTool struct {
	Name       string
	Hash       string
	Definition json.RawMessage
}
