package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/durward-gateway/durward/internal/audit"
	"github.com/durward-gateway/durward/internal/audit/format"
	"github.com/durward-gateway/durward/internal/audit/record"
	"github.com/durward-gateway/durward/internal/credential/connection"
	"github.com/durward-gateway/durward/modules/app/settings"
	"github.com/durward-gateway/durward/storage"
)

// callAudit holds the audit log's facts about a call so far.
type callAudit struct {
	trail      *audit.Trail
	intents    []string // ids of the records that were written before the credential left
	intent     [1]string
	refused    error // why the call must not be made
	started    time.Time
	outcome    string
	status     int
	approvalID string
	header     http.Header // with which a stream on /sse was asked for
}

// Records keeps the audit log's records of one call.
type Records struct{ call *Call }

// Records returns the keeper of the call's records.
func (c *Call) Records() Records { return Records{c} }

// Outcomes of calls that durward_policy did not let pass.
const (
	outcomeDenied = "denied"
	outcomeHeld   = "held"
)

// Intent records that the call is about to leave with the caller's credential: the request, the caller, and the
// rule that allowed it. It must be called before a credential leaves. On an error the call could not be recorded and
// must not be made. The error wraps storage.ErrUnavailable.
func (r Records) Intent(ctx context.Context) error {
	c := r.call
	if len(c.audit.intents) > 0 || c.audit.refused != nil {
		return c.audit.refused
	}
	a := c.Core.Audit
	if a == nil {
		return nil
	}
	t, err := a.Open() //nolint:contextcheck // what is opened outlives the request
	c.audit.trail = t
	c.audit.started = time.Now()
	c.audit.intents = c.audit.intent[:0]
	for i := 0; err == nil && (i == 0 || i < len(c.Judged)); i++ {
		var e storage.AuditEntry
		c.auditEntry(ctx, i, &e)
		if err = t.Append(c.Caller.OrganizationID, &e); err == nil {
			c.audit.intents = append(c.audit.intents, e.ID)
		}
	}
	if err == nil || !a.Required(c.traffic()) {
		return nil
	}
	c.audit.outcome = "unavailable"
	c.audit.refused = fmt.Errorf("recording a call: %w", errors.Join(storage.ErrUnavailable, err))
	return c.audit.refused
}

// Outcome notes the result of the call: an outcome word of the gateway, and the status of the upstream's answer, 0
// when there was none. The result is recorded when the request ends.
func (r Records) Outcome(outcome string, upstreamStatus int) {
	c := r.call
	c.audit.outcome, c.audit.status = outcome, upstreamStatus
}

// Held notes the approval that the call waits for.
func (r Records) Held(approvalID string) { r.call.audit.approvalID = approvalID }

// Finish records the end of the call. It records the outcome of the intent that was recorded before the credential
// left. When a call went no further than the policies or its missing credential, it records the whole call.
// durward_auth calls it when a request ends.
func (r Records) Finish(ctx context.Context) {
	c := r.call
	if c.Core.Audit == nil || c.Caller == nil || c.Server == nil || (c.Inbound == nil && c.Events == nil) {
		return
	}
	if len(c.audit.intents) == 0 {
		if t, err := c.Core.Audit.Open(); err == nil { //nolint:contextcheck // what is opened outlives the request
			c.recordRefusal(ctx, t)
		}
		return // an error was told when it was opened
	}
	for _, id := range c.audit.intents {
		o := storage.AuditOutcome{
			Call: id, Outcome: cmp.Or(c.audit.outcome, "error"), Duration: time.Since(c.audit.started), UpstreamStatus: c.audit.status,
		}
		o.At = c.audit.started.Add(o.Duration).UTC() // never before the intent, whatever the clock does
		c.audit.trail.Outcome(c.Caller.OrganizationID, &o)
	}
}

func (c *Call) recordRefusal(ctx context.Context, t *audit.Trail) {
	now := time.Now()
	made := !c.audit.started.IsZero() && c.audit.refused == nil // it went on without a record (best_effort)
	if c.audit.started.IsZero() {
		c.audit.started = now
	}
	for i := 0; i == 0 || i < len(c.Judged); i++ {
		var e storage.AuditEntry
		c.auditEntry(ctx, i, &e)
		if made {
			e.Duration, e.UpstreamStatus = now.Sub(c.audit.started), c.audit.status
		}
		e.Outcome = c.outcome()
		t.Later(c.Caller.OrganizationID, &e)
	}
}

// outcome returns the result of a call that has ended.
func (c *Call) outcome() string {
	switch {
	case c.audit.outcome != "":
		return c.audit.outcome
	case c.Server == nil:
		return "" // it is no call to a server
	case c.Decision == nil && c.audit.approvalID != "":
		return outcomeHeld
	case c.Decision == nil:
		return outcomeDenied
	}
	return "refused"
}

func (c *Call) traffic() string {
	if c.Events != nil {
		return settings.AuditSSE
	}
	return settings.AuditMCP
}

// auditEntry fills an empty e with the facts of the call and of its i-th judged message.
func (c *Call) auditEntry(ctx context.Context, i int, e *storage.AuditEntry) {
	e.At = c.audit.started.UTC()
	e.Kind, e.Event = storage.AuditCall, "decision"
	e.UserID, e.Client, e.Session = c.Caller.UserID, c.Caller.Agent, c.Log.Session
	e.ServerID, e.Server, e.Method = c.Server.ID, c.Server.Slug, c.Log.Method
	e.ApprovalID, e.Decision = c.audit.approvalID, "allow"
	if c.Agent != nil {
		e.AgentID = c.Agent.ID
	}
	var arguments []byte
	if c.Inbound != nil {
		e.TraceID = TraceID(ctx, c.Inbound.HTTP.Header)
		e.Method, e.Tool, arguments = c.Inbound.Named()
	} else {
		e.TraceID, e.Method = TraceID(ctx, c.audit.header), "sse/stream"
		arguments = c.Events.Filters()
	}
	switch {
	case c.Decision == nil:
		e.Decision = "deny"
	case c.Decision.Off:
		e.Decision = "off"
		c.addRoles(e)
	case c.Decision.ApprovalID != "":
		e.ApprovalID = c.Decision.ApprovalID
	}
	if i < len(c.Judged) {
		judged := &c.Judged[i]
		e.Tool, e.Decision = judged.Call.Name, judged.Decision.Effect.String()
		e.Rule, e.PolicyID, e.PolicyRevision = judged.Decision.Rule, judged.Decision.PolicyID, judged.Decision.Revision
		if judged.Call.Arguments != nil || len(c.Judged) > 1 {
			arguments = judged.Call.Arguments
		}
		if e.Method == "" {
			e.Method = judged.Call.Kind.String()
		}
		c.addRoles(e)
		for _, s := range judged.Decision.Shadow {
			e.Shadow = append(e.Shadow, storage.AuditShadow{PolicyID: s.PolicyID, Revision: s.Revision, Decision: s.Effect.String(), Rule: s.Rule})
		}
	}
	if c.Caller.Key != nil {
		record.Add(e, "api_key_id", c.Caller.Key.ID)
	}
	switch kind := connection.KindOf(&c.Server.Entry); {
	case kind.ForItself():
		record.Add(e, "service_account", true) // the upstream sees the server's client, and nothing of the caller
	case kind == storage.ProviderTokenExchange:
		if issuer := c.bearer.IdentityProvider(); issuer != "" {
			record.Add(e, "vouched_by", issuer) // its token is the call's credential, or it gave what that was got with
		}
	}
	record.ClipNames(e)
	format.Name(e, arguments)
	c.Core.Audit.AddArguments(e, arguments)
}

// maxKeptRoles limits the caller's roles and groups in one record, in bytes.
const maxKeptRoles = 4 << 10

// addRoles notes the roles and groups that the policies saw, so that another policy can be tried on the call later.
func (c *Call) addRoles(e *storage.AuditEntry) {
	if c.bearer.RolesUnknown() {
		record.Add(e, "roles_unknown", true)
		return
	}
	size := c.bearer.RolesSize()
	if size > maxKeptRoles {
		record.Add(e, "roles_bytes", size)
		return
	}
	e.Roles, e.Groups = known(c.Caller.Roles), known(c.Caller.Groups)
}

// known returns a list that is written even when it is empty.
func known(names []string) []string {
	if names == nil {
		return []string{}
	}
	return names
}
