package platformapi

import (
	"cmp"
	"errors"
	"slices"

	"github.com/durward-gateway/durward/internal/api/validate"
	"github.com/durward-gateway/durward/internal/gateway"
	"github.com/durward-gateway/durward/internal/mcp/toolpin"
	"github.com/durward-gateway/durward/modules/app/routes"
	"github.com/durward-gateway/durward/storage"
)

var errNoTool = routes.Refused(gateway.NotFound, "The server was never seen to have such a tool")

// toolView is a tool with its pinned definition and the upstream's last one. Hidden characters in its texts are made
// visible.
type toolView struct {
	Name       string   `json:"name"`
	Hash       string   `json:"hash"` // of the upstream's last definition, which is the one to accept
	PinnedHash string   `json:"pinned_hash"`
	Changed    bool     `json:"changed"`
	Withheld   bool     `json:"withheld"`
	Current    string   `json:"current"`
	Pinned     string   `json:"pinned"`
	Diff       string   `json:"diff"`
	Suspicious []string `json:"suspicious"` // hidden characters in the current definition

	FirstSeenAt routes.Instant  `json:"first_seen_at"`
	ChangedAt   *routes.Instant `json:"changed_at"`
	AcceptedAt  *routes.Instant `json:"accepted_at"`
	AcceptedBy  *string         `json:"accepted_by"`
}

func (q *request) toolView(p storage.ToolPin) toolView {
	v := toolView{
		Name: p.Name, Hash: p.SeenHash, PinnedHash: p.Hash, Changed: p.Changed(), Withheld: p.Changed() && q.Core.Pins.Enforced(),
		Current: toolpin.Text(p.SeenDefinition), Suspicious: routes.List(toolpin.Suspicious(p.SeenDefinition)),
		FirstSeenAt: routes.Instant(p.FirstSeenAt), ChangedAt: routes.OptionalInstant(p.ChangedAt), AcceptedAt: routes.OptionalInstant(p.AcceptedAt), AcceptedBy: routes.Optional(p.AcceptedBy),
	}
	v.Pinned = v.Current
	if v.Changed {
		v.Pinned = toolpin.Text(p.Definition)
		v.Diff = toolpin.Diff(v.Pinned, v.Current)
	}
	return v
}

// listTools lists the tools that were seen at a server: changed ones first, then by name.
func listTools(q *request) (any, error) {
	ref, page := q.server(), q.Page()
	if err := q.Shape(); err != nil {
		return nil, err
	}
	s, err := q.readServer(ref)
	if err != nil {
		return nil, err
	}
	pins, err := q.Core.Store.ToolPins(q.Context(), s.OrganizationID, s.ID)
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(pins, func(a, b storage.ToolPin) int { return cmp.Compare(rank(&a), rank(&b)) })
	total := len(pins)
	from := min((page.Number-1)*page.Limit, total)
	pins = pins[from:min(from+page.Limit, total)]
	return viewPage(page, storage.Page[storage.ToolPin]{Items: pins, Total: total}, q.toolView), nil
}

func rank(p *storage.ToolPin) int {
	if p.Changed() {
		return 0
	}
	return 1
}

// acceptTool pins the definition that the administrator has inspected.
func acceptTool(q *request) (any, error) {
	ref := q.server()
	if err := q.Shape(); err != nil {
		return nil, err
	}
	s, err := q.readServer(ref) // before the body: another organization's server is unknown, whatever the body asks
	if err != nil {
		return nil, err
	}
	var name, hash string
	if err := q.Read(false, func(o *validate.Object) {
		name = o.Text("name", validate.Text{Flags: validate.Required, Max: toolpin.MaxName}).Value
		hash = o.Text("hash", validate.Text{Flags: validate.Required, Max: maxHash}).Value
	}); err != nil {
		return nil, err
	}
	if q.Record != nil {
		q.Record.ServerID, q.Record.Server, q.Record.Tool = s.ID, s.Slug, name
		q.Record.Detail["hash"] = hash
	}
	p, err := q.Core.Store.AcceptTool(q.Context(), s.OrganizationID, s.ID, name, hash, q.Call.Caller.UserID, q.handler.now().UTC())
	switch {
	case errors.Is(err, storage.ErrConflict):
		return nil, routes.Conflict("hash", "The tool's definition is another one by now; look at it first")
	case err != nil:
		return nil, routes.Missing(err, errNoTool)
	}
	return q.toolView(p), nil
}

// maxHash is the limit for a hash, in characters. All real hashes have 64.
const maxHash = 128
