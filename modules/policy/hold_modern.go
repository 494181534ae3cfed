package policy

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"time"

	"go.uber.org/zap"

	"github.com/durward-gateway/durward/internal/gateway"
	"github.com/durward-gateway/durward/internal/mcp/jsonrpc"
	"github.com/durward-gateway/durward/internal/mcp/streams"
	"github.com/durward-gateway/durward/internal/policy/approval"
	"github.com/durward-gateway/durward/internal/proxy/forward"
	"github.com/durward-gateway/durward/internal/proxy/sse"
	"github.com/durward-gateway/durward/storage"
)

// pageWait is the time for which a client whose user was sent to the page waits for the decision, before it is told to
// ask again.
const pageWait = 30 * time.Second

// serveModern holds a call of revision 2026-07-28: the client asks its user, or sends them to the page, and repeats the
// call with the answer and the state that it got (multi round-trip requests).
func (h *held) serveModern() error {
	retry, err := approval.ReadRetry(h.message.Params)
	if err != nil {
		h.refuseState(h.w)
		return nil
	}
	if !retry.HasState {
		if retry.Others || retry.Answer != approval.Silence {
			h.refuseAnswers()
			return nil
		}
		return h.begin(h.askModern)
	}
	state, err := h.call.Core.Asks.Open(retry.State, h.asker())
	if errors.Is(err, storage.ErrUnavailable) {
		return h.fail(err)
	}
	if err != nil {
		h.refuseState(h.w)
		return nil
	}
	if state.Mode == approval.ModeProof {
		wanted, err := h.wanted(h.r.Context())
		if err != nil {
			return h.fail(err)
		}
		wanted.Round = state.Round
		return h.useUp(wanted, state)
	}
	return h.answered(state, retry)
}

// refuseAnswers refuses a round with answers to questions that nobody asked: the upstream would read them, although the
// user has not seen them.
func (h *held) refuseAnswers() {
	h.handler.count(h.call, "refused")
	gateway.RefuseInputResponses(h.w, h.ID())
}

func (q *request) refuseState(w http.ResponseWriter) {
	q.handler.count(q.call, "refused")
	gateway.RefuseRequestState(w, q.ID())
}

// askModern asks in the best way that the client knows.
func (h *held) askModern(a *storage.Approval) error {
	client := h.message.Client()
	state := approval.State{ApprovalID: a.ID, ExpiresAt: a.ExpiresAt}
	var question map[string]any
	switch {
	case h.inBand(a) && client.ElicitForm:
		state.Mode, question = approval.ModeForm, h.form(a)
	case len(a.Approvers) == 0 && client.ElicitURL && h.call.Core.ApprovalPage:
		address := h.call.Core.ApprovalURL(a.ID)
		state.Mode, question = approval.ModePage, map[string]any{"mode": "url", "url": address, "message": h.question(a)}
	default:
		h.sendToPage(a)
		return nil
	}
	sealed, err := h.call.Core.Asks.Seal(state, h.asker())
	if err != nil {
		return h.fail(err)
	}
	h.handler.count(h.call, "held")
	gateway.WriteBody(h.w, http.StatusOK, response(h.message.ID, map[string]any{
		"resultType":    "input_required",
		"inputRequests": map[string]any{approval.Key: map[string]any{"method": "elicitation/create", "params": question}},
		"requestState":  sealed,
	}))
	return nil
}

// answered handles the round after a question of the gateway.
func (h *held) answered(state approval.State, retry approval.Retry) error {
	switch {
	case retry.Answer == approval.No:
		if err := h.deny(h.r.Context(), state.ApprovalID); err != nil {
			return h.fail(err)
		}
		h.refuse(textSaidNo)
		return nil
	case retry.Others:
		h.refuseAnswers() // the upstream has not been called yet
		return nil
	}
	wanted, err := h.wanted(h.r.Context())
	if err != nil {
		return h.fail(err)
	}
	a, err := h.call.Core.Approvals.Approval(h.r.Context(), wanted.OrganizationID, state.ApprovalID)
	switch {
	case errors.Is(err, storage.ErrNotFound):
		h.refuseState(h.w)
		return nil
	case err != nil:
		return h.fail(err)
	case !bytes.Equal(a.Binding, wanted.Binding()):
		// The call differs from the one in the question, or its policy does: the answer is not about it.
		if err := h.unwrap(state); err != nil {
			h.refuseState(h.w)
			return nil
		}
		h.message = h.Single()
		return h.begin(h.askModern)
	}
	if a.Status == storage.ApprovalPending {
		if retry.Answer == approval.Unable && state.Mode == approval.ModePage {
			h.sendToPage(&a) // nor can it show addresses
			return nil
		}
		if a, err = h.take(a, state.Mode, retry.Answer); err != nil {
			return h.fail(err)
		}
	}
	return h.conclude(&a, state)
}

// take brings a pending approval on by the answer to a question of that mode.
func (h *held) take(a storage.Approval, mode approval.Mode, answer approval.Answer) (storage.Approval, error) {
	switch {
	case answer == approval.Unable:
		return h.call.Core.Approvals.Divert(h.r.Context(), a.OrganizationID, a.UserID, a.ID)
	case mode == approval.ModeForm && answer == approval.Yes && h.inBand(&a):
		return h.accept(a)
	case mode == approval.ModePage:
		return h.waitForPage(a)
	}
	return a, nil
}

// conclude makes the call if it was approved. It asks again as long as there is no decision.
func (h *held) conclude(a *storage.Approval, state approval.State) error {
	switch a.Status {
	case storage.ApprovalPending:
		return h.askModern(a)
	case storage.ApprovalApproved:
		// Policies may have changed while the user was on the page.
		if refusal := h.renew(h.r.Context()); refusal != "" {
			h.refuse(refusal)
			return nil
		}
		wanted, err := h.wanted(h.r.Context())
		if err != nil {
			return h.fail(err)
		}
		return h.useUp(wanted, state)
	}
	h.wait.Waited(string(a.Status))
	h.refuse(textOf(a.Status))
	return nil
}

// deny records that the client's user refused, wherever they were asked, unless there is a decision already. The call
// ends with the refusal in any case.
func (q *request) deny(ctx context.Context, id string) error {
	_, err := q.call.Core.Approvals.DecideInBand(ctx, q.call.Caller.OrganizationID, q.call.Caller.UserID, id, false)
	if errors.Is(err, storage.ErrConflict) || errors.Is(err, storage.ErrNotFound) || errors.Is(err, approval.ErrChannel) {
		return nil
	}
	return err
}

// accept records the approval that the client brought, unless there is a decision already.
func (h *held) accept(a storage.Approval) (storage.Approval, error) {
	decided, err := h.call.Core.Approvals.DecideInBand(h.r.Context(), a.OrganizationID, a.UserID, a.ID, true)
	switch {
	case errors.Is(err, storage.ErrConflict):
		return h.call.Core.Approvals.Approval(h.r.Context(), a.OrganizationID, a.ID)
	case errors.Is(err, approval.ErrChannel):
		return a, nil // answers in band are not allowed any more: this needs another question
	}
	return decided, err
}

// waitForPage gives the user a while at the page.
func (h *held) waitForPage(a storage.Approval) (storage.Approval, error) {
	ctx, done := h.call.Streams().Open(h.r.Context(), streams.Call)
	defer done()
	ctx, cancel := context.WithTimeout(ctx, pageWait)
	defer cancel()
	decided, err := h.call.Core.Approvals.Wait(ctx, &a)
	if errors.Is(err, storage.ErrTooManyPending) || ctx.Err() != nil && h.r.Context().Err() == nil {
		return a, nil
	}
	return decided, err
}

// useUp takes the approval and lets the call go on, without the gateway's members: of the calls that bring the same
// state exactly one gets this far.
func (h *held) useUp(wanted *approval.Call, state approval.State) error {
	if err := h.unwrap(state); err != nil {
		h.refuseState(h.w)
		return nil
	}
	h.message = h.Single()
	used, err := h.call.Core.Approvals.Take(h.r.Context(), wanted, state.ApprovalID)
	switch {
	case errors.Is(err, storage.ErrNotFound):
		h.refuse(textSpent)
		return nil
	case err != nil:
		return h.fail(err)
	}
	return h.goOn(wanted, &used)
}

// goOn lets an approved call go on.
func (h *held) goOn(wanted *approval.Call, used *storage.Approval) error {
	decision := h.released(h.r.Context(), used)
	if h.Modern() {
		ctx, carried := h.r.Context(), false
		decision.EditAnswer = func(answer *forward.Response) error {
			return h.editAnswer(answer, func(message []byte) []byte {
				if carried {
					return nil // a call has one answer, and each round was recorded
				}
				message = h.carry(ctx, message, wanted, used)
				carried = message != nil
				return message
			})
		}
	}
	return h.next.ServeHTTP(h.w, h.r)
}

// unwrap replaces the client's members by those that the upstream is to see.
func (q *request) unwrap(state approval.State) error {
	body, err := approval.Unwrap(q.Body, state)
	if err != nil {
		return err
	}
	return q.ReplaceBody(body)
}

// allowed reports whether a call that needs no approval goes on. It may have needed one in the round before, if its
// policy has changed since: then the gateway's state is removed from it. A call that its user refused is not made in
// any case, and a state of another call is refused.
func (q *request) allowed(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) bool {
	if m.Method != "tools/call" || !q.Modern() {
		return true
	}
	retry, err := approval.ReadRetry(m.Params)
	if err != nil || !q.call.Core.Asks.IsState(retry.State) {
		return true // the upstream's own, which passes unchanged
	}
	state, err := q.call.Core.Asks.Open(retry.State, q.asker())
	if errors.Is(err, storage.ErrUnavailable) {
		q.unknowable(w, r, err)
		return false
	}
	if err != nil {
		q.refuseState(w)
		return false
	}
	said, err := q.saidNo(r.Context(), state, retry.Answer)
	switch {
	case err != nil:
		q.unknowable(w, r, err)
		return false
	case said:
		q.denied()
		q.Reply(w, http.StatusOK, jsonrpc.ToolError(m.ID, textSaidNo, true))
		return false
	case q.unwrap(state) != nil:
		q.refuseState(w)
		return false
	}
	return true
}

// saidNo reports whether the user refused a call, here or on the page.
func (q *request) saidNo(ctx context.Context, state approval.State, answer approval.Answer) (bool, error) {
	if state.Mode == approval.ModeProof {
		return false, nil // they approved, and the client's answer is for the upstream
	}
	if answer == approval.No {
		return true, q.deny(ctx, state.ApprovalID)
	}
	a, err := q.call.Core.Approvals.Approval(ctx, q.call.Caller.OrganizationID, state.ApprovalID)
	if errors.Is(err, storage.ErrNotFound) {
		return false, nil // the policy that asked is gone, and so is its question
	}
	return a.Status == storage.ApprovalDenied, err
}

// carry puts the right to one more round into an answer in which the upstream asks for input, so that the user is asked
// only once for the call. It returns nil when the answer asks for no input.
func (h *held) carry(ctx context.Context, message []byte, wanted *approval.Call, used *storage.Approval) []byte {
	upstream, has, asks := approval.Asks(message, h.message.ID)
	if !asks {
		return nil
	}
	next, round, err := h.call.Core.Approvals.Prolong(ctx, used, wanted)
	if err == nil {
		var sealed string
		sealed, err = h.call.Core.Asks.Seal(approval.State{
			Mode: approval.ModeProof, ApprovalID: next, Round: round, ExpiresAt: time.Now().Add(approval.UseFor),
			Upstream: upstream, HasUpstream: has,
		}, h.asker())
		if err == nil {
			message, err = approval.Wrap(message, sealed)
		}
	}
	if err != nil {
		h.logger.Error("carrying an approval to the next round", zap.Error(err))
		return jsonrpc.ToolError(h.message.ID, textTrouble, true)
	}
	return message
}

// editAnswer lets edit change the messages of an answer: a whole one, or the events of a stream.
func (h *held) editAnswer(answer *forward.Response, edit func([]byte) []byte) error {
	limit := h.call.Core.Sizes.MCPEvent()
	switch answer.Kind {
	case forward.Events:
		answer.Body = sse.NewRewriter(answer.Body, int(limit), func(data []byte) ([]byte, bool) {
			changed := edit(data)
			return changed, changed != nil
		})
	case forward.JSON:
		text, err := answer.ReadAll(limit)
		if err != nil {
			return err
		}
		if changed := edit(text); changed != nil {
			text = changed
		}
		answer.SetBody(text)
	}
	return nil
}
