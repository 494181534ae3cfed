package record

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/durward-gateway/durward/internal/api/secretname"
)

// maxKeptArguments bounds the arguments of one record, in bytes.
const maxKeptArguments = 16 << 10

// redaction is the set of members, beside those of secrets, whose values the audit log does not keep. The names are in
// the form of secretname.Plain.
type redaction map[string]bool

// has reports whether the value of a member is replaced. The name may have an x in front, as in headers, or an s at its
// end.
func (r redaction) has(name string) bool {
	name = secretname.Plain(name)
	bare := strings.TrimPrefix(name, "x")
	spellings := [...]string{name, strings.TrimSuffix(name, "s"), bare, strings.TrimSuffix(bare, "s")}
	return slices.ContainsFunc(spellings[:], func(name string) bool { return r[name] || secretname.Is(name) })
}

func newRedaction(names []string) redaction {
	r := make(redaction, len(names))
	for _, name := range names {
		if name = secretname.Plain(name); name != "" {
			r[name] = true
		}
	}
	return r
}

// arguments returns the arguments of a call in the form that the audit log keeps. left reports that they are too large
// and were left out.
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
