package routes

import (
	"errors"
	"net/http"
	"strings"

	"github.com/durward-gateway/durward/internal/api/validate"
	"github.com/durward-gateway/durward/internal/gateway/inbound"
	"github.com/durward-gateway/durward/modules/app"
	"github.com/durward-gateway/durward/storage"
)

// auditKinds are the kinds of records that writes on routes make.
var auditKinds = map[AuditClass]storage.AuditKind{
	AuditAdminWrite: storage.AuditAdmin, AuditConnection: storage.AuditCredential, AuditApproval: storage.AuditApproval,
}

// resources maps segments of paths to the names of their collections; segments without a name only locate the API.
var resources = map[string]string{
	"api": "", "v2": "", "by-slug": "", "llm-gateway": "", "admin": "", "user": "",
	"servers": "server", "server-directory": "directory_entry", "agents": "agent", "policy": "policy", "policies": "policy", "users": "user", "organizations": "organization",
	"approvals": "approval", "sessions": "session", "tools": "tool", "jobs": "job",
	"api-keys": "api_key", "rate-limits": "rate_limit", "smart-models": "smart_model", "providers": "llm_provider",
	"model-mappings": "model_mapping", "budgets": "budget", "configuration": "configuration",
}

// parts maps segments behind an object to the names of collections of its parts.
var parts = map[string]string{"credentials": "agent_credential", "connections": "connection"} //nolint:gosec // names

var verbs = map[string]string{http.MethodPost: "create", http.MethodPut: "update", http.MethodPatch: "update", http.MethodDelete: "delete"}

// event returns the name of a write on a route: the collection, and the words behind the object or the meaning of the
// method.
func event(method, path string) string {
	resource := ""
	var words []string
	for segment := range strings.SplitSeq(strings.TrimPrefix(path, "/"), "/") {
		switch name, known := resources[segment]; {
		case known && name == "":
		case isParameter(segment):
			words = nil
		case resource != "" && parts[segment] != "":
			resource = parts[segment]
		case known && resource == "":
			resource = name
		default:
			words = append(words, segment)
		}
	}
	switch words := strings.Join(words, "."); words {
	case "":
		return resource + "." + verbs[method]
	case "connection", "registration":
		return words + "." + verbs[method]
	default:
		return resource + "." + words
	}
}

// Event returns the name under which a write on the route is recorded.
func (r *Route[Q]) Event() string { return event(r.Method, r.Path) }

// entry returns the record of a write by the caller.
func (q *Request) entry() storage.AuditEntry {
	caller := q.Call.Caller
	e := storage.AuditEntry{Kind: auditKinds[q.audit], Event: event(q.HTTP.Method, q.path), UserID: caller.UserID, Client: caller.Agent, Outcome: "ok", Detail: make(map[string]any)}
	if q.Call.Agent != nil {
		e.AgentID = q.Call.Agent.ID
	}
	if tag, ok := inbound.TrackingTag(q.HTTP.Header); ok {
		e.Session = tag
	}
	e.TraceID = app.TraceID(q.HTTP.Context(), q.HTTP.Header)
	for name, value := range q.Params {
		if len(value) <= 64 { // ids and slugs are not longer
			e.Detail[name] = value
		}
	}
	if id, ok := validate.UUID(q.Params["server_id"]); ok {
		e.ServerID = id
	}
	return e
}

// audited makes the route's writes record themselves in their own transactions.
func (q *Request) audited() error {
	if auditKinds[q.audit] == "" {
		return nil
	}
	ctx, entry, err := q.Core.Audit.With(q.HTTP.Context(), q.Organization(), q.entry())
	if err != nil {
		return err
	}
	q.HTTP, q.Record = q.HTTP.WithContext(ctx), entry
	return nil
}

// unchanged records a granted write that changed nothing: no transaction of the store has recorded it.
func (q *Request) unchanged() {
	if q.audit != AuditAdminWrite || q.Record == nil {
		return
	}
	if a := storage.AuditOf(q.HTTP.Context()); a != nil && a.Claim() {
		e := *q.Record
		e.Detail["unchanged"] = true
		q.Core.Audit.Unchanged(a.OrganizationID, e)
	}
}

// sent notes the names of a body's members, never their values.
func (q *Request) sent(body *validate.Object) {
	if q.Record == nil || body == nil {
		return
	}
	if names := body.Sent(); len(names) > 0 {
		q.Record.Detail["fields"] = names
	}
}

// unaudited records a write that was refused: by role, by the present objects, or for its shape.
func (q *Request) unaudited(err error) {
	if q.audit != AuditAdminWrite || err == nil {
		return
	}
	status := 0
	var known *Refusal
	var problems validate.Problems
	switch {
	case errors.As(err, &known):
		status = known.Status()
	case errors.As(err, &problems):
		status = q.shapeStatus
	}
	if status != http.StatusForbidden && status != http.StatusConflict && (status == 0 || status != q.shapeStatus) {
		return
	}
	q.Core.Audit.RefusedWrite(q.Organization(), q.refusedEntry(status))
}

// refusedEntry returns the record of a write that was refused, with the known facts about the body: a role is refused
// before the body is read.
func (q *Request) refusedEntry(status int) storage.AuditEntry {
	e := q.entry()
	e.Outcome = "refused"
	e.Detail["status"] = status
	if q.Record != nil && q.Record.Detail["fields"] != nil {
		e.Detail["fields"] = q.Record.Detail["fields"]
	}
	return e
}
