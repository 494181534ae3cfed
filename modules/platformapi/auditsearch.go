package platformapi

import (
	"github.com/durward-gateway/durward/internal/api/validate"
	"github.com/durward-gateway/durward/internal/audit/query"
	"github.com/durward-gateway/durward/internal/gateway"
	"github.com/durward-gateway/durward/modules/app/routes"
	"github.com/durward-gateway/durward/storage"
)

// auditRows are rows of the log behind a cursor.
type auditRows[T any] struct {
	Data       []T             `json:"data"`
	NextCursor *string         `json:"next_cursor"`   // null: there is nothing older in the span
	Partial    bool            `json:"partial"`       // the search ended at its bound
	From       *routes.Instant `json:"searched_from"` // all rows since then were read; null with pages
}

// auditPage is the answer of the log. Pages that are counted have pagination, others a cursor.
type auditPage struct {
	auditRows[auditView]
	Pagination *pagination `json:"pagination"`
	Facets     *facetsView `json:"facets"`
}

// facetsView holds numbers of events by values.
type facetsView struct {
	Events  int                  `json:"events"`       // that were counted
	Partial bool                 `json:"partial"`      // older events were not
	From    routes.Instant       `json:"counted_from"` // all events since then were counted
	Facets  map[string]facetView `json:"values"`
}

type facetView struct {
	Values []facetValue `json:"values"` // the most frequent first
	Others int          `json:"others"` // events with values that are not listed
}

type facetValue struct {
	Value *string `json:"value"` // null: events without one
	Count int     `json:"count"`
}

func viewFacets(c query.Counts) *facetsView {
	v := &facetsView{Events: c.Events, Partial: c.Partial, From: routes.Instant(c.From), Facets: make(map[string]facetView, len(c.Values))}
	for name, counts := range c.Values {
		one := facetView{Values: make([]facetValue, len(counts)), Others: c.Others[name]}
		for i, count := range counts {
			one.Values[i] = facetValue{routes.Optional(count.Value), count.Events}
		}
		v.Facets[name] = one
	}
	return v
}

func viewFound[T any](found query.Found, view func(query.Row) T) auditRows[T] {
	v := auditRows[T]{Data: make([]T, len(found.Rows)), Partial: found.Partial, From: routes.OptionalInstant(found.From)}
	for i, row := range found.Rows {
		v.Data[i] = view(row)
	}
	if found.Next != nil {
		text := found.Next.String()
		v.NextCursor = &text
	}
	return v
}

// cursor reads the place where a list goes on. An empty one, which is nil, is the beginning.
func (q *request) cursor() (asked bool, after *query.Position) {
	field := q.Query.Text("cursor", validate.Text{Max: query.MaxPosition})
	if field.Value == "" {
		return field.Present, nil
	}
	after, err := query.ParsePosition(field.Value)
	if err != nil {
		q.Query.Report(validate.ValueError, "Value error, give the next_cursor of an answer, or an empty one", "cursor")
	}
	return true, after
}

// callFilter reads the filters that select calls.
func (q *request) callFilter() query.Filter {
	f := query.Filter{OrganizationID: q.Organization()}
	f.From, f.To = q.span()
	f.ServerID = q.Query.UUID("mcp_server_id", 0).Value
	f.Tool = q.Query.Text("tool", validate.Text{Max: maxAuditText}).Value
	f.Decision = q.Query.Text("decision", validate.Text{Enum: auditDecisions}).Value
	f.Outcome = q.Query.Text("outcome", validate.Text{Enum: auditOutcomes}).Value
	return f
}

// ownCallView is a call of the reader's own. It has no shadow: drafts that decide nothing yet are for administrators.
type ownCallView struct {
	ID             string         `json:"id"`
	Time           routes.Instant `json:"time"`
	Event          string         `json:"event"`
	AgentID        *string        `json:"agent_id"`
	Client         *string        `json:"client"`
	Session        *string        `json:"session"`
	ServerID       *string        `json:"mcp_server_id"`
	Server         *string        `json:"server"`
	Method         *string        `json:"method"`
	Tool           *string        `json:"tool"`
	Decision       *string        `json:"decision"`
	Rule           *string        `json:"rule"`
	PolicyID       *string        `json:"policy_id"`
	PolicyRevision *int           `json:"policy_revision"`
	ApprovalID     *string        `json:"approval_id"`
	Outcome        *string        `json:"outcome"` // null: still running, or it ended with the process
	DurationMS     *float64       `json:"duration_ms"`
	UpstreamStatus *int           `json:"upstream_status"`
	TraceID        *string        `json:"trace_id"`
	Detail         map[string]any `json:"detail"`
}

func viewOwnCall(r query.Row) ownCallView {
	v := viewAudit(r)
	return ownCallView{
		ID: v.ID, Time: v.Time, Event: v.Event, AgentID: v.AgentID, Client: v.Client, Session: v.Session, ServerID: v.ServerID, Server: v.Server, Method: v.Method,
		Tool: v.Tool, Decision: v.Decision, Rule: v.Rule, PolicyID: v.PolicyID, PolicyRevision: v.PolicyRevision, ApprovalID: v.ApprovalID, Outcome: v.Outcome,
		DurationMS: v.DurationMS, UpstreamStatus: v.UpstreamStatus, TraceID: v.TraceID, Detail: v.Detail,
	}
}

// listOwnAudit lists the caller's own calls, also those that were refused, newest first. It counts no total: every user may
// ask, and counting reads the log of all users.
func listOwnAudit(q *request) (any, error) {
	f := q.callFilter()
	limit := q.limit()
	_, after := q.cursor()
	if err := q.Shape(); err != nil {
		return nil, err
	}
	if f.UserID, f.Kinds = q.Call.Caller.UserID, []storage.AuditKind{storage.AuditCall}; f.UserID == "" {
		return nil, routes.Refused(gateway.Forbidden, "There is no user whose calls could be shown") // "" would select those of all
	}
	found, err := q.Core.Audit.Search(q.Context(), f, after, limit)
	if err != nil {
		return nil, unread(err)
	}
	return viewFound(found, viewOwnCall), nil
}

// limit reads the number of rows of a list without pages.
func (q *request) limit() int {
	return int(q.Query.Int("limit", validate.Integer{Min: 1, Max: 100}).Or(10))
}

// auditStatusView tells where the audit log stands.
type auditStatusView struct {
	Newest     *auditPlaceView `json:"newest"` // of the organization's records in the store; null: there is none
	Journal    journalView     `json:"journal"`
	Checkpoint *checkpointView `json:"checkpoint"` // the last one of this node; null: there is none yet
}

type auditPlaceView struct {
	Time     routes.Instant `json:"time"`
	Node     string         `json:"node"`
	Segment  string         `json:"segment"`
	Sequence int64          `json:"sequence"`
}

// journalView is the journal of the node that answers, with the records of all organizations.
type journalView struct {
	Node           string `json:"node"`
	Segments       int    `json:"segments"`
	UnshippedBytes int64  `json:"unshipped_bytes"`
	SetAside       int    `json:"set_aside"` // files that need somebody to look at them
}

type checkpointView struct {
	Number int64           `json:"number"`
	Time   *routes.Instant `json:"time"`
}

// auditStatus tells where the audit log of the organization and of this node stands.
func auditStatus(q *request) (any, error) {
	if err := q.Shape(); err != nil {
		return nil, err
	}
	status, newest, err := q.Core.Audit.Status(q.Context(), q.Organization())
	if err != nil {
		return nil, unread(err)
	}
	v := auditStatusView{Journal: journalView{Node: status.Node, Segments: status.Segments, UnshippedBytes: status.Unshipped, SetAside: status.Aside}}
	if newest != nil {
		v.Newest = &auditPlaceView{Time: routes.Instant(newest.At), Node: newest.Node, Segment: newest.Segment, Sequence: newest.Sequence}
	}
	if status.Checkpoint > 0 {
		v.Checkpoint = &checkpointView{Number: status.Checkpoint, Time: routes.OptionalInstant(status.CheckpointAt)}
	}
	return v, nil
}
