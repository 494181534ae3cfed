package policy

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"sync"

	"github.com/durward-gateway/durward/internal/gateway"
	"github.com/durward-gateway/durward/internal/gateway/inbound"
	"github.com/durward-gateway/durward/internal/mcp/jsonrpc"
	"github.com/durward-gateway/durward/internal/policy/approval"
	"github.com/durward-gateway/durward/storage"
)

// answered removes a client's response to a question of the gateway from the traffic: the upstream never asked. It is
// valid only from the session that was asked, and once (attack M18). It may come over any connection, to any process
// with this store and key.
func (q *request) answered(w http.ResponseWriter, r *http.Request, m *jsonrpc.Message) {
	var id string
	asked, err := "", json.Unmarshal(m.ID, &id)
	if err == nil {
		asked, err = q.call.Core.Asks.Answered(id, q.asker())
	}
	if err == nil {
		err = q.record(r.Context(), asked, approval.ReadAnswer(m.Result))
	} else if !errors.Is(err, storage.ErrUnavailable) {
		err = approval.ErrState
	}
	switch {
	case err == nil, errors.Is(err, storage.ErrConflict): // too late, or decided on the page already: there is nothing to report to the client
		q.handler.count(q.call, "ok")
		w.WriteHeader(http.StatusAccepted)
	case errors.Is(err, approval.ErrState), errors.Is(err, storage.ErrNotFound), errors.Is(err, approval.ErrChannel):
		q.handler.count(q.call, "refused")
		gateway.RefuseUnawaited(w)
	default:
		q.handler.count(q.call, "unavailable")
		q.call.Core.LogFailure(q.handler.logger, "recording the answer to a held call", err)
		gateway.RefuseAnswerUnrecorded(w)
	}
}

// record keeps a client's answer to the question about an approval. Some clients declare elicitation but answer with an
// error, such as method not found. Then no user was asked, and only the page remains.
func (q *request) record(ctx context.Context, id string, answer approval.Answer) error {
	organization, user := q.call.Caller.OrganizationID, q.call.Caller.UserID
	switch {
	case answer == approval.Unable:
		_, err := q.call.Core.Approvals.Divert(ctx, organization, user, id)
		return err
	case answer == approval.Yes && approval.ChannelFor(q.call.Agent, false) != storage.ChannelInBand:
		return approval.ErrChannel // it was asked, and may not be asked any more
	}
	_, err := q.call.Core.Approvals.DecideInBand(ctx, organization, user, id, answer == approval.Yes)
	return err
}

// heldCalls holds the calls of this process whose streams are open, so that clients can cancel them.
var heldCalls cancellable

// heldKey names a call of a session.
type heldKey struct {
	approval.Asker
	id string // jsonrpc.IDValue
}

// cancellable is a register of calls by their ids.
type cancellable struct {
	mu   sync.Mutex
	open map[heldKey]map[*context.CancelCauseFunc]struct{}
}

var errTakenBack = errors.New("the client has taken the call back")

// hold returns a context that ends when the client cancels the call.
func (c *cancellable) hold(ctx context.Context, key heldKey) (_ context.Context, forget func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open == nil {
		c.open = make(map[heldKey]map[*context.CancelCauseFunc]struct{})
	}
	if c.open[key] == nil {
		c.open[key] = make(map[*context.CancelCauseFunc]struct{})
	}
	c.open[key][&cancel] = struct{}{}
	return ctx, func() {
		cancel(nil)
		c.mu.Lock()
		defer c.mu.Unlock()
		if delete(c.open[key], &cancel); len(c.open[key]) == 0 {
			delete(c.open, key)
		}
	}
}

// cancel ends the hold of a call, and reports whether the call is held here.
func (c *cancellable) cancel(key heldKey) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for cancel := range c.open[key] {
		(*cancel)(errTakenBack)
	}
	return len(c.open[key]) > 0
}

// takenBack ends the holds of calls that their client cancels (notifications/cancelled), at any node: a later approval
// must not make them. The notification also goes on to the upstream, which does not know a held call. It goes on even
// when the store cannot be reached: it may be about a running call.
func (q *request) takenBack(ctx context.Context) {
	if q.Session.Upstream == "" {
		return
	}
	var elsewhere []string
	for i := range q.Message.Messages {
		if id, ok := inbound.TakenBack(&q.Message.Messages[i]); ok && !heldCalls.cancel(heldKey{q.asker(), id}) {
			elsewhere = append(elsewhere, id)
		}
	}
	if elsewhere == nil {
		return
	}
	if err := q.call.Core.Approvals.TakeBack(ctx, q.asker(), elsewhere); err != nil {
		q.call.Core.LogFailure(q.handler.logger, "taking back calls that another node may hold", err)
	}
}
