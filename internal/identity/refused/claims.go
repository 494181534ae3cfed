package refused

import (
	"encoding/json"
	"strings"

	"github.com/durward-gateway/durward/internal/api/visible"
	"github.com/durward-gateway/durward/internal/strictjson"
)

// Bounds of an entry, in bytes.
const (
	maxClaims = 4 << 10
	maxClaim  = 1 << 10
	maxText   = 256
	maxCut    = 50
)

// withheld lists parts of names whose values could be misused: some providers put other tokens into theirs.
var withheld = []string{"token", "secret", "password", "assertion", "credential", "cookie", "private"}

// claims returns the members of a payload, bounded, and the names of those left out. Values that could be misused are
// replaced.
func claims(payload strictjson.Value) (object json.RawMessage, left []string) {
	out := []byte{'{'}
	for name, value := range payload.EachMember() {
		shown, _ := visible.Beginning(string(name), maxText)
		raw := value.Raw()
		if holds(string(name)) {
			raw = []byte(`"REDACTED"`)
		} else if inner := nested(value); inner {
			raw = []byte(`"REDACTED: it holds a secret"`)
		}
		quoted, err := json.Marshal(shown)
		if err != nil || len(raw) > maxClaim || len(out)+len(quoted)+len(raw)+2 > maxClaims {
			if len(left) < maxCut {
				left = append(left, shown)
			}
			continue
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(append(out, quoted...), ':'), raw...)
	}
	return append(out, '}'), left
}

// nested reports whether a value has a member, at any depth, that must be withheld.
func nested(value strictjson.Value) bool {
	switch value.Kind() {
	case strictjson.Array:
		for _, e := range value.Elems() {
			if nested(e) {
				return true
			}
		}
	case strictjson.Object:
		for name, v := range value.EachMember() {
			if holds(string(name)) || nested(v) {
				return true
			}
		}
	}
	return false
}

func holds(name string) bool {
	if strings.EqualFold(name, "token_use") { // Cognito's kind of a token
		return false
	}
	name = strings.ToLower(name)
	for _, part := range withheld {
		if strings.Contains(name, part) {
			return true
		}
	}
	return false
}
