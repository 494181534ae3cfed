package app

import (
	"unicode/utf8"

	"github.com/durward-gateway/durward/storage"
)

// What a caller may put into one record of the audit log and one line of the access log, in bytes. A name fills a whole
// request otherwise: anybody with a token could fill the disk, and what waits to be written would push out the records of
// others.
const (
	maxKeptMethod = 256
	// MaxKeptName is longer than any name or beginning of one that a policy can hold.
	MaxKeptName = 8 << 10
)

// clip is the beginning of a text that is too long.
func clip(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	for limit > 0 && !utf8.RuneStart(text[limit]) {
		limit--
	}
	return text[:limit]
}

// clipNames bounds an entry's names, and notes how long one was.
func clipNames(e *storage.AuditEntry) {
	e.Method = clip(e.Method, maxKeptMethod)
	if len(e.Tool) > MaxKeptName {
		add(e, "name_bytes", len(e.Tool))
		e.Tool = clip(e.Tool, MaxKeptName)
	}
}
