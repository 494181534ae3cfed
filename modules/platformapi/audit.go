package platformapi

import (
	"errors"
	"net/http"
	"strings"

	"github.com/durward-gateway/durward/internal/validate"
	"github.com/durward-gateway/durward/modules/app"
	"github.com/durward-gateway/durward/storage"
)

// auditKinds are the kinds of records that writes on routes make.
var auditKinds = map[auditClass]storage.AuditKind{
	auditAdminWrite: storage.AuditAdmin, auditConnection: storage.AuditCredential, auditApproval: storage.AuditApproval,
}

// resources are the first segments of paths and what they are collections of.
var resources = map[string]string{
	"servers": "server", "server-directory": "directory_entry", "agents": "agent", "policy": "policy", "policies": "policy", "users": "user",
	"approvals": "approval",
}

var verbs = map[string]string{http.MethodPost: "create", http.MethodPut: "update", http.MethodPatch: "update", http.MethodDelete: "delete"}

// event names what a write on the route does: the collection, and the words behind the object or what the method means.
func (r *route) event() string {
	resource := ""
	var words []string
	for segment := range strings.SplitSeq(strings.TrimPrefix(r.path, "/"), "/") {
		switch name, known := resources[segment]; {
		case segment == "api" || segment == "v2" || segment == "by-slug":
		case isParameter(segment):
			words = nil
		case known && resource == "":
			resource = name
		default:
			words = append(words, segment)
		}
	}
	switch words := strings.Join(words, "."); words {
	case "":
		return resource + "." + verbs[r.method]
	case strings.TrimPrefix(statusPath, "/"):
		return words + "." + verbs[r.method]
	default:
		return resource + "." + words
	}
}

// entry is the record of a write by the caller.
func (q *request) entry() storage.AuditEntry {
	caller := q.call.Caller
	e := storage.AuditEntry{Kind: auditKinds[q.route.audit], Event: q.route.event(), UserID: caller.UserID, Client: caller.Agent, Detail: make(map[string]any)}
	if q.call.Agent != nil {
		e.AgentID = q.call.Agent.ID
	}
	if tag, ok := app.TrackingTag(q.http.Header); ok {
		e.Session = tag
	}
	for name, value := range q.params {
		if len(value) <= 64 { // ids and slugs are no longer
			e.Detail[name] = value
		}
	}
	if id, ok := validate.UUID(q.params["server_id"]); ok {
		e.ServerID = id
	}
	return e
}

// audited makes the route's writes record themselves in their own transactions.
func (q *request) audited() error {
	if auditKinds[q.route.audit] == "" {
		return nil
	}
	ctx, entry, err := q.core.Audit.With(q.http.Context(), q.organization(), q.entry())
	if err != nil {
		return err
	}
	q.http, q.record = q.http.WithContext(ctx), entry
	return nil
}

// sent notes which members a body has, never their values.
func (q *request) sent(body *validate.Object) {
	if q.record == nil || body == nil {
		return
	}
	if names := body.Sent(); len(names) > 0 {
		q.record.Detail["fields"] = names
	}
}

// unaudited records a write that was refused: by role, by what is there, or for its shape.
func (q *request) unaudited(err error) {
	if q.route.audit != auditAdminWrite || err == nil {
		return
	}
	status := 0
	var known *refusal
	var problems validate.Problems
	switch {
	case errors.As(err, &known):
		status = known.Status()
	case errors.As(err, &problems):
		status = http.StatusUnprocessableEntity
	}
	if status != http.StatusForbidden && status != http.StatusConflict && status != http.StatusUnprocessableEntity {
		return
	}
	q.core.Audit.RefusedWrite(q.organization(), q.refusedEntry(status))
}

// refusedEntry is the record of a write that was refused, with what is known of the body: a role is refused before it is
// read.
func (q *request) refusedEntry(status int) storage.AuditEntry {
	e := q.entry()
	e.Outcome = "refused"
	e.Detail["status"] = status
	if q.record != nil && q.record.Detail["fields"] != nil {
		e.Detail["fields"] = q.record.Detail["fields"]
	}
	return e
}
