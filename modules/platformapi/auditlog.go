package platformapi

import (
	"bufio"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/durward-gateway/durward/internal/api/validate"
	"github.com/durward-gateway/durward/internal/audit"
	"github.com/durward-gateway/durward/internal/audit/format"
	"github.com/durward-gateway/durward/internal/audit/query"
	"github.com/durward-gateway/durward/internal/audit/record"
	"github.com/durward-gateway/durward/modules/app/routes"
	"github.com/durward-gateway/durward/storage"
)

const (
	// auditDays is the number of days for which the audit log is read when a request names no time.
	auditDays = 7
	// maxAuditText is the limit for the text of a filter, in characters: the length that records keep of a name.
	maxAuditText = record.MaxName
)

// These are the words that records contain. A filter for any other word would find nothing, and look as though nothing
// had happened.
var (
	auditDecisions = []string{"allow", "ask", "deny", "off"}
	auditOutcomes  = []string{
		"ok", "denied", "held", "not_connected", "refused", "scope", "upstream_error", "client_gone", "cancelled", "cut", "ended", "limited", "unavailable", "error",
	}
)

// auditView is an event of the audit log: a call's intent and its outcome are one.
type auditView struct {
	ID              string                `json:"id"`
	Time            routes.Instant        `json:"time"`
	Kind            storage.AuditKind     `json:"kind"`
	Event           string                `json:"event"`
	UserID          *string               `json:"user_id"`
	AgentID         *string               `json:"agent_id"`
	Client          *string               `json:"client"`
	Session         *string               `json:"session"`
	ServerID        *string               `json:"mcp_server_id"`
	Server          *string               `json:"server"`
	Method          *string               `json:"method"`
	Tool            *string               `json:"tool"`
	Decision        *string               `json:"decision"`
	Rule            *string               `json:"rule"`
	PolicyID        *string               `json:"policy_id"`
	PolicyRevision  *int                  `json:"policy_revision"`
	ApprovalID      *string               `json:"approval_id"`
	ArgumentsDigest *string               `json:"arguments_digest"`
	Arguments       json.RawMessage       `json:"arguments"`
	Outcome         *string               `json:"outcome"` // null: still running, or it ended with the process
	DurationMS      *float64              `json:"duration_ms"`
	UpstreamStatus  *int                  `json:"upstream_status"`
	TraceID         *string               `json:"trace_id"`
	Shadow          []storage.AuditShadow `json:"shadow"`
	Detail          map[string]any        `json:"detail"`
	Chain           auditChainView        `json:"chain"`
}

// auditChainView names the place of the event's first record in the log.
type auditChainView struct {
	Node     string `json:"node"`
	Segment  string `json:"segment"`
	Sequence int64  `json:"sequence"`
	Hash     string `json:"hash"`
}

func number[T comparable](n T) *T {
	if n == *new(T) {
		return nil
	}
	return &n
}

func viewAudit(r query.Row) auditView {
	v := auditView{
		ID: r.ID, Time: routes.Instant(r.At), Kind: r.Kind, Event: r.Event, UserID: routes.Optional(r.UserID), AgentID: routes.Optional(r.AgentID), Client: routes.Optional(r.Client),
		Session: routes.Optional(r.AuditEntry.Session), ServerID: routes.Optional(r.ServerID), Server: routes.Optional(r.Server), Method: routes.Optional(r.Method), Tool: routes.Optional(r.Tool),
		Decision: routes.Optional(r.Decision), Rule: routes.Optional(r.Rule), PolicyID: routes.Optional(r.PolicyID), PolicyRevision: number(r.PolicyRevision),
		ApprovalID: routes.Optional(r.ApprovalID), ArgumentsDigest: routes.Optional(r.ArgumentsDigest), Arguments: r.Arguments, Outcome: routes.Optional(r.Outcome),
		UpstreamStatus: number(r.UpstreamStatus), TraceID: routes.Optional(r.TraceID), Shadow: r.Shadow, Detail: r.Detail,
		Chain: auditChainView{Node: r.Node, Segment: r.Segment, Sequence: r.Sequence, Hash: r.Hash},
	}
	if v.Shadow == nil {
		v.Shadow = []storage.AuditShadow{}
	}
	if v.Detail == nil {
		v.Detail = map[string]any{}
	}
	if r.Duration > 0 {
		v.DurationMS = number(float64(r.Duration) / float64(time.Millisecond))
	}
	return v
}

// span reads the requested time. The default is the week up to now, or up to the requested end.
func (q *request) span() (from, to time.Time) {
	from, to = q.Instant("from"), q.Instant("to")
	if to.IsZero() {
		to = q.handler.now().UTC().Add(time.Second)
	}
	if from.IsZero() {
		last := q.handler.now().UTC()
		if to.Before(last) {
			last = to
		}
		from = last.AddDate(0, 0, -auditDays)
	}
	return from, to
}

// auditFilter reads the filters of the log.
func (q *request) auditFilter() query.Filter {
	var kinds []storage.AuditKind
	for _, word := range q.Query.Enums("kind", string(storage.AuditCall), string(storage.AuditCredential), string(storage.AuditAdmin),
		string(storage.AuditLogin), string(storage.AuditApproval)) {
		kinds = append(kinds, storage.AuditKind(word))
	}
	f := q.callFilter()
	f.Kinds = kinds
	for name, value := range map[string]*string{"user_id": &f.UserID, "agent_id": &f.AgentID, "policy_id": &f.PolicyID, "approval_id": &f.ApprovalID} {
		*value = q.Query.UUID(name, 0).Value
	}
	f.Session = q.Query.Text("session", validate.Text{Max: maxAuditText}).Value
	return f
}

// listAudit lists the events of the organization, newest first: pages that are counted, or those behind a cursor.
func listAudit(q *request) (any, error) {
	f := q.auditFilter()
	page := q.Page()
	asked, after := q.cursor()
	facets := q.Query.Enums("facets", query.Facets...)
	if err := q.Shape(); err != nil {
		return nil, err
	}
	var v auditPage
	if asked {
		found, err := q.Core.Audit.Search(q.Context(), f, after, page.Limit)
		if err != nil {
			return nil, unread(err)
		}
		v.auditRows = viewFound(found, viewAudit)
	} else {
		found, err := q.Core.Audit.Query(q.Context(), f, page)
		if err != nil {
			return nil, unread(err)
		}
		counted := viewPage(page, found, viewAudit)
		v.Data, v.Pagination = counted.Data, &counted.Pagination
	}
	if len(facets) > 0 {
		counts, err := q.Core.Audit.Facets(q.Context(), f, facets)
		if err != nil {
			return nil, unread(err)
		}
		v.Facets = viewFacets(counts)
	}
	return v, nil
}

// unread turns a failure of the journal into one of the store: the client is told to try again.
func unread(err error) error {
	if errors.Is(err, audit.ErrUnavailable) {
		return errors.Join(storage.ErrUnavailable, err)
	}
	return err
}

// exportAudit writes the organization's records, oldest first, as NDJSON with the hashes that chain them.
func exportAudit(q *request) (any, error) {
	from, to := q.span()
	if err := q.Shape(); err != nil {
		return nil, err
	}
	return routes.Streamed(func(w http.ResponseWriter) error {
		var out *bufio.Writer
		begin := func() {
			h := w.Header()
			h.Set("Content-Type", "application/x-ndjson")
			h.Set("Cache-Control", "no-store")
			h.Set("X-Content-Type-Options", "nosniff")
			w.WriteHeader(http.StatusOK)
			out = bufio.NewWriterSize(w, 32<<10)
		}
		err := q.Core.Audit.Records(q.Context(), q.Organization(), from, to, func(r *storage.AuditRecord) error {
			line, err := json.Marshal(format.Export(r))
			if err != nil {
				return err
			}
			if out == nil {
				begin()
			}
			_, err = out.Write(append(line, '\n'))
			return err
		})
		switch {
		case err == nil && out == nil:
			begin()
		case err != nil && out == nil:
			return unread(err)
		case err != nil:
			panic(http.ErrAbortHandler) // the answer has begun: the only way to mark it incomplete is to cut it off
		}
		return out.Flush()
	}), nil
}
