package toolpin

import (
	"bytes"

	"github.com/durward-gateway/durward/internal/strictjson"
)

// About holds the texts about a tool that its server wrote for people. They are only claims of the server (2025-11-25,
// server/tools, "Tool annotations": hints that clients must not trust).
type About struct {
	Title, Description string
	// Hints holds the annotations that the server has set, by their names in MCP, such as readOnlyHint.
	Hints map[string]bool
}

// readOnly reports whether a stored definition has the hint that its tool changes nothing. Definitions are canonical: most
// of those without the hint need not be read.
func readOnly(definition []byte) bool {
	return bytes.Contains(definition, []byte(`"readOnlyHint":true`)) && AboutOf(definition).Hints["readOnlyHint"]
}

// AboutOf reads these texts from a stored definition. For a definition that was too long to store it returns none.
func AboutOf(definition []byte) About {
	v, err := strictjson.Parse(definition, strictjson.Limits{MaxBytes: len(definition) + 1, MaxDepth: len(definition) + 1, MaxMembers: len(definition) + 1})
	if err != nil {
		return About{}
	}
	text := func(v strictjson.Value, name string) string {
		member, _ := v.Get(name)
		return member.Str()
	}
	annotations, _ := v.Get("annotations")
	about := About{Title: text(v, "title"), Description: text(v, "description"), Hints: make(map[string]bool)}
	if about.Title == "" {
		about.Title = text(annotations, "title")
	}
	for _, name := range [...]string{"readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"} {
		if hint, ok := annotations.Get(name); ok && hint.Kind() == strictjson.Bool {
			about.Hints[name] = hint.Bool()
		}
	}
	return about
}
