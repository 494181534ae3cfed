package platformapi

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/durward-gateway/durward/internal/api/validate"
	"github.com/durward-gateway/durward/internal/gateway"
	"github.com/durward-gateway/durward/internal/policy/approval"
	"github.com/durward-gateway/durward/modules/app/routes"
	"github.com/durward-gateway/durward/storage"
)

var (
	errNoApproval      = routes.Refused(gateway.ApprovalNotFound, "Approval not found")
	errNotOwnApprovals = routes.Refused(gateway.Forbidden, "Only administrators and auditors see the held calls of others: leave user_id out")
	errApprovalCaller  = routes.Refused(gateway.Forbidden, "Your own agent made this call, and its policy lets other people decide on it: you cannot")
	errApprovalClient  = routes.Refused(gateway.Forbidden,
		"Decide on the page /approvals, or with a token of a client that the configuration names for it (approval_clients): never with that of the agent that asked, nor without a user")
)

// approvalView is the API's view of a held call. Its contents are for the user who made it, and for those who decide on it
// with a token that may decide; others see the digest.
type approvalView struct {
	ID              string                   `json:"id"`
	Status          storage.ApprovalStatus   `json:"status"`
	UserID          string                   `json:"user_id"`
	AgentID         *string                  `json:"agent_id"`
	Client          string                   `json:"client"`
	ServerID        string                   `json:"mcp_server_id"`
	Tool            string                   `json:"tool"`
	Arguments       json.RawMessage          `json:"arguments"`    // canonical; null: not for this reader, or over
	OtherParams     json.RawMessage          `json:"other_params"` // of the call, canonical; null: none, or as above
	ArgumentsDigest string                   `json:"arguments_digest"`
	PolicyID        string                   `json:"policy_id"`
	PolicyRevision  int                      `json:"policy_revision"`
	Rule            string                   `json:"rule"`
	Channel         storage.ApprovalChannel  `json:"channel"`
	CreatedAt       routes.Instant           `json:"created_at"`
	ExpiresAt       routes.Instant           `json:"expires_at"`
	DecidedAt       *routes.Instant          `json:"decided_at"`
	DecidedVia      *storage.ApprovalChannel `json:"decided_via"`
	DecidedBy       *string                  `json:"decided_by"` // id of the user who decided
	// Approvers lists the people who decide in place of the user. The decider is in each of the lists. Empty: the user decides.
	Approvers [][]string `json:"approvers"`
}

func (q *request) approvalView(a storage.Approval) (approvalView, error) {
	v := approvalView{
		ID: a.ID, Status: a.Status, UserID: a.UserID, AgentID: routes.Optional(a.AgentID), Client: a.Client, ServerID: a.ServerID, Tool: a.Tool,
		ArgumentsDigest: a.ArgumentsDigest, PolicyID: a.PolicyID, PolicyRevision: a.PolicyRevision, Rule: a.Rule, Channel: a.Channel,
		CreatedAt: routes.Instant(a.CreatedAt), ExpiresAt: routes.Instant(a.ExpiresAt), Approvers: routes.List(a.Approvers),
	}
	if !a.DecidedAt.IsZero() {
		at, via := routes.Instant(a.DecidedAt), a.DecidedVia
		v.DecidedAt, v.DecidedVia, v.DecidedBy = &at, &via, routes.Optional(a.DecidedBy)
	}
	decider := q.Call.Party().Decider()
	if a.UserID != decider.UserID && q.Core.Approvals.MayDecide(decider) != nil {
		return v, nil // an agent of theirs, which must not learn what somebody else calls with
	}
	if sees, err := q.Core.Approvals.Sees(q.Context(), decider, &a); err != nil || !sees {
		return v, err
	}
	said, err := q.Core.Approvals.Said(&a)
	v.Arguments, v.OtherParams = said.Arguments, said.Beside
	return v, err
}

// listApprovals lists the caller's held calls; administrators and auditors see those of all users. waiting_for=me lists
// those of others on which the caller decides. As an event stream it goes on to send the page when it changes.
func listApprovals(q *request) (any, error) {
	filter := storage.ApprovalFilter{OrganizationID: q.Organization(), Page: q.Page()}
	if !q.May(routes.Auditor) {
		filter.UserID = q.Call.Caller.UserID
	}
	for _, word := range q.Query.Enums("status", string(storage.ApprovalPending), string(storage.ApprovalApproved),
		string(storage.ApprovalDenied), string(storage.ApprovalExpired), string(storage.ApprovalUsed)) {
		filter.Status = append(filter.Status, storage.ApprovalStatus(word))
	}
	forMe := len(q.Query.Enums("waiting_for", "me")) > 0
	named := q.Query.UUID("user_id", 0)
	if err := q.Shape(); err != nil {
		return nil, err
	}
	if named.Set() {
		if named.Value != q.Call.Caller.UserID && !q.May(routes.Auditor) {
			return nil, errNotOwnApprovals
		}
		filter.UserID = named.Value
	}
	list := func() (storage.Page[storage.Approval], error) { return q.Core.Approvals.Approvals(q.Context(), filter) }
	if forMe { // all of them are pending
		list = func() (storage.Page[storage.Approval], error) {
			return q.Core.Approvals.Foreign(q.Context(), q.Call.Party().Decider(), filter.Page)
		}
	}
	look := func() (any, error) {
		page, err := list()
		if err != nil {
			return nil, err
		}
		views := storage.Page[approvalView]{Total: page.Total}
		for _, a := range page.Items {
			v, err := q.approvalView(a)
			if err != nil {
				return nil, err
			}
			views.Items = append(views.Items, v)
		}
		return viewPage(filter.Page, views, func(v approvalView) approvalView { return v }), nil
	}
	now, err := look()
	if err != nil || !q.Prefers(routes.Events) {
		return now, err
	}
	return q.Follow("approvals", routes.Seen{View: now}, func(context.Context) (routes.Seen, error) {
		now, err := look()
		return routes.Seen{View: now}, err
	}), nil
}

func getApproval(q *request) (any, error) {
	id := q.ID("approval_id")
	if err := q.Shape(); err != nil {
		return nil, err
	}
	a, err := q.Core.Approvals.Approval(q.Context(), q.Organization(), id)
	if err != nil {
		return nil, routes.Missing(err, errNoApproval)
	}
	sees, err := q.Core.Approvals.Sees(q.Context(), q.Call.Party().Decider(), &a)
	if err != nil {
		return nil, err
	}
	if !sees && !q.May(routes.Auditor) {
		return nil, errNoApproval
	}
	return q.approvalView(a)
}

func approveCall(q *request) (any, error) { return q.decideApproval(true) }

func denyCall(q *request) (any, error) { return q.decideApproval(false) }

// decideApproval records the caller's decision. A client that may not decide is refused before anything is looked up,
// as with roles.
func (q *request) decideApproval(approve bool) (any, error) {
	decider := q.Call.Party().Decider()
	if err := q.Core.Approvals.MayDecide(decider); err != nil {
		return nil, errApprovalClient
	}
	id := q.ID("approval_id")
	if err := q.Read(true, func(*validate.Object) {}); err != nil {
		return nil, err
	}
	a, err := q.Core.Approvals.Decide(q.Context(), decider, id, approve)
	switch {
	case errors.Is(err, approval.ErrCaller):
		return nil, errApprovalCaller
	case errors.Is(err, approval.ErrClient):
		return nil, errApprovalClient
	case errors.Is(err, storage.ErrConflict):
		refusal := routes.Conflict("status", "The call was decided already, or its time is over")
		if now, err := q.Core.Approvals.Approval(q.Context(), q.Organization(), id); err == nil {
			refusal.Details["status"] = now.Status
		}
		return nil, refusal
	case err != nil:
		return nil, routes.Missing(err, errNoApproval)
	}
	return q.approvalView(a)
}

// deliveryView is the API's view of an announcement of a held call.
type deliveryView struct {
	ID         string                    `json:"id"` // the webhook-id
	ApprovalID string                    `json:"approval_id"`
	Event      string                    `json:"event"`
	Receiver   string                    `json:"receiver"`
	Recipient  *string                   `json:"recipient"` // of a mail
	State      storage.AnnouncementState `json:"state"`
	Attempts   int                       `json:"attempts"`
	LastError  *string                   `json:"last_error"`
	CreatedAt  routes.Instant            `json:"created_at"`
	NextAt     *routes.Instant           `json:"next_at"`  // of the next attempt; null: there is none
	EndedAt    *routes.Instant           `json:"ended_at"` // null: it waits
}

func viewDelivery(a storage.Announcement) deliveryView {
	v := deliveryView{
		ID: a.ID, ApprovalID: a.ApprovalID, Event: a.Event, Receiver: a.Receiver, Recipient: routes.Optional(a.Recipient), State: a.State,
		Attempts: a.Attempts, LastError: routes.Optional(a.LastError), CreatedAt: routes.Instant(a.CreatedAt), EndedAt: routes.OptionalInstant(a.EndedAt),
	}
	if a.State == storage.AnnouncementWaiting {
		v.NextAt = routes.OptionalInstant(a.NextAt)
	}
	return v
}

// listDeliveries lists the announcements of the organization's held calls.
func listDeliveries(q *request) (any, error) {
	after, limit := q.keyed()
	filter := storage.AnnouncementFilter{
		OrganizationID: q.Organization(), Before: after, Limit: limit + 1, ApprovalID: q.Query.UUID("approval_id", 0).Value,
		State: storage.AnnouncementState(q.Query.Text("state", validate.Text{
			Enum: []string{string(storage.AnnouncementWaiting), string(storage.AnnouncementDelivered), string(storage.AnnouncementFailed)},
		}).Value),
	}
	if err := q.Shape(); err != nil {
		return nil, err
	}
	found, err := q.Core.Store.Announcements(q.Context(), filter)
	if err != nil {
		return nil, err
	}
	return viewKeyed(found, limit, func(a storage.Announcement) string { return a.ID }, viewDelivery), nil
}
