package toolpin

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/durward-gateway/durward/internal/mcp/param"
	"github.com/durward-gateway/durward/internal/strictjson"
	"github.com/durward-gateway/durward/internal/strictjson/canonical"
)

// pinned lists the members of a tool that models see or that its use depends on (2025-11-25, server/tools, "Data
// Types"). Others, such as icons and _meta, may change without making another tool.
var pinned = [...]string{"name", "title", "description", "inputSchema", "outputSchema", "annotations"}

// Tool is a tool as listed.
type Tool struct {
	Name string
	// Hash is the SHA-256 of Definition, in hex.
	Hash string
	// Definition is the canonical JSON object of the pinned members.
	Definition []byte
}

// Read reads a tool of that name from an entry of tools/list, which must be a JSON object. Order of members, white
// space and spelling of strings do not matter; numbers are compared as written. A member whose name equals a pinned one
// only for readers that fold case is pinned too, because their models see it. Errors are strictjson's.
func Read(name string, entry []byte) (Tool, error) {
	// The entry is part of a text that was checked against limits already.
	v, err := strictjson.Parse(entry, strictjson.Limits{MaxBytes: len(entry) + 1, MaxDepth: len(entry) + 1, MaxMembers: len(entry) + 1})
	if err != nil {
		return Tool{}, err
	}
	members := slices.DeleteFunc(v.Members(), func(m strictjson.Member) bool { return !isPinned(m.Name) })
	slices.SortFunc(members, func(a, b strictjson.Member) int { return strings.Compare(a.Name, b.Name) })
	text := make([]byte, 0, len(entry))
	for _, m := range members {
		text = append(text, ',', '"') // a name that folds to a pinned one needs no escape
		text = append(append(text, m.Name...), '"', ':')
		text = canonical.Append(text, m.Value)
	}
	if len(text) == 0 {
		text = append(text, '{')
	}
	text[0] = '{'
	text = append(text, '}')
	sum := sha256.Sum256(text)
	return Tool{Name: name, Hash: hex.EncodeToString(sum[:]), Definition: text}, nil
}

func isPinned(name string) bool {
	return slices.ContainsFunc(pinned[:], func(p string) bool { return strings.EqualFold(name, p) })
}

// abridged replaces a definition that is too long to store. No definition has its member.
type abridged struct {
	Abridged struct {
		Bytes     int    `json:"bytes"`     // of the definition
		Beginning string `json:"beginning"` // of its text
	} `json:"abridged"`
}

// kept returns the stored form of the definition. A definition above limit bytes is stored only in its beginning, with
// the hash of the whole.
func (t *Tool) kept(limit int) json.RawMessage {
	if len(t.Definition) <= limit {
		return t.Definition
	}
	var a abridged
	a.Abridged.Bytes = len(t.Definition)
	cut := limit / 4 // escapes make it longer
	for cut > 0 && !utf8.RuneStart(t.Definition[cut]) {
		cut--
	}
	a.Abridged.Beginning = string(t.Definition[:cut])
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(&a); err != nil {
		return json.RawMessage(`{}`) // not reached: a number and a string
	}
	return bytes.TrimSpace(out.Bytes())
}

// Listable reports whether a stored definition can be listed unchanged: it is complete, and names its tool.
func Listable(definition []byte) bool {
	if _, _, abridged := beginning(definition); abridged || len(definition) == 0 {
		return false
	}
	v, err := strictjson.Parse(definition, strictjson.Limits{MaxBytes: len(definition) + 1, MaxDepth: len(definition) + 1, MaxMembers: len(definition) + 1})
	name, _ := v.Get("name")
	schema, _ := v.Get("inputSchema")
	return err == nil && name.Str() != "" && schema.Kind() == strictjson.Object
}

// noMirrors is shared by the many tools without mirrored arguments.
var noMirrors = &param.Tool{Known: true}

// mirrors returns which arguments travel in headers, by a stored definition; nil when only its beginning is stored.
func mirrors(definition []byte) *param.Tool {
	if _, _, abridged := beginning(definition); abridged || len(definition) == 0 {
		return nil
	}
	if params := param.Read(definition); params != nil {
		return &param.Tool{Known: true, Params: params}
	}
	return noMirrors
}

// beginning returns the stored part of an abridged definition.
func beginning(definition []byte) (text string, size int, is bool) {
	if !bytes.HasPrefix(definition, []byte(`{"abridged":`)) {
		return "", 0, false
	}
	var a abridged
	if json.Unmarshal(definition, &a) != nil {
		return "", 0, false
	}
	return a.Abridged.Beginning, a.Abridged.Bytes, true
}
