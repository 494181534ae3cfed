// Package param knows which arguments of a tool are mirrored in headers (x-mcp-header of revision 2026-07-28,
// SEP-2243). It compares a client's headers with the body, and writes the headers for the server.
package param

import (
	"bytes"
	"net/textproto"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/durward-gateway/durward/internal/strictjson"
)

// Prefix is the beginning of the names of these headers, in the form in which http.Header keeps them.
const Prefix = "Mcp-Param-"

const (
	annotation = "x-mcp-header"
	// maxParams and maxDepth bound the mirrored arguments of a tool, whatever its upstream lists.
	maxParams = 64
	maxDepth  = 16
)

// Param describes an argument that is mirrored.
type Param struct {
	Header string   // with Prefix, in the form in which http.Header keeps it
	Path   []string // of names of members, from the arguments on
}

// Read finds the mirrored arguments of a tool's definition in canonical JSON. It returns none when an annotation is
// wrong: clients must not list such a tool, and it is unknown how its server treats its headers.
func Read(definition []byte) []Param {
	if !bytes.Contains(definition, []byte(`"`+annotation+`"`)) {
		return nil // most have none, and definitions may be long
	}
	v, err := strictjson.Parse(definition, strictjson.Limits{MaxBytes: len(definition) + 1, MaxDepth: len(definition) + 1, MaxMembers: len(definition) + 1})
	if err != nil {
		return nil
	}
	schema, _ := v.Get("inputSchema")
	r := reader{seen: make(map[string]bool)}
	r.object(schema, nil)
	if r.wrong {
		return nil
	}
	return r.params
}

type reader struct {
	params []Param
	seen   map[string]bool // by header: names differ in more than case
	wrong  bool
}

// object reads the members of an object's schema. They are reached through properties alone: an annotation below
// items, oneOf and their like is not about one place.
func (r *reader) object(schema strictjson.Value, path []string) {
	properties, _ := schema.Get("properties")
	if len(path) >= maxDepth {
		return
	}
	for _, m := range properties.Members() {
		// This is a copy, because paths share their beginnings.
		below := append(append(make([]string, 0, len(path)+1), path...), m.Name)
		if name, has := m.Value.Get(annotation); has {
			r.param(m.Value, name, below)
		}
		r.object(m.Value, below)
	}
}

func (r *reader) param(schema, name strictjson.Value, path []string) {
	header := textproto.CanonicalMIMEHeaderKey(Prefix + name.Str())
	kind, _ := schema.Get("type")
	switch kind.Str() {
	case "string", "integer", "boolean":
	default:
		r.wrong = true
	}
	if !httpguts.ValidHeaderFieldName(name.Str()) || r.seen[strings.ToLower(header)] || len(r.params) == maxParams {
		r.wrong = true
		return
	}
	r.seen[strings.ToLower(header)] = true
	r.params = append(r.params, Param{Header: header, Path: path})
}
