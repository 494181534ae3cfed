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
	long := make([]byte, 0, 2*len(text)+64)
	kind, event, completes := false, false, false
	var id []byte
	var nanos int64
	brief := 0 // position of a brief id until the time is known; 0: there is none
	for rest := text[1:]; len(rest) > len(`"i":`) && rest[0] == '"' && rest[1] < 128 && longNames[rest[1]] != "" && rest[2] == '"' && rest[3] == ':'; {
		name := rest[1]
		value := rest[4:][:valueSize(rest[4:])]
		rest = rest[4+len(value):]
		long = append(append(append(long, ',', '"'), longNames[name]...), '"', ':')
		switch name {
		case 't':
			var err error
			if nanos, err = strconv.ParseInt(string(value), 10, 64); err != nil {
				return nil, errShort
			}
			if brief > 0 {
				copy(long[brief:], WholeID(unquoted(id), nanos))
				brief = 0
			}
			long = appendTime(long, nanos)
		case 'g':
			var ok bool
			if long, ok = appendWholeDigest(long, value); !ok {
				long = append(long, value...)
			}
		case groupName:
			var ok bool
			if long, ok = expandOutcomes(long, value, nanos); !ok {
				return nil, errShort
			}
		default:
			switch {
			case name == 'i' && id == nil:
				id = value
				if isBrief(unquoted(id)) {
					brief, value = len(long)+1, zeroID
				}
			case name == 'c' && string(value) == `""`:
				value = id
				// The id is the first member.
				if own := long[len(`,"id":`):][:len(id)]; len(own) == 36+len(`""`) && own[idVersion] == '7' {
					own[idVersion] = '8'
				}
			}
			kind, event, completes = kind || name == 'k', event || name == 'v', completes || name == 'c'
			long = append(long, value...)
		}
		if rest[0] == ',' {
			rest = rest[1:]
			continue
		}
		if brief > 0 {
			return nil, errShort
		}
		if !kind {
			long = append(long, `,"kind":"`+string(storage.AuditCall)+`"`...)
		}
		if !event {
			long = append(append(append(long, `,"event":"`...), UsualEvent(completes)...), '"')
		}
		long[0] = '{'
		return append(long, '}'), nil
	}
	return nil, errShort
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

// valueSize returns the length of the JSON value at the start of valid JSON without blanks.
func valueSize(text []byte) int {
	depth := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			for i++; text[i] != '"'; i++ {
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
