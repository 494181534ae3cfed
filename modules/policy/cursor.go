package policy

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"

	"github.com/durward-gateway/durward/internal/gateway"
	"github.com/durward-gateway/durward/internal/mcp/jsonrpc"
	"github.com/durward-gateway/durward/internal/mcp/listfilter"
	"github.com/durward-gateway/durward/internal/strictjson"
	"github.com/durward-gateway/durward/storage"
)

// pagesOf maps the lists that a filter finds in an answer to their methods.
var pagesOf = map[listfilter.List]string{
	listfilter.Tools: "tools/list", listfilter.Resources: "resources/list", listfilter.Templates: "resources/templates/list",
	listfilter.Prompts: "prompts/list", listfilter.Tasks: "tasks/list",
}

var listMethods = slices.Collect(maps.Values(pagesOf))

// sealCursors makes a filter seal the cursors of the lists that pass it: a cursor tells the name of a page's last
// entry, even a hidden one (attack M11).
func (q *request) sealCursors(f *listfilter.Filter) {
	sessions, who := q.call.Core.Sessions, q.call.Binding()
	f.Cursor = func(list listfilter.List, cursor string) (string, error) {
		return sessions.SealCursor(cursor, pagesOf[list], who)
	}
}

// page judges the requested page of a list: the first, or one whose cursor was given to this caller.
func (q *request) page(m *jsonrpc.Message) verdict {
	if m.Params == nil {
		return verdict{}
	}
	cursor, bad := member(params(m), "cursor")
	switch {
	case bad != nil:
		return *bad
	case cursor.Kind() == strictjson.Invalid || cursor.Kind() == strictjson.Null:
		return verdict{}
	case cursor.Kind() != strictjson.String:
		return invalidCursor
	case cursor.Str() == "":
		return verdict{} // most readers take it for the first page; it is also given out unchanged, because it tells nothing
	}
	_, err := q.call.Core.Sessions.OpenCursor(cursor.Str(), m.Method, q.call.Binding())
	if errors.Is(err, storage.ErrUnavailable) {
		q.call.Core.LogFailure(q.handler.logger, "opening a cursor", err)
		return unreadCursor
	}
	if err != nil {
		return invalidCursor
	}
	q.paged = true
	return verdict{}
}

var (
	invalidCursor = verdict{code: jsonrpc.CodeInvalidParams, text: "Invalid cursor", service: gateway.BadRequest}
	unreadCursor  = verdict{code: jsonrpc.CodeInternalError, text: "The cursor cannot be read at the moment", service: gateway.Unavailable}
)

// openCursors replaces the cursors that page accepted by the upstream's own. Nothing else of the body changes.
func (q *request) openCursors() error {
	document, err := strictjson.Parse(q.Body, strictjson.Limits{MaxBytes: len(q.Body) + 1})
	if err != nil {
		return err
	}
	messages := []strictjson.Value{document}
	if q.Message.Batch {
		messages = document.Elems()
	}
	body, at := make([]byte, 0, len(q.Body)), 0
	for i, m := range messages {
		params, _ := m.Get("params")
		cursor, _ := params.Get("cursor")
		if cursor.Str() == "" || !slices.Contains(listMethods, q.Message.Messages[i].Method) {
			continue
		}
		opened, err := q.call.Core.Sessions.OpenCursor(cursor.Str(), q.Message.Messages[i].Method, q.call.Binding())
		if err != nil {
			return err
		}
		text, err := json.Marshal(opened)
		if err != nil {
			return err
		}
		body = append(append(body, q.Body[at:cursor.Offset()]...), text...)
		at = cursor.Offset() + len(cursor.Raw())
	}
	return q.ReplaceBody(append(body, q.Body[at:]...))
}
