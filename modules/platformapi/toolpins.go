package platformapi

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"errors"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/durward-gateway/durward/internal/api/validate"
	"github.com/durward-gateway/durward/internal/gateway"
	"github.com/durward-gateway/durward/internal/mcp/toolpin"
	"github.com/durward-gateway/durward/modules/app/routes"
	"github.com/durward-gateway/durward/storage"
)

var (
	errNoTool    = routes.Refused(gateway.NotFound, "The server was never seen to have such a tool")
	errOtherTool = routes.Conflict("hash", "The tool's definition is another one by now; look at it first")
)

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
	var name, hash string
	if err := q.Read(false, func(o *validate.Object) {
		name = o.Text("name", validate.Text{Flags: validate.Required, Max: toolpin.MaxName}).Value
		hash = o.Text("hash", validate.Text{Flags: validate.Required, Max: maxHash}).Value
	}); err != nil {
		return nil, err
	}
	s, err := q.readServer(ref)
	if err != nil {
		return nil, err
	}
	if q.Record != nil {
		q.Record.ServerID, q.Record.Server, q.Record.Tool = s.ID, s.Slug, name
		q.Record.Detail["hash"] = hash
	}
	pins, err := q.Core.Store.AcceptTools(q.Context(), s.OrganizationID, []storage.ToolAcceptance{{ServerID: s.ID, Name: name, Hash: hash}}, q.Call.Caller.UserID, q.handler.now().UTC())
	switch {
	case errors.Is(err, storage.ErrConflict):
		return nil, errOtherTool
	case err != nil:
		return nil, routes.Missing(err, errNoTool)
	}
	return q.toolView(pins[0]), nil
}

// serverToolView is a tool in the list of all servers' tools.
type serverToolView struct {
	ServerID string `json:"mcp_server_id"`
	Server   string `json:"server"`
	toolView
}

// withheldState is the word for tools that callers do not get: changed ones, when changes are enforced.
const withheldState = "withheld"

// listAllTools lists the tools of all servers, so that those that wait for a decision are found in one place.
func listAllTools(q *request) (any, error) {
	f := storage.ToolFilter{OrganizationID: q.Organization(), ServerID: q.Query.UUID("mcp_server_id", 0).Value}
	state := q.Query.Text("state", validate.Text{Enum: []string{string(storage.ToolNew), string(storage.ToolChanged), withheldState}}).Value
	f.After = q.toolPlace()
	limit := int(q.Query.Int("limit", validate.Integer{Min: 1, Max: 100}).Or(50))
	if err := q.Shape(); err != nil {
		return nil, err
	}
	f.State, f.Limit = storage.ToolState(state), limit+1
	var tools []storage.ServerTool
	if state == withheldState {
		f.State = storage.ToolChanged
	}
	if state != withheldState || q.Core.Pins.Enforced() {
		var err error
		if tools, err = q.Core.Store.Tools(q.Context(), f); err != nil {
			return nil, err
		}
	}
	view := func(t storage.ServerTool) serverToolView {
		return serverToolView{t.ServerID, t.Slug, q.toolView(t.ToolPin)}
	}
	return viewKeyed(tools, limit, toolCursor, view), nil
}

// maxToolCursor is the longest cursor of the list of all servers' tools, in characters.
const maxToolCursor = 1024

var cursorText = base64.RawURLEncoding.Strict()

// toolCursor returns the place of a tool as text, which is opaque to clients.
func toolCursor(t storage.ServerTool) string {
	return cursorText.EncodeToString([]byte(t.ServerID + t.Name))
}

// toolPlace reads the place where the list of all servers' tools goes on. It needs no proof of its origin: a place selects
// nothing.
func (q *request) toolPlace() storage.ToolPlace {
	text := q.Query.Text("cursor", validate.Text{Max: maxToolCursor}).Value
	if text == "" {
		return storage.ToolPlace{}
	}
	b, err := cursorText.DecodeString(text)
	if err == nil && len(b) >= idLength && utf8.Valid(b) && !bytes.ContainsRune(b, 0) && !strings.ContainsAny(text, "\r\n") { // which the decoder leaves out
		if id, ok := validate.UUID(string(b[:idLength])); ok {
			return storage.ToolPlace{ServerID: id, Name: string(b[idLength:])}
		}
	}
	q.Query.Report(validate.ValueError, "Value error, give the next_cursor of an answer, or none", "cursor")
	return storage.ToolPlace{}
}

// idLength is the length of a uuid as text.
const idLength = 36

// acceptedToolsView shows the tools that were accepted, in the order of the request.
type acceptedToolsView struct {
	Data []toolView `json:"data"`
}

// acceptTools pins definitions that somebody has looked at, of all tools that are named or of none.
func acceptTools(q *request) (any, error) {
	var tools []storage.ToolAcceptance
	if err := q.Read(false, func(o *validate.Object) {
		for _, one := range o.Objects("tools", validate.List{Flags: validate.Required, Min: 1, Max: maxAccepted}).Value {
			tools = append(tools, storage.ToolAcceptance{
				ServerID: one.UUID("mcp_server_id", validate.Required).Value,
				Name:     one.Text("name", validate.Text{Flags: validate.Required, Max: toolpin.MaxName}).Value,
				Hash:     one.Text("hash", validate.Text{Flags: validate.Required, Max: maxHash}).Value,
			})
			one.Only()
		}
		o.Only()
	}); err != nil {
		return nil, err
	}
	if len(tools) > 1 {
		if err := q.Fresh(q.handler.now()); err != nil {
			return nil, err
		}
	}
	named := make([]map[string]string, len(tools))
	for i, t := range tools {
		named[i] = map[string]string{"mcp_server_id": t.ServerID, "tool": t.Name, "hash": t.Hash}
	}
	q.Record.Detail["tools"] = named
	pins, err := q.Core.Store.AcceptTools(q.Context(), q.Organization(), tools, q.Call.Caller.UserID, q.handler.now().UTC())
	var at *storage.ToolError
	switch {
	case errors.As(err, &at) && errors.Is(err, storage.ErrConflict):
		return nil, about(errOtherTool, at.Index)
	case errors.As(err, &at) && errors.Is(err, storage.ErrNotFound):
		return nil, about(errNoTool, at.Index)
	case err != nil:
		return nil, err
	}
	v := acceptedToolsView{Data: make([]toolView, len(pins))}
	for i, p := range pins {
		v.Data[i] = q.toolView(p)
	}
	return v, nil
}

// about adds to a refusal which of the tools it is about.
func about(r *routes.Refusal, tool int) *routes.Refusal {
	placed := *r
	placed.Details = maps.Clone(r.Details)
	if placed.Details == nil {
		placed.Details = make(map[string]any, 1)
	}
	placed.Details["tool"] = tool
	return &placed
}

// maxAccepted is the largest number of tools that one request accepts.
const maxAccepted = 100

// maxHash is the limit for a hash, in characters. All real hashes have 64.
const maxHash = 128
