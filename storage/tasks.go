package storage

import "time"

// Bounds of tasks.
const (
	// MaxTasks is how many tasks of one owner are remembered; one more forgets the oldest.
	MaxTasks = 256
	// TaskLifetime is how long a task is remembered at the most, and where its server sets no end.
	TaskLifetime = 30 * 24 * time.Hour
)

// TaskOwner is who a task of MCP belongs to, and where.
type TaskOwner struct {
	OrganizationID string
	ServerID       string
	UserID         string
	Agent          string // "" for none
}

// Task is a task that a call created at a server. Its id is the server's own.
type Task struct {
	TaskOwner
	// Digest is of the id: the SHA-256 in hexadecimal.
	Digest string
	// CreatedAt is by the server's clock, where it says it: of an id that it gives again, the newest creation counts.
	CreatedAt time.Time
	ExpiresAt time.Time
}
