package platformapi

import (
	"encoding/json"
	"errors"

	"github.com/durward-gateway/durward/internal/approval"
	"github.com/durward-gateway/durward/internal/validate"
	"github.com/durward-gateway/durward/modules/app"
	"github.com/durward-gateway/durward/storage"
)

var (
	errNoApproval     = refused(app.ApprovalNotFound, "Approval not found")
	errApprovalClient = refused(app.Forbidden,
		"Decide on the page /approvals, or with a token of a client that the configuration names for it (approval_clients): never with that of the agent that asked, nor without a user")
)

// approvalView is a held call as the API shows it. Arguments are for the user who made the call; others see the digest.
type approvalView struct {
	ID              string                   `json:"id"`
	Status          storage.ApprovalStatus   `json:"status"`
	UserID          string                   `json:"user_id"`
	AgentID         *string                  `json:"agent_id"`
	Client          string                   `json:"client"`
	ServerID        string                   `json:"mcp_server_id"`
	Tool            string                   `json:"tool"`
	Arguments       json.RawMessage          `json:"arguments"` // canonical; null: not for this reader
	ArgumentsDigest string                   `json:"arguments_digest"`
	PolicyID        string                   `json:"policy_id"`
	PolicyRevision  int                      `json:"policy_revision"`
	Rule            string                   `json:"rule"`
	Channel         storage.ApprovalChannel  `json:"channel"`
	CreatedAt       instant                  `json:"created_at"`
	ExpiresAt       instant                  `json:"expires_at"`
	DecidedAt       *instant                 `json:"decided_at"`
	DecidedVia      *storage.ApprovalChannel `json:"decided_via"`
}

func (q *request) approvalView(a storage.Approval) (approvalView, error) {
	v := approvalView{
		ID: a.ID, Status: a.Status, UserID: a.UserID, AgentID: optional(a.AgentID), Client: a.Client, ServerID: a.ServerID, Tool: a.Tool,
		ArgumentsDigest: a.ArgumentsDigest, PolicyID: a.PolicyID, PolicyRevision: a.PolicyRevision, Rule: a.Rule, Channel: a.Channel,
		CreatedAt: instant(a.CreatedAt), ExpiresAt: instant(a.ExpiresAt),
	}
	if !a.DecidedAt.IsZero() {
		at, via := instant(a.DecidedAt), a.DecidedVia
		v.DecidedAt, v.DecidedVia = &at, &via
	}
	if a.UserID != q.call.Caller.UserID {
		return v, nil
	}
	arguments, err := q.core.Approvals.Arguments(&a)
	v.Arguments = arguments
	return v, err
}

// listApprovals lists the caller's held calls; an administrator sees those of all users.
func listApprovals(q *request) (any, error) {
	filter := storage.ApprovalFilter{OrganizationID: q.organization(), Page: q.page()}
	if !q.call.Caller.Admin {
		filter.UserID = q.call.Caller.UserID
	}
	for _, word := range q.query.Enums("status", string(storage.ApprovalPending), string(storage.ApprovalApproved),
		string(storage.ApprovalDenied), string(storage.ApprovalExpired), string(storage.ApprovalUsed)) {
		filter.Status = append(filter.Status, storage.ApprovalStatus(word))
	}
	if err := q.shape(); err != nil {
		return nil, err
	}
	page, err := q.core.Approvals.Approvals(q.context(), filter)
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

func getApproval(q *request) (any, error) {
	id := q.id("approval_id")
	if err := q.shape(); err != nil {
		return nil, err
	}
	a, err := q.core.Approvals.Approval(q.context(), q.organization(), id)
	if err != nil {
		return nil, missing(err, errNoApproval)
	}
	if a.UserID != q.call.Caller.UserID && !q.call.Caller.Admin {
		return nil, errNoApproval
	}
	return q.approvalView(a)
}

func approveCall(q *request) (any, error) { return q.decideApproval(true) }

func denyCall(q *request) (any, error) { return q.decideApproval(false) }

// decideApproval records the caller's word. A client that may not decide is told so before anything is looked up, as with
// roles.
func (q *request) decideApproval(approve bool) (any, error) {
	decider := q.call.Caller.Decider()
	if err := q.core.Approvals.MayDecide(decider); err != nil {
		return nil, errApprovalClient
	}
	id := q.id("approval_id")
	if err := q.read(true, func(*validate.Object) {}); err != nil {
		return nil, err
	}
	a, err := q.core.Approvals.Decide(q.context(), decider, id, approve)
	switch {
	case errors.Is(err, approval.ErrClient):
		return nil, errApprovalClient
	case errors.Is(err, storage.ErrConflict):
		return nil, conflict("status", "The call was decided already, or its time is over")
	case err != nil:
		return nil, missing(err, errNoApproval)
	}
	return q.approvalView(a)
}
