package policy

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	"go.uber.org/zap"

	"github.com/durward-gateway/durward/internal/gateway"
	"github.com/durward-gateway/durward/internal/gateway/tracing"
	"github.com/durward-gateway/durward/internal/mcp/jsonrpc"
	"github.com/durward-gateway/durward/internal/mcp/streams"
	"github.com/durward-gateway/durward/internal/policy/approval"
	"github.com/durward-gateway/durward/internal/policy/engine"
	"github.com/durward-gateway/durward/internal/proxy/handover"
	"github.com/durward-gateway/durward/modules/app"
	"github.com/durward-gateway/durward/storage"
)

// held is a tools/call that waits for its user's decision. Nothing of it has left, and no credential was asked for.
type held struct {
	*request
	message *jsonrpc.Message
	w       http.ResponseWriter
	r       *http.Request
	next    caddyhttp.Handler
	// decision is the one that asks. It is made anew after a wait.
	decision engine.Decision
	// elsewhere lets the call be cancelled at another node; nil: it cannot be.
	elsewhere *approval.Hold
	wait      tracing.Step // of the trace
	logger    *zap.Logger
}

// hold holds a call until it may go on, or tells its client how to go on. Clients that can be asked are asked: by
// elicitation/create on the open stream up to 2025-11-25, by input_required from 2026-07-28 on. Others are sent to the
// gateway's page, and make the same call again.
func (q *request) hold(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler, decision engine.Decision) error {
	own := *q // the held call outlives the judging, which needs no memory otherwise
	h := &held{
		request: &own, message: q.Single(), w: w, r: r, next: next, decision: decision,
		logger: q.handler.logger.With(zap.String("server", q.call.Server.Slug)),
	}
	h.wait = q.call.Trace.Approval()
	defer h.leave()
	if q.Modern() {
		return h.serveModern()
	}
	return h.begin(h.ask)
}

// leave ends the wait for a request that goes on without a decision.
func (h *held) leave() {
	if h.r.Context().Err() != nil {
		h.wait.Waited("client_gone")
		return
	}
	h.wait.Waited("held")
}

// waits notes the approval that the call waits for.
func (h *held) waits(id string) {
	h.call.Records().Held(id)
	h.wait.About(id)
}

// attempts is the number of times that approval for a call is requested again because an equal call used up their
// common approval first.
const attempts = 20

// begin makes the call when it has an approval already, and calls ask otherwise.
func (h *held) begin(ask func(*storage.Approval) error) error {
	for range attempts {
		wanted, err := h.wanted(h.r.Context())
		if err != nil {
			return h.fail(err)
		}
		a, err := h.call.Core.Approvals.Request(h.r.Context(), wanted)
		switch {
		case refusalOf(err) != "":
			h.refuse(refusalOf(err))
			return nil
		case err != nil:
			return h.fail(err)
		case a.Status != storage.ApprovalApproved:
			h.waits(a.ID)
			handover.Attend(h.r.Context()) // an approval must not be used up for a client that has left
			return ask(&a)
		}
		used, err := h.call.Core.Approvals.Take(h.r.Context(), wanted, a.ID)
		switch {
		case err == nil:
			return h.goOn(wanted, &used)
		case !errors.Is(err, storage.ErrNotFound):
			return h.fail(err)
		}
	}
	h.refuse(textTooMany)
	return nil
}

// wanted returns the present call with all facts that an approval is bound to.
func (h *held) wanted(ctx context.Context) (*approval.Call, error) {
	canonical, err := approval.CanonicalArguments(h.message.Arguments)
	if err != nil {
		return nil, err
	}
	definition, err := h.definition(ctx)
	if err != nil {
		return nil, err
	}
	beside, err := approval.CanonicalBeside(h.message.Params, h.Modern())
	if err != nil {
		return nil, err
	}
	account, err := h.account(ctx)
	if err != nil {
		return nil, err
	}
	entry := &h.call.Server.Entry
	c := &approval.Call{
		OrganizationID: h.call.Caller.OrganizationID, UserID: h.call.Caller.UserID, Client: h.call.Caller.Agent, ServerID: h.call.Server.ID,
		Upstream: entry.URL + " " + entry.OAuth.Resource, Account: account, Tool: h.message.Name, Definition: definition, PolicyID: h.decision.PolicyID, PolicyRevision: h.decision.Revision, Rule: h.decision.Rule, Approvers: h.decision.Approvers,
		Arguments: canonical, Beside: beside, Channel: approval.ChannelFor(h.call.Agent, h.decision.OutOfBand),
	}
	if h.call.Agent != nil {
		c.AgentID = h.call.Agent.ID
	}
	return c, nil
}

// account returns the connection that the call would use; "" for none. It is another one once its user has connected
// anew, and the same after a refresh. No credential is opened for it. The server is read again, because the call goes
// to its present state. When it is gone, or the caller may not call it any more, the call is refused at the point that
// asks for its credential.
func (h *held) account(ctx context.Context) (string, error) {
	ended := (*streams.Ended)(nil)
	if err := h.call.RenewServer(ctx); err != nil && !errors.Is(err, storage.ErrNotFound) && !errors.As(err, &ended) {
		return "", err
	}
	c, err := h.call.Core.Store.Connection(ctx, h.call.Account().Key())
	if errors.Is(err, storage.ErrNotFound) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("reading the call's connection: %w", err)
	}
	return c.ID + " " + c.CreatedAt.Format(time.RFC3339Nano), nil
}

// definition returns the hash of the upstream's last description of the tool: a tool that has changed needs another
// approval (attack M13).
func (h *held) definition(ctx context.Context) (string, error) {
	return h.call.Core.Pins.Of(h.call.Server).Definition(ctx, h.message.Name)
}

// renew judges the call again after a wait: the policies may have changed since. It returns "" when the call may still
// be made or asked for, otherwise the message for its model.
func (h *held) renew(ctx context.Context) (refusal string) {
	set, err := h.call.Core.Evaluator.RulesNow(h.call.Party().Asker(), h.call.Known)(ctx)
	if err != nil {
		h.call.Core.LogFailure(h.logger, "judging a held call again", err)
		return textTrouble
	}
	asking, err := h.call.Party().PrincipalNow()(ctx)
	if err != nil {
		h.call.Core.LogFailure(h.logger, "judging a held call again", err)
		return textTrouble
	}
	asked := engine.Call{Principal: asking, Kind: engine.ToolsCall, Name: h.message.Name, Arguments: arguments(h.message), Checked: true}
	agent, err := h.agentNow(ctx)
	if err == nil {
		h.decision, err = h.confirmed(ctx, agent, &asked, set.Decide(ctx, asked))
	}
	if err != nil {
		h.call.Core.LogFailure(h.logger, "judging a held call again", err)
		return textTrouble
	}
	h.call.Judged = h.call.Judged[:0] // only the verdicts with which the call is made count
	if v := h.withheld(ctx, h.message); v.refused() {
		return textDeniedNow
	}
	h.call.Note(asked, h.decision)
	if h.decision.Effect == engine.Deny {
		return textDeniedNow
	}
	return ""
}

// released lets the call go on to the upstream. used is nil when its approval is not needed any more.
func (h *held) released(ctx context.Context, used *storage.Approval) *app.Decision {
	h.decide(ctx)
	d := h.call.Decision
	if used != nil {
		d.ApprovalID = used.ID
		h.wait.About(used.ID)
	}
	h.wait.Waited(string(storage.ApprovalApproved))
	return d
}

// fail answers when the request for approval or the decision cannot be read.
func (h *held) fail(err error) error {
	h.wait.Waited(tracing.Unavailable)
	h.unknowable(h.w, h.r, err)
	return nil
}

func (q *request) unknowable(w http.ResponseWriter, r *http.Request, err error) {
	if r.Context().Err() != nil {
		return // no client waits any more
	}
	q.handler.count(q.call, "unavailable")
	q.call.Core.LogFailure(q.handler.logger, "holding a call for approval", err, zap.String("server", q.call.Server.Slug))
	gateway.RefuseUnasked(w)
}

// These are revisions, by their ways to ask clients.
const (
	formVersion = "2025-06-18" // elicitation in form mode, from here on
	urlVersion  = "2025-11-25" // the only one with -32042
)

// ask asks a client of the revisions before 2026-07-28, in the best way that it knows.
func (h *held) ask(a *storage.Approval) error {
	if h.inBand(a) && h.Session.ElicitForm && h.Version() >= formVersion && h.takesEvents() {
		return h.stream(a)
	}
	h.handler.count(h.call, "held")
	h.Reply(h.w, http.StatusOK, h.pageAnswer(a))
	return nil
}

// pageAnswer returns the answer to a call of the revisions before 2026-07-28 whose user decides on the page.
func (h *held) pageAnswer(a *storage.Approval) []byte {
	if len(a.Approvers) == 0 && h.Session.ElicitURL && h.Version() == urlVersion && h.call.Core.ApprovalPage {
		address := h.call.Core.ApprovalURL(a.ID)
		return jsonrpc.ErrorResponse(h.message.ID, jsonrpc.CodeURLElicitationRequired, textNeeded, map[string]any{
			"elicitations": []any{map[string]any{"mode": "url", "elicitationId": a.ID, "url": address, "message": h.question(a)}},
		})
	}
	return jsonrpc.ToolError(h.message.ID, textPage(h.call.Core, a), false)
}

// inBand reports whether the client may answer for its user.
func (q *request) inBand(a *storage.Approval) bool {
	return len(a.Approvers) == 0 && a.Channel == storage.ChannelInBand && approval.ChannelFor(q.call.Agent, false) == storage.ChannelInBand
}

// takesEvents reports whether the answer may be an event stream. On the transport of 2024-11-05 it never is.
func (h *held) takesEvents() bool {
	return h.Endpoint == nil && strings.Contains(strings.ToLower(strings.Join(h.r.Header.Values("Accept"), ",")), "text/event-stream")
}

// sendToPage gives a client that cannot be asked the address at which its user decides.
func (h *held) sendToPage(a *storage.Approval) {
	h.handler.count(h.call, "held")
	h.write(textPage(h.call.Core, a))
}

// refuse answers that the call was not made and will not be.
func (h *held) refuse(text string) {
	h.wait.Waited(string(storage.ApprovalDenied))
	h.denied()
	h.write(text)
}

func (q *request) denied() {
	q.handler.count(q.call, "denied")
	q.call.Records().Outcome("denied", 0)
}

// write answers with a text that a model reads.
func (h *held) write(text string) {
	h.Reply(h.w, http.StatusOK, jsonrpc.ToolError(h.message.ID, text, h.Modern()))
}

// asker returns the party to which these questions and answers belong.
func (q *request) asker() approval.Asker {
	return approval.Asker{
		Organization: q.call.Caller.OrganizationID, User: q.call.Caller.UserID, Issuer: q.call.ClientIssuer(), Client: q.call.Caller.Agent, Server: q.call.Server.ID,
		Session: q.Session.Upstream,
	}
}
