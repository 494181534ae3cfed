package app

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode"
)

// maxKeptArguments bounds the arguments of one record, in bytes.
const maxKeptArguments = 16 << 10

// redaction is the names of members whose values the audit log does not keep, as plainName writes them.
type redaction map[string]bool

// plainName is what the ways to write a name have in common: access_token, accessToken and Access-Token are one.
func plainName(name string) string {
	return strings.Map(func(c rune) rune {
		if c == '_' || c == '-' || unicode.IsSpace(c) {
			return -1
		}
		return unicode.ToLower(c)
	}, name)
}

// has reports whether the value of a member is replaced: also under a name with an x in front, as in headers, and of several.
func (r redaction) has(name string) bool {
	name = plainName(name)
	for _, name := range [...]string{name, strings.TrimPrefix(name, "x")} {
		if r[name] || r[strings.TrimSuffix(name, "s")] {
			return true
		}
	}
	return false
}

var alwaysRedacted = []string{
	"authorization", "password", "passwd", "secret", "client_secret", "token", "access_token", "refresh_token", "api_key",
	"private_key", "credential", "cookie",
}

func newRedaction(names []string) redaction {
	r := make(redaction, len(alwaysRedacted)+len(names))
	for _, name := range alwaysRedacted {
		r[plainName(name)] = true
	}
	for _, name := range names {
		if name = plainName(name); name != "" {
			r[name] = true
		}
	}
	return r
}

// arguments are those of a call as the audit log keeps them. left: they are too large, and left out.
func (r redaction) arguments(text []byte) (kept json.RawMessage, left bool) {
	if len(text) > maxKeptArguments {
		return nil, true
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber() // numbers stay as they were written
	var value any
	if decoder.Decode(&value) != nil {
		return nil, true // not reached: the strict reader has read it
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if encoder.Encode(r.value(value)) != nil {
		return nil, true
	}
	return bytes.TrimSpace(out.Bytes()), false
}

func (r redaction) value(value any) any {
	switch v := value.(type) {
	case map[string]any:
		for name, member := range v {
			if r.has(name) {
				v[name] = "REDACTED"
				continue
			}
			v[name] = r.value(member)
		}
	case []any:
		for i := range v {
			v[i] = r.value(v[i])
		}
	}
	return value
}
