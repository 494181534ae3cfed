package storage

import "time"

// Bounds of tasks.
const (
	// MaxTasks bounds the tasks of one owner that are remembered; a further one replaces the oldest.
	MaxTasks = 256
	// TaskLifetime is the maximum time for which a task is remembered, and the time where its server sets no end.
	TaskLifetime = 30 * 24 * time.Hour
)

// TaskOwner names the owner of an MCP task, and the server.
type TaskOwner struct {
	OrganizationID string
	ServerID       string
	UserID         string
	Agent          string // the client and its issuer; "" for none
}

// Task is a task that a call created at a server. Its id is the server's own.
type Task struct {
	TaskOwner
	// Digest is the SHA-256 of the id, in hexadecimal.
	Digest string
	// CreatedAt is the time of creation by the server's clock, where it gives one: of an id that it gives again, the
	// newest creation counts.
	CreatedAt time.Time
	ExpiresAt time.Time
}
