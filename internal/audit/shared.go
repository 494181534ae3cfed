package audit

import (
	"strconv"

	"github.com/durward-gateway/durward/internal/audit/format"
	"github.com/durward-gateway/durward/storage"
)

// sharing reports whether an entry has a shared part. The intents of calls have one.
func sharing(e *storage.AuditEntry) bool {
	return e.Kind == storage.AuditCall && e.Call == "" && len(e.Outcomes) == 0
}

// appendSharedOf appends an entry's shared part.
func appendSharedOf(b []byte, e *storage.AuditEntry) []byte {
	start := len(b)
	if e.Event != usualEvent(false) {
		b = appendMember(b, 'v', e.Event)
	}
	b = appendKnown(b, 'u', e.UserID)
	b = appendKnown(b, 'a', e.AgentID)
	b = appendKnown(b, 'l', e.Client)
	b = appendKnown(b, 'm', e.ServerID)
	b = appendKnown(b, 'n', e.Server)
	b = appendKnown(b, 'r', e.Method)
	b = appendKnown(b, 'd', e.Decision)
	b = appendKnown(b, 'e', e.Rule)
	b = appendKnown(b, 'p', e.PolicyID)
	b = appendNumber(b, 'q', int64(e.PolicyRevision))
	b = appendTexts(b, 'y', e.Roles)
	b = appendTexts(b, 'z', e.Groups)
	if len(b) == start {
		b = append(b, ' ')
	}
	b[start] = '{' // in place of the comma
	return append(b, '}')
}

// appendOwnOf appends an entry's own part.
func appendOwnOf(b []byte, e *storage.AuditEntry) []byte {
	b = append(b, format.SharingStart...)
	b = append(b, e.ID...)
	b = append(b, shortTime...)
	b = strconv.AppendInt(b, e.At.UnixNano(), 10)
	b = appendKnown(b, 's', e.Session)
	b = appendKnown(b, 'o', e.Tool)
	b = appendKnown(b, 'w', e.ApprovalID)
	if len(e.Shadow) > 0 {
		b = appendJSON(b, 'x', e.Shadow)
	}
	b = appendKnown(b, 'g', e.ArgumentsDigest)
	if len(e.Arguments) > 0 {
		b = appendJSON(b, 'j', e.Arguments)
	}
	return appendEnd(b, e)
}
