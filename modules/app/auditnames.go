package app

import (
	"unicode/utf8"

	"github.com/durward-gateway/durward/storage"
)

// These limits bound a caller's text in one record of the audit log and in one line of the access log, in bytes.
// Without them a name can fill a whole request. Anybody with a token could then fill the disk, and their waiting
// records would push out the records of others.
const (
	maxKeptMethod = 256
	// MaxKeptName is longer than any name or beginning of one that a policy can hold.
	MaxKeptName = 8 << 10
)

// clip cuts off a text that is too long.
func clip(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	for limit > 0 && !utf8.RuneStart(text[limit]) {
		limit--
	}
	return text[:limit]
}

// clipNames limits the length of an entry's names, and notes the length of one that was cut.
func clipNames(e *storage.AuditEntry) {
	e.Method = clip(e.Method, maxKeptMethod)
	if len(e.Tool) > MaxKeptName {
		add(e, "name_bytes", len(e.Tool))
		e.Tool = clip(e.Tool, MaxKeptName)
	}
}
