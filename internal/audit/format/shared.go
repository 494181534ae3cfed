package format

import (
	"bytes"
	"strconv"

	"github.com/durward-gateway/durward/storage"
)

// Most fields of an intent are the same in each call of one caller to one server: the user, the agent, the rule. These
// fields are the shared part of its text, the last member. The own part is the text before it:
//
//	{"I":"<brief id>","t":<time>,"o":"<tool>","g":"<brief digest>","0":{"u":"<user>","m":"<server>","d":"allow"}}
//
// The hash of a record is computed over the hash of its shared part.
const (
	// SharingStart begins a text that has a shared part.
	SharingStart = `{"I":"`
	// SharedStart begins the shared part.
	SharedStart = `,"0":`
)

// SplitShared splits a text into its own and its shared part. part is nil when there is no shared part.
func SplitShared(text []byte) (own, part []byte) {
	if !bytes.HasPrefix(text, []byte(SharingStart)) || !bytes.HasSuffix(text, []byte("}}")) {
		return text, nil
	}
	// Quotes in texts are escaped, and no value in a shared part is an object.
	at := bytes.LastIndex(text, []byte(SharedStart+"{"))
	if at < 0 {
		return text, nil
	}
	return text[:at], text[at+len(SharedStart) : len(text)-1]
}

// AppendShared completes an own part with the shared part.
func AppendShared[T string | []byte](b []byte, part T) []byte {
	return append(append(append(b, SharedStart...), part...), '}')
}

// Sharing reports whether an entry has a shared part. The intents of calls have one.
func Sharing(e *storage.AuditEntry) bool {
	return e.Kind == storage.AuditCall && e.Call == "" && len(e.Outcomes) == 0
}

// AppendSharedOf appends an entry's shared part.
func AppendSharedOf(b []byte, e *storage.AuditEntry) []byte {
	start := len(b)
	if e.Event != UsualEvent(false) {
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

// AppendOwnOf appends an entry's own part.
func AppendOwnOf(b []byte, e *storage.AuditEntry) []byte {
	b = append(b, SharingStart...)
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
