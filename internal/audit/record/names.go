package record

import (
	"unicode/utf8"

	"github.com/durward-gateway/durward/storage"
)

// These limits bound a caller's text in one record of the audit log and in one line of the access log, in bytes.
// Without them a name can fill a whole request. Anybody with a token could then fill the disk, and their waiting
// records would push out the records of others.
const (
	MaxMethod = 256
	maxText   = 256 // of other texts
	// MaxName is longer than any name or beginning of one that a policy can hold.
	MaxName = 8 << 10
)

// Clip cuts off a text that is too long.
func Clip(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	for limit > 0 && !utf8.RuneStart(text[limit]) {
		limit--
	}
	return text[:limit]
}

// ClipNames limits the length of an entry's names, and notes the length of one that was cut.
func ClipNames(e *storage.AuditEntry) {
	e.Method = Clip(e.Method, MaxMethod)
	if len(e.Tool) > MaxName {
		Add(e, "name_bytes", len(e.Tool))
		e.Tool = Clip(e.Tool, MaxName)
	}
}

// Short limits the length of a client's text in a record.
func Short(text string) string { return Clip(text, maxText) }

// Add puts a member into an entry's detail.
func Add(e *storage.AuditEntry, name string, value any) {
	if e.Detail == nil {
		e.Detail = make(map[string]any)
	}
	e.Detail[name] = value
}
