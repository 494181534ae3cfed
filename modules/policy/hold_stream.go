package policy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/durward-gateway/durward/internal/mcp/jsonrpc"
	"github.com/durward-gateway/durward/internal/mcp/streams"
	"github.com/durward-gateway/durward/internal/policy/engine"
	"github.com/durward-gateway/durward/internal/proxy/sse"
	"github.com/durward-gateway/durward/internal/strictjson"
	"github.com/durward-gateway/durward/storage"
)

// writeTime is the longest time for a client to receive a piece that is written to it.
const writeTime = 30 * time.Second

// stream asks the client's user on the call's own event stream (elicitation/create, from 2025-06-18), and lets the answer
// to the call come on the same stream.
func (h *held) stream(a *storage.Approval) error {
	ctx, done := h.call.Streams().Open(h.r.Context(), streams.Call)
	defer done()
	if reason, ended := streams.EndedFor(ctx); ended {
		h.call.Streams().WriteEnded(h.w, h.r, reason)
		return nil
	}
	ctx, forget := heldCalls.hold(ctx, heldKey{h.asker(), jsonrpc.IDValue(h.message.ID)})
	defer forget()
	end, err := h.holdEverywhere(ctx)
	if err != nil {
		return h.fail(err)
	}
	defer end()

	header := h.w.Header()
	header.Set("Content-Type", "text/event-stream")
	header.Set("Cache-Control", "no-cache, no-transform")
	header.Set("X-Accel-Buffering", "no")
	h.w.WriteHeader(http.StatusOK)
	client := newHeldStream(h.w)
	for range attempts {
		if err := h.askOn(client, a); err != nil {
			h.handler.count(h.call, "client_gone") // the request for approval stays
			return nil
		}
		decided, ok := h.await(ctx, client, a)
		if !ok {
			return nil
		}
		if decided.Status == storage.ApprovalPending {
			h.handler.count(h.call, "held")
			_ = client.message(h.pageAnswer(&decided)) // the client could not ask
			return nil
		}
		if decided.Status == storage.ApprovalDenied || decided.Status == storage.ApprovalExpired {
			h.wait.Waited(string(decided.Status))
			h.refuseOn(client, textOf(decided.Status))
			return nil
		}
		if refusal := h.renew(ctx); refusal != "" {
			h.refuseOn(client, refusal)
			return nil
		}
		if !h.stillHeld(ctx, client) {
			return nil
		}
		next, used, err := h.takeOrAsk(ctx, decided.ID)
		switch {
		case ctx.Err() != nil:
			h.handler.count(h.call, "client_gone")
			return nil // cancelled, or over, at the last moment: an approval that was used for it stays used
		case refusalOf(err) != "":
			h.refuseOn(client, refusalOf(err))
			return nil
		case err != nil:
			h.call.Core.LogFailure(h.logger, "using an approval", err)
			h.refuseOn(client, textTrouble)
			return nil
		case next == nil:
			return h.forwardInto(client, used)
		case !h.inBand(next):
			h.refuseOn(client, textPage(h.call.Core, next))
			return nil
		}
		h.waits(next.ID)
		a = next // an equal call used that approval, or the policy has changed
	}
	return nil
}

// holdEverywhere lets the client cancel the call at other nodes, too. Without a session of the upstream the owner of
// the request's id is not known, and there is no session in which to cancel it.
func (h *held) holdEverywhere(ctx context.Context) (end func(), err error) {
	if h.Session.Upstream == "" {
		return func() {}, nil
	}
	h.elsewhere, err = h.call.Core.Approvals.Hold(ctx, h.asker(), jsonrpc.IDValue(h.message.ID))
	if err != nil {
		return nil, err
	}
	return func() {
		if err := h.elsewhere.End(context.WithoutCancel(ctx)); err != nil {
			h.call.Core.LogFailure(h.logger, "forgetting that a call was held", err)
		}
	}, nil
}

// stillHeld reports whether the client waits for the call: it may have cancelled it at another node. When that cannot
// be read, the call is refused.
func (h *held) stillHeld(ctx context.Context, client *heldStream) bool {
	if h.elsewhere == nil {
		return true
	}
	switch stands, err := h.elsewhere.Stands(ctx); {
	case stands, ctx.Err() != nil: // the code that waits on ctx reports why it ended
		return true
	case err != nil:
		h.call.Core.LogFailure(h.logger, "finding out whether a call was taken back", err)
		h.refuseOn(client, textTrouble)
	default:
		h.handler.count(h.call, "client_gone")
	}
	return false
}

// takeOrAsk consumes the approval, or returns a new one to ask for when it no longer fits. For a call that needs no
// approval any more it returns neither.
func (h *held) takeOrAsk(ctx context.Context, id string) (next, used *storage.Approval, err error) {
	if h.decision.Effect == engine.Allow {
		return nil, nil, nil
	}
	wanted, err := h.wanted(ctx)
	if err != nil {
		return nil, nil, err
	}
	for range attempts {
		taken, err := h.call.Core.Approvals.Take(ctx, wanted, id)
		if !errors.Is(err, storage.ErrNotFound) {
			return nil, &taken, err
		}
		a, err := h.call.Core.Approvals.Request(ctx, wanted)
		if err != nil || a.Status == storage.ApprovalPending {
			return &a, nil, err
		}
		id = a.ID // approved on the page meanwhile
	}
	return nil, nil, storage.ErrTooManyPending
}

// askOn sends the question. Its event has no id: that would move the place from which the client resumes the stream.
func (h *held) askOn(client *heldStream, a *storage.Approval) error {
	id, err := h.call.Core.Asks.Ask(a.ID, h.asker())
	if err != nil {
		return err
	}
	request, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": id, "method": "elicitation/create", "params": h.form(a)})
	if err != nil {
		return err
	}
	return client.message(request)
}

// await waits for the decision, and sends the client signs of life meanwhile. It reports false when no client waits any
// more.
func (h *held) await(ctx context.Context, client *heldStream, a *storage.Approval) (storage.Approval, bool) {
	waiting, stop := context.WithCancel(ctx)
	type word struct {
		approval storage.Approval
		err      error
	}
	heard := make(chan word, 1)
	go func() {
		decided, err := h.call.Core.Approvals.Wait(waiting, a)
		heard <- word{decided, err}
	}()
	alive := time.NewTicker(time.Duration(h.call.Core.StreamBounds.Heartbeat))
	defer alive.Stop()
	for {
		select {
		case got := <-heard:
			stop()
			if got.err == nil {
				return got.approval, true
			}
			if errors.Is(got.err, storage.ErrTooManyPending) {
				h.refuseOn(client, textTooMany)
			} else if ctx.Err() == nil {
				h.call.Core.LogFailure(h.logger, "waiting for an approval", got.err)
				h.refuseOn(client, textTrouble)
			} else if reason, ended := streams.EndedFor(ctx); ended {
				h.refuseOn(client, fmt.Sprintf(textEnded, reason))
			}
			return storage.Approval{}, false
		case <-alive.C:
			if !h.stillHeld(ctx, client) || h.signOfLife(client) != nil {
				stop()
				<-heard
				return storage.Approval{}, false
			}
		}
	}
}

const textEnded = "Denied: the right to make this call ended while it waited (%s). Nothing was executed."

// signOfLife writes a comment, and for a client that asked for progress a notification: some clients extend their
// timeout for it.
func (h *held) signOfLife(client *heldStream) error {
	token := progressToken(h.message.Meta)
	if token == nil {
		return client.comment()
	}
	client.beats++
	// The value is less than any progress of the upstream's own: it must increase from one notification to the next.
	note, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "method": "notifications/progress", "params": map[string]any{
		"progressToken": json.RawMessage(token), "progress": float64(client.beats) * 1e-6, "message": textNeeded,
	}})
	if err != nil {
		return err
	}
	return client.message(note)
}

// progressToken returns the client's token for progress notifications; nil when it wants none.
func progressToken(meta []byte) []byte {
	if meta == nil {
		return nil
	}
	v, err := strictjson.Parse(meta, strictjson.Limits{MaxBytes: len(meta) + 1, MaxDepth: len(meta) + 1, MaxMembers: len(meta) + 1})
	if err != nil {
		return nil
	}
	token, _ := v.Get("progressToken")
	if k := token.Kind(); k != strictjson.String && k != strictjson.Number {
		return nil
	}
	return token.Raw()
}

// heldStream writes to a client whose call is held.
type heldStream struct {
	w     http.ResponseWriter
	rc    *http.ResponseController
	out   *sse.Writer
	beats int
}

func newHeldStream(w http.ResponseWriter) *heldStream {
	s := &heldStream{w: w, rc: http.NewResponseController(w)}
	s.out = sse.NewWriter(w, s.rc.Flush)
	return s
}

// message writes one JSON-RPC message as an event.
func (s *heldStream) message(text []byte) error {
	return s.bounded(func() error { return s.out.Event("message", text) })
}

// refuseOn answers on the stream that the call was not made. A write to a client that has left does no harm.
func (h *held) refuseOn(s *heldStream, text string) {
	h.wait.Waited(string(storage.ApprovalDenied))
	h.denied()
	_ = s.message(jsonrpc.ToolError(h.message.ID, text, false))
}

func (s *heldStream) comment() error { return s.bounded(s.out.Heartbeat) }

// bounded sets a deadline for a write. Writers without deadlines, such as those of tests, get none.
func (s *heldStream) bounded(write func() error) error {
	_ = s.rc.SetWriteDeadline(time.Now().Add(writeTime))
	defer func() { _ = s.rc.SetWriteDeadline(time.Time{}) }()
	return write()
}
