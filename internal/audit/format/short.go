package format

import (
	"encoding/json"
	"errors"
	"strconv"
	"time"

	"github.com/durward-gateway/durward/storage"
)

// The short form of an entry is its JSON with names of one character. Id and time come first, in this order; the time is
// in Unix nanoseconds. The kind is left out for calls, and the event when it is the usual one. When the call of an entry
// is "", the entry's id member is the id of its call. Its own id is the same with version 8 (RFC 9562 section 5.8) in
// place of 7. Journals write the short form, and it is hashed. Readers of a record get the long form, which is made from
// the short one. An entry with a shared part has "I" for its id, see shared.go. Ids and digests may be brief, see
// brief.go. The store's own records have the long form, and so have records of journals from before the short form.
const (
	shortStart = `{"i":"`
	shortTime  = `","t":`
)

// timeFormat is RFC 3339 with always nine digits of the second.
const timeFormat = "2006-01-02T15:04:05.000000000Z"

// idVersion is the position of the version in an id, as JSON.
const idVersion = len(`"00000000-0000-`)

// longNames has the members' names in the long form.
var longNames = [128]string{
	'i': "id", 't': "time", 'k': "kind", 'v': "event", 'c': "call", 'u': "user_id", 'a': "agent_id", 'l': "client", 's': "session",
	'm': "mcp_server_id", 'n': "server", 'r': "method", 'o': "tool", 'd': "decision", 'e': "rule", 'p': "policy_id",
	'q': "policy_revision", 'w': "approval_id", 'x': "shadow", 'y': "roles", 'z': "groups", 'g': "arguments_digest",
	'j': "arguments", 'b': "outcome", 'h': "duration_ns", 'f': "upstream_status", '1': "trace_id", '2': "detail",
	groupName: "outcomes",
}

// IsShort reports whether an entry's text is its short form.
func IsShort(text []byte) bool {
	start := text[:min(len(text), len(shortStart))]
	return string(start) == shortStart || string(start) == SharingStart
}

// flat returns the short form with the members of the shared part among its own members.
func flat(text []byte) []byte {
	own, part := SplitShared(text)
	if part == nil {
		return text
	}
	text = append(make([]byte, 0, len(text)), own...)
	copy(text, shortStart)
	if members := part[1 : len(part)-1]; len(members) > 0 {
		text = append(append(text, ','), members...)
	}
	return append(text, '}')
}

// UsualEvent returns the event of an entry that has no event member.
func UsualEvent(completes bool) string {
	if completes {
		return "outcome"
	}
	return "decision"
}

// LongText returns an entry's long form. A text in neither form, which only a tampered record has, is returned unchanged
// when it is JSON, else as a JSON string.
func LongText(text []byte) []byte {
	if IsShort(text) {
		if long, err := expand(text); err == nil {
			return long
		}
	}
	if !json.Valid(text) {
		return Marshal(string(text))
	}
	return text
}

// zeroID is a placeholder for an id, as JSON.
var zeroID = []byte(`"00000000-0000-0000-0000-000000000000"`)

// errShort reports that a text is no short form of an entry.
var errShort = errors.New("malformed short entry")

// expand returns the long form for a short one.
func expand(text []byte) ([]byte, error) {
	if text = flat(text); !json.Valid(text) {
		return nil, errShort
	}
	l := longForm{text: make([]byte, 0, 2*len(text)+64)}
	for rest := text[1:]; startsMember(rest); {
		name, value := rest[1], rest[4:][:valueSize(rest[4:])]
		rest = rest[4+len(value):]
		if !l.add(name, value) {
			return nil, errShort
		}
		if rest[0] != ',' {
			return l.end()
		}
		rest = rest[1:]
	}
	return nil, errShort
}

// startsMember reports whether the rest of a text begins with a member that has a known name.
func startsMember(rest []byte) bool {
	return len(rest) > len(`"i":`) && rest[0] == '"' && rest[1] < 128 && longNames[rest[1]] != "" && rest[2] == '"' && rest[3] == ':'
}

// longForm collects the members of the long form.
type longForm struct {
	text  []byte
	id    []byte // nil: there is none yet
	nanos int64
	brief int // position of a brief id until the time is known; 0: there is none

	kind, event, completes bool // the members that the entry has
}

// add adds a member of the short form. It is not ok when the value is none of that member.
func (l *longForm) add(name byte, value []byte) (ok bool) {
	l.text = append(append(append(l.text, ',', '"'), longNames[name]...), '"', ':')
	switch name {
	case 't':
		return l.addTime(value)
	case 'g':
		if l.text, ok = appendWholeDigest(l.text, value); !ok {
			l.text = append(l.text, value...)
		}
		return true
	case groupName:
		l.text, ok = expandOutcomes(l.text, value, l.nanos)
		return ok
	case 'i':
		if l.id == nil {
			value = l.ownID(value)
		}
	case 'c':
		l.completes = true
		if string(value) == `""` {
			value = l.impliedCall()
		}
	case 'k':
		l.kind = true
	case 'v':
		l.event = true
	}
	l.text = append(l.text, value...)
	return true
}

func (l *longForm) addTime(value []byte) bool {
	var err error
	if l.nanos, err = strconv.ParseInt(string(value), 10, 64); err != nil {
		return false
	}
	if l.brief > 0 {
		copy(l.text[l.brief:], WholeID(unquoted(l.id), l.nanos))
		l.brief = 0
	}
	l.text = appendTime(l.text, l.nanos)
	return true
}

// ownID notes the entry's id, and returns its value. For a brief id it is a placeholder: the time comes later.
func (l *longForm) ownID(value []byte) []byte {
	l.id = value
	if isBrief(unquoted(value)) {
		l.brief = len(l.text) + 1
		return zeroID
	}
	return value
}

// impliedCall returns the value of a call that is the id, and gives the entry an id of its own.
func (l *longForm) impliedCall() []byte {
	// The id is the first member.
	if own := l.text[len(`,"id":`):][:len(l.id)]; len(own) == 36+len(`""`) && own[idVersion] == '7' {
		own[idVersion] = '8'
	}
	return l.id
}

// end adds the members that the short form leaves out.
func (l *longForm) end() ([]byte, error) {
	if l.brief > 0 {
		return nil, errShort
	}
	if !l.kind {
		l.text = append(l.text, `,"kind":"`+string(storage.AuditCall)+`"`...)
	}
	if !l.event {
		l.text = append(append(append(l.text, `,"event":"`...), UsualEvent(l.completes)...), '"')
	}
	l.text[0] = '{'
	return append(l.text, '}'), nil
}

// unquoted returns the inside of a JSON string, with its escapes. It returns nil for other values.
func unquoted(value []byte) []byte {
	if len(value) < 2 || value[0] != '"' || value[len(value)-1] != '"' {
		return nil
	}
	return value[1 : len(value)-1]
}

// appendTime appends a time in the long form.
func appendTime(b []byte, nanos int64) []byte {
	return append(time.Unix(0, nanos).UTC().AppendFormat(append(b, '"'), timeFormat), '"')
}

// valueSize returns the length of the JSON value at the start of JSON without blanks. It stays within a text that is no JSON.
func valueSize(text []byte) int {
	depth := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			for i++; i < len(text) && text[i] != '"'; i++ {
				if text[i] == '\\' {
					i++
				}
			}
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return i
			}
			depth--
		case ',':
			if depth == 0 {
				return i
			}
		}
	}
	return len(text)
}

// NanosOf returns the time of an entry's text in Unix nanoseconds. For a text that no durward wrote, the result may be
// any number.
func NanosOf(text []byte) int64 {
	if nanos, ok := shortNanos(text); ok {
		return nanos
	}
	return TimeOf(text).UnixNano()
}

// shortNanos reads the time at the position where appendEntry writes it.
func shortNanos(text []byte) (int64, bool) {
	if !IsShort(text) {
		return 0, false
	}
	at := len(shortStart) + briefSize + len(shortTime)
	if len(text) < at || string(text[at-len(shortTime):at]) != shortTime {
		at += idSize - briefSize
	}
	if len(text) < at || string(text[at-len(shortTime):at]) != shortTime {
		return 0, false
	}
	var nanos int64
	digits := text[at:min(len(text), at+20)]
	for i, c := range digits {
		if c < '0' || c > '9' {
			return nanos, i > 0 && (c == ',' || c == '}')
		}
		nanos = 10*nanos + int64(c-'0')
	}
	return nanos, len(digits) > 0 && len(digits) < 20 // an own part with no other members
}

// TimeOf returns the time of any entry's text.
func TimeOf(text []byte) time.Time {
	if nanos, ok := shortNanos(text); ok {
		return time.Unix(0, nanos).UTC()
	}
	var e struct {
		At time.Time `json:"time"`
	}
	_ = json.Unmarshal(LongText(text), &e) // only a tampered record has none
	return e.At
}
