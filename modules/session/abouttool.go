package session

import (
	"context"
	"slices"

	"github.com/durward-gateway/durward/internal/api/visible"
	"github.com/durward-gateway/durward/internal/mcp/toolpin"
	"github.com/durward-gateway/durward/storage"
)

// shownDescription is the length of a tool's description that a page shows, in bytes.
const shownDescription = 2 << 10

// about holds the server's statements about the tool of a held call, with hidden characters made visible.
type about struct {
	Known              bool
	Changed            bool // the server's definition has changed since
	Title, Description string
}

// hint is one of the server's own hints at what a tool does.
type hint struct{ Text, Class string }

// aboutTool finds the known facts about the tool of a held call. A call can be decided without them, so an error is not
// shown.
func (v *visit) aboutTool(ctx context.Context, a *storage.Approval) (about, []hint) {
	pins, err := v.core.Store.ToolPins(ctx, a.OrganizationID, a.ServerID)
	if err != nil {
		v.core.LogFailure(v.logger, "looking up the tool of a held call", err)
		return about{}, nil
	}
	at := slices.IndexFunc(pins, func(p storage.ToolPin) bool { return p.Name == a.Tool })
	if at < 0 {
		return about{}, nil
	}
	said := toolpin.AboutOf(pins[at].Definition)
	description, omitted := visible.Cut(said.Description, shownDescription)
	if omitted > 0 {
		description += " …"
	}
	title, _ := visible.Cut(said.Title, shownDescription)
	return about{Known: true, Changed: pins[at].Changed(), Title: title, Description: description}, hintsOf(said.Hints)
}

// hintsOf describes the effects of a tool, as MCP reads its annotations: an absent one counts as the worse value
// (2025-11-25, schema, "ToolAnnotations").
func hintsOf(said map[string]bool) []hint {
	if said["readOnlyHint"] {
		return []hint{{"only reads", "good"}}
	}
	var hints []hint
	switch destroys, known := said["destructiveHint"]; {
	case known && !destroys:
		hints = append(hints, hint{"adds, and destroys nothing", ""})
	case known:
		hints = append(hints, hint{"may change or destroy data", "bad"})
	default:
		hints = append(hints, hint{"does not say whether it destroys data", "warning"})
	}
	if said["idempotentHint"] {
		hints = append(hints, hint{"safe to repeat", ""})
	}
	if said["openWorldHint"] {
		hints = append(hints, hint{"reaches other systems", ""})
	}
	return hints
}
