package platformapi

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"github.com/durward-gateway/durward/internal/toolpin"
	"github.com/durward-gateway/durward/internal/validate"
	"github.com/durward-gateway/durward/modules/app"
	"github.com/durward-gateway/durward/storage"
)

var errNoTool = refused(app.NotFound, "The server was never seen to have such a tool")

// toolView is a tool with what is pinned of it and what the upstream last said. Texts show what would hide in them.
type toolView struct {
	Name       string   `json:"name"`
	Hash       string   `json:"hash"` // of what the upstream last said: what is accepted
	PinnedHash string   `json:"pinned_hash"`
	Changed    bool     `json:"changed"`
	Withheld   bool     `json:"withheld"`
	Current    string   `json:"current"`
	Pinned     string   `json:"pinned"`
	Diff       string   `json:"diff"`
	Suspicious []string `json:"suspicious"` // what hides in the current definition

	FirstSeenAt instant  `json:"first_seen_at"`
	ChangedAt   *instant `json:"changed_at"`
	AcceptedAt  *instant `json:"accepted_at"`
	AcceptedBy  *string  `json:"accepted_by"`
}

func (q *request) toolView(p storage.ToolPin) toolView {
	v := toolView{
		Name: p.Name, Hash: p.SeenHash, PinnedHash: p.Hash, Changed: p.Changed(), Withheld: p.Changed() && q.core.PinsEnforced(),
		Current: toolpin.Text(p.SeenDefinition), Suspicious: list(toolpin.Suspicious(p.SeenDefinition)),
		FirstSeenAt: instant(p.FirstSeenAt), ChangedAt: maybe(p.ChangedAt), AcceptedAt: maybe(p.AcceptedAt), AcceptedBy: optional(p.AcceptedBy),
	}
	v.Pinned = v.Current
	if v.Changed {
		v.Pinned = toolpin.Text(p.Definition)
		v.Diff = toolpin.Diff(v.Pinned, v.Current)
	}
	return v
}

// maybe is a time, or null when there is none.
func maybe(t time.Time) *instant {
	if t.IsZero() {
		return nil
	}
	return (*instant)(&t)
}

// listTools lists the tools that a server was seen to have: those that have changed first, then by name.
func listTools(q *request) (any, error) {
	ref, page := q.server(), q.page()
	if err := q.shape(); err != nil {
		return nil, err
	}
	s, err := q.readServer(ref)
	if err != nil {
		return nil, err
	}
	pins, err := q.core.Store.ToolPins(q.context(), s.OrganizationID, s.ID)
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

// acceptTool pins a definition as it was looked at.
func acceptTool(q *request) (any, error) {
	ref := q.server()
	if err := q.shape(); err != nil {
		return nil, err
	}
	s, err := q.readServer(ref) // before the body: another organization's server is unknown whatever is asked of it
	if err != nil {
		return nil, err
	}
	var name, hash string
	if err := q.read(false, func(o *validate.Object) {
		name = o.Text("name", validate.Text{Flags: validate.Required, Max: toolpin.MaxName}).Value
		hash = o.Text("hash", validate.Text{Flags: validate.Required, Max: maxHash}).Value
	}); err != nil {
		return nil, err
	}
	if q.record != nil {
		q.record.ServerID, q.record.Server, q.record.Tool = s.ID, s.Slug, name
		q.record.Detail["hash"] = hash
	}
	p, err := q.core.Store.AcceptTool(q.context(), s.OrganizationID, s.ID, name, hash, q.call.Caller.UserID, q.handler.now().UTC())
	switch {
	case errors.Is(err, storage.ErrConflict):
		return nil, conflict("hash", "The tool's definition is another one by now; look at it first")
	case err != nil:
		return nil, missing(err, errNoTool)
	}
	return q.toolView(p), nil
}

// maxHash bounds a hash in characters. All that there are have 64.
const maxHash = 128
