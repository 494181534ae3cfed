package storage

import (
	"encoding/json"
	"fmt"
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

// ToolState tells whether somebody has to decide about a tool.
type ToolState string

// States of tools.
const (
	ToolNew     ToolState = "new"     // as it was first seen, and nobody has accepted it yet
	ToolChanged ToolState = "changed" // differs from its pin
)

// ToolFilter selects tools of all servers of an organization.
type ToolFilter struct {
	OrganizationID string
	ServerID       string    // "" for all servers
	State          ToolState // "" for all tools
	// After is the place behind which the list begins; the zero value for its beginning.
	After ToolPlace
	// Limit is the largest number of tools.
	Limit int
}

// ToolPlace is the place of a tool in the list of all servers' tools.
type ToolPlace struct{ ServerID, Name string }

// ServerTool is a pin with the slug of its server.
type ServerTool struct {
	ToolPin
	Slug string
}

// ToolAcceptance names the definition of a tool that is accepted, by its hash.
type ToolAcceptance struct{ ServerID, Name, Hash string }

// ToolError tells which of several tools a write was refused for.
type ToolError struct {
	Index int
	Err   error
}

func (e *ToolError) Error() string { return fmt.Sprintf("tool %d: %v", e.Index, e.Err) }

// Unwrap returns the cause.
func (e *ToolError) Unwrap() error { return e.Err }
