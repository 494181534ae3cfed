package session

import (
	"context"
	"errors"
	"net/http"

	"github.com/durward-gateway/durward/internal/api/visible"
	"github.com/durward-gateway/durward/internal/api/webpage"
	"github.com/durward-gateway/durward/internal/policy/approval"
	"github.com/durward-gateway/durward/modules/app/browsers"
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
	// User is the name of the person whose agent asked; "" when that is the person who looks at the page.
	User string
	// Others says who decides in place of the call's user; "" when the user does.
	Others       string
	Rule         string
	Asked, Until moment
	Ago, Left    string // the time since it was asked, and until it ends
	Status       string
	Decided      moment // zero: not decided yet
	Via          string
	By           string // the name of the person who decided; "" when that is the person who looks at the page

	About about
	Hints []hint

	Arguments []webpage.Piece
	Beside    []webpage.Piece // them
	Whole     bool
	Kept      bool // the arguments can be shown
	Size      int  // of the arguments, in bytes
	Digest    string

	Pending bool
	Form    string // token of the form; "": the person who looks at the page cannot decide
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
	foreign, err := v.core.Approvals.Foreign(v.r.Context(), v.user.Decider(), storage.PageRequest{Number: 1, Limit: shownApprovals})
	if err != nil {
		v.core.LogFailure(v.logger, "listing approvals of others", err)
		v.unavailable()
		return
	}
	list := struct {
		Foreign, Calls []held // calls of others that wait for this user, and their own
		More           int
	}{More: found.Total - len(found.Items) + foreign.Total - len(foreign.Items)}
	for i := range foreign.Items {
		list.Foreign = append(list.Foreign, v.describe(v.r.Context(), &foreign.Items[i]))
	}
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
	concerned := false
	if err == nil {
		concerned, err = v.core.Approvals.Sees(v.r.Context(), v.user.Decider(), &a)
	}
	switch {
	case errors.Is(err, storage.ErrNotFound), err == nil && !concerned: // administrators may not decide for others here (R04)
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
	v.sayLink(http.StatusNotFound, "There is no such call", "It may be somebody else's, or long over. Calls of others wait only for people who had the role or group at their last login here: if yours is new, log out and in again.", link{paths.Approvals, textPending})
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
	case errors.Is(err, approval.ErrCaller):
		v.sayLink(http.StatusForbidden, "You cannot decide on this call", "Your own agent made it, and its policy lets other people decide. Nothing was changed.", link{address, "See the call"})
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
	case shown.Pending && shown.Others != "" && shown.User == "":
		title = "This call waits for somebody else"
	case shown.Pending:
		shown.Form = v.core.Logins.Browsers.FormToken(v.user.Session, shown.Address)
	default:
		title = titleOf(a.Status, a.DecidedBy == v.user.UserID)
	}
	frame := v.frame(title)
	frame.Back = webpage.Link{Address: paths.Approvals, Text: textPending}
	v.showIn(approvalPage, status, frame, shown)
}

// titleOf returns the title of the page about a call that does not wait. own reports whether its reader decided.
func titleOf(status storage.ApprovalStatus, own bool) string {
	switch status {
	case storage.ApprovalApproved:
		if own {
			return "You have approved this call"
		}
		return "This call was approved"
	case storage.ApprovalDenied:
		if own {
			return "You have denied this call"
		}
		return "This call was denied"
	case storage.ApprovalUsed:
		return "This call was approved and has run"
	}
	return "The time for this call is over"
}

// describe returns a held call without its arguments.
func (v *visit) describe(ctx context.Context, a *storage.Approval) held {
	h := held{
		Address: paths.Approvals + "/" + a.ID, Server: visible.Text(v.serverName(ctx, a)), Tool: visible.Text(a.Tool),
		Agent: visible.Text(v.agentName(ctx, a)), Client: visible.Text(a.Client), Rule: visible.Text(a.Rule),
		Asked: v.moment(a.CreatedAt), Until: v.moment(a.ExpiresAt), Ago: span(v.now().Sub(a.CreatedAt)), Left: span(a.ExpiresAt.Sub(v.now())),
		Status: string(a.Status), Decided: v.moment(a.DecidedAt),
		Via: string(a.DecidedVia), Pending: a.Status == storage.ApprovalPending,
	}
	if len(a.Approvers) > 0 {
		h.Others = approval.People(a.Approvers)
	}
	if a.UserID != v.user.UserID {
		h.User = v.userName(ctx, a.OrganizationID, a.UserID)
	}
	if a.DecidedBy != "" && a.DecidedBy != v.user.UserID {
		h.By = v.userName(ctx, a.OrganizationID, a.DecidedBy)
	}
	return h
}

// userName returns the name of another user on pages.
func (v *visit) userName(ctx context.Context, organization, id string) string {
	user, err := v.core.Store.User(ctx, organization, id)
	if err != nil {
		return id
	}
	return visible.Text(browsers.NameOf(user))
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
