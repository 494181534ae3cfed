package session

import (
	"context"
	"errors"
	"net/http"

	"github.com/durward-gateway/durward/internal/api/visible"
	"github.com/durward-gateway/durward/internal/api/webpage"
	"github.com/durward-gateway/durward/internal/policy/approval"
	"github.com/durward-gateway/durward/modules/app/paths"
	"github.com/durward-gateway/durward/storage"
)

const (
	// shownArguments is the length of a call's arguments that a page shows, in bytes of its layout (M17).
	shownArguments = 8 << 10
	// shownApprovals is the number of waiting calls that the list shows. A user has at most twenty with each client.
	shownApprovals = 100
)

// These are the values of the form's buttons.
const (
	fieldDecision = "decision"
	saysYes       = "approve"
	saysNo        = "deny"
)

// held is a held call in the form of its page. In all texts of an agent, an upstream or an operator, hidden characters
// are made visible.
type held struct {
	Address       string
	Server, Tool  string
	Agent, Client string
	Rule          string
	Asked, Until  moment
	Ago, Left     string // the time since it was asked, and until it ends
	Status        string
	Decided       moment // zero: not decided yet
	Via           string

	About about
	Hints []hint

	Arguments []webpage.Piece
	Beside    []webpage.Piece // them
	Whole     bool
	Kept      bool // the arguments can be shown
	Size      int  // of the arguments, in bytes
	Digest    string

	Pending bool
	Form    string // token of the form
}

// listApprovals shows the calls that wait for the user's decision.
func (v *visit) listApprovals() {
	if !v.loggedIn() {
		return
	}
	found, err := v.core.Approvals.Approvals(v.r.Context(), storage.ApprovalFilter{
		OrganizationID: v.user.OrganizationID, UserID: v.user.UserID, Status: []storage.ApprovalStatus{storage.ApprovalPending},
		Page: storage.PageRequest{Number: 1, Limit: shownApprovals},
	})
	if err != nil {
		v.core.LogFailure(v.logger, "listing approvals", err)
		v.unavailable()
		return
	}
	list := struct {
		Calls []held
		More  int
	}{More: found.Total - len(found.Items)}
	for i := range found.Items {
		list.Calls = append(list.Calls, v.describe(v.r.Context(), &found.Items[i]))
	}
	v.show(approvalsPage, http.StatusOK, textPending, list)
}

// approval shows one held call, or records the user's decision on it.
func (v *visit) approval(id string) {
	if !v.loggedIn() {
		return
	}
	a, err := v.core.Approvals.Approval(v.r.Context(), v.user.OrganizationID, id)
	switch {
	case errors.Is(err, storage.ErrNotFound), err == nil && a.UserID != v.user.UserID: // administrators may not decide for others here (R04)
		v.noApproval()
		return
	case err != nil:
		v.core.LogFailure(v.logger, "reading an approval", err)
		v.unavailable()
		return
	}
	if v.r.Method == http.MethodPost {
		v.decide(a.ID)
		return
	}
	v.showApproval(http.StatusOK, "Approve this tool call?", &a)
}

func (v *visit) noApproval() {
	v.sayLink(http.StatusNotFound, "There is no such call", "It may be somebody else's, or long over.", link{paths.Approvals, textPending})
}

func (v *visit) decide(id string) {
	address := paths.Approvals + "/" + id
	form, ok := v.form(address)
	if !ok {
		return
	}
	said := form[fieldDecision]
	if len(said) != 1 || (said[0] != saysYes && said[0] != saysNo) {
		v.sayLink(http.StatusBadRequest, titleForged, "It says neither yes nor no.", link{address, "Open the page anew"})
		return
	}
	_, err := v.core.Approvals.Decide(v.r.Context(), v.user.Decider(), id, said[0] == saysYes)
	switch {
	case err == nil:
		webpage.Redirect(v.w, address)
	case errors.Is(err, storage.ErrNotFound):
		v.noApproval()
	case errors.Is(err, approval.ErrClient):
		v.sayLink(http.StatusForbidden, "You cannot decide here", "The operator wants calls to be decided with another client.", link{paths.Approvals, textPending})
	case errors.Is(err, storage.ErrConflict):
		v.sayLink(http.StatusConflict, "The call does not wait any more", "It was decided already, or its time is over.", link{address, "See what became of it"})
	default:
		v.core.LogFailure(v.logger, "deciding on a call", err)
		v.unavailable()
	}
}

func (v *visit) showApproval(status int, title string, a *storage.Approval) {
	said, err := v.core.Approvals.Said(a)
	if err != nil {
		v.core.LogFailure(v.logger, "showing a held call", err)
		v.unavailable()
		return
	}
	shown := v.describe(v.r.Context(), a)
	var all bool
	shown.Arguments, shown.Whole = webpage.JSON(said.Arguments, shownArguments)
	shown.Beside, all = webpage.JSON(said.Beside, shownArguments)
	shown.Whole = shown.Whole && all
	shown.Kept, shown.Size, shown.Digest = said.Arguments != nil, len(said.Arguments), a.ArgumentsDigest
	shown.About, shown.Hints = v.aboutTool(v.r.Context(), a)
	switch {
	case shown.Pending:
		shown.Form = v.core.Logins.Browsers.FormToken(v.user.Session, shown.Address)
	default:
		title = titleOf(a.Status)
	}
	frame := v.frame(title)
	frame.Back = webpage.Link{Address: paths.Approvals, Text: textPending}
	v.showIn(approvalPage, status, frame, shown)
}

func titleOf(status storage.ApprovalStatus) string {
	switch status {
	case storage.ApprovalApproved:
		return "You have approved this call"
	case storage.ApprovalDenied:
		return "You have denied this call"
	case storage.ApprovalUsed:
		return "This call was approved and has run"
	}
	return "The time for this call is over"
}

// describe returns a held call without its arguments.
func (v *visit) describe(ctx context.Context, a *storage.Approval) held {
	return held{
		Address: paths.Approvals + "/" + a.ID, Server: visible.Text(v.serverName(ctx, a)), Tool: visible.Text(a.Tool),
		Agent: visible.Text(v.agentName(ctx, a)), Client: visible.Text(a.Client), Rule: visible.Text(a.Rule),
		Asked: v.moment(a.CreatedAt), Until: v.moment(a.ExpiresAt), Ago: span(v.now().Sub(a.CreatedAt)), Left: span(a.ExpiresAt.Sub(v.now())),
		Status: string(a.Status), Decided: v.moment(a.DecidedAt),
		Via: string(a.DecidedVia), Pending: a.Status == storage.ApprovalPending,
	}
}

func (v *visit) serverName(ctx context.Context, a *storage.Approval) string {
	server, err := v.core.Store.Server(ctx, a.OrganizationID, a.ServerID)
	if err != nil {
		return a.ServerID
	}
	return server.Name + " (" + server.Slug + ")"
}

// agentName returns the name under which an administrator registered the client; "" for an unregistered one.
func (v *visit) agentName(ctx context.Context, a *storage.Approval) string {
	if a.AgentID == "" {
		return ""
	}
	agent, err := v.core.Store.Agent(ctx, a.OrganizationID, a.AgentID)
	if err != nil {
		return ""
	}
	return agent.Application.Name
}
