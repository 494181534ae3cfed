package format

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"strconv"

	"github.com/durward-gateway/durward/storage"
)

// AppendEntry appends an entry in its short form (see short.go) without a shared part. It does not use encoding/json,
// because every call writes two entries. Arguments must be valid JSON; they are compacted, because a record is one line.
func AppendEntry(b []byte, e *storage.AuditEntry) []byte {
	implied := e.ID == "" && e.Call != ""
	b = append(b, shortStart...)
	if implied {
		b = append(b, e.Call...)
	} else {
		b = append(b, e.ID...)
	}
	b = append(b, shortTime...)
	b = strconv.AppendInt(b, e.At.UnixNano(), 10)
	if e.Kind != storage.AuditCall {
		b = appendMember(b, 'k', string(e.Kind))
	}
	if e.Event != UsualEvent(e.Call != "") {
		b = appendMember(b, 'v', e.Event)
	}
	if implied {
		b = appendMember(b, 'c', "")
	} else {
		b = appendKnown(b, 'c', e.Call)
	}
	b = appendKnown(b, 'u', e.UserID)
	b = appendKnown(b, 'a', e.AgentID)
	b = appendKnown(b, 'l', e.Client)
	b = appendKnown(b, 's', e.Session)
	b = appendKnown(b, 'm', e.ServerID)
	b = appendKnown(b, 'n', e.Server)
	b = appendKnown(b, 'r', e.Method)
	b = appendKnown(b, 'o', e.Tool)
	b = appendKnown(b, 'd', e.Decision)
	b = appendKnown(b, 'e', e.Rule)
	b = appendKnown(b, 'p', e.PolicyID)
	b = appendNumber(b, 'q', int64(e.PolicyRevision))
	b = appendKnown(b, 'w', e.ApprovalID)
	if len(e.Shadow) > 0 {
		b = appendJSON(b, 'x', e.Shadow)
	}
	b = appendTexts(b, 'y', e.Roles)
	b = appendTexts(b, 'z', e.Groups)
	b = appendKnown(b, 'g', e.ArgumentsDigest)
	if len(e.Arguments) > 0 {
		b = appendJSON(b, 'j', e.Arguments)
	}
	b = appendEnd(b, e)
	if len(e.Outcomes) > 0 {
		b = appendOutcomes(b, e.At, e.Outcomes)
	}
	return append(b, '}')
}

// appendEnd appends the last members of an entry.
func appendEnd(b []byte, e *storage.AuditEntry) []byte {
	b = appendKnown(b, 'b', e.Outcome)
	b = appendNumber(b, 'h', int64(e.Duration))
	b = appendNumber(b, 'f', int64(e.UpstreamStatus))
	b = appendKnown(b, '1', e.TraceID)
	if len(e.Detail) > 0 {
		b = appendDetail(b, '2', e.Detail)
	}
	return b
}

func appendName(b []byte, name byte) []byte { return append(b, ',', '"', name, '"', ':') }

func appendKnown(b []byte, name byte, value string) []byte {
	if value == "" {
		return b
	}
	return appendMember(b, name, value)
}

func appendMember(b []byte, name byte, value string) []byte {
	return appendText(appendName(b, name), value)
}

// appendTexts appends a list, also an empty one. It leaves out nil.
func appendTexts(b []byte, name byte, values []string) []byte {
	if values == nil {
		return b
	}
	b = append(appendName(b, name), '[')
	for i, value := range values {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendText(b, value)
	}
	return append(b, ']')
}

func appendNumber(b []byte, name byte, value int64) []byte {
	if value == 0 {
		return b
	}
	return strconv.AppendInt(appendName(b, name), value, 10)
}

func appendText(b []byte, text string) []byte {
	start := len(b)
	b = append(b, '"')
	b = append(b, text...)
	if !plain(b[start+1:]) {
		return append(b[:start], Marshal(text)...)
	}
	return append(b, '"')
}

// plain reports whether the text is ASCII and needs no escapes in JSON. It compares eight bytes at a time, and some of
// the last bytes twice.
func plain(text []byte) bool {
	if len(text) >= 8 {
		for i := 0; i < len(text)-8; i += 8 {
			if !plainWord(binary.LittleEndian.Uint64(text[i:])) {
				return false
			}
		}
		return plainWord(binary.LittleEndian.Uint64(text[len(text)-8:]))
	}
	for _, c := range text {
		if c < ' ' || c > 0x7f || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}

func plainWord(word uint64) bool {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	quote, slash := word^('"'*ones), word^('\\'*ones)
	return (word|(word-' '*ones)|((quote-ones)&^quote)|((slash-ones)&^slash))&highs == 0
}

func appendJSON(b []byte, name byte, value any) []byte {
	encoded := Marshal(value)
	if encoded == nil {
		return b
	}
	return append(appendName(b, name), encoded...)
}

// Marshal encodes value as JSON on one line. It returns nil when that is not possible.
func Marshal(value any) []byte {
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	encoder.SetEscapeHTML(false)
	if encoder.Encode(value) != nil {
		return nil
	}
	return bytes.TrimSuffix(buffer.Bytes(), []byte("\n"))
}
