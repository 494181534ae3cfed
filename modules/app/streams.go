package app

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/durward-gateway/durward/internal/gateway"
	"github.com/durward-gateway/durward/internal/mcp/streams"
	"github.com/durward-gateway/durward/internal/policy/evaluator"
	"github.com/durward-gateway/durward/storage"
)

// owner returns the owner under which the call's streams are counted.
func (c *Call) owner() streams.Owner {
	owner := streams.Owner{Organization: c.Caller.OrganizationID, User: c.Caller.UserID}
	if c.Server != nil { // not of calls to models
		owner.Server = c.Server.ID
	}
	if c.Caller.Key != nil && owner.User == "" {
		owner.User = "api key " + c.Caller.Key.ID // which has a bound of its own
	}
	return owner
}

// Streams ends a call with the right to it, and other calls of its client.
type Streams struct{ call *Call }

// Streams returns the streams of a call that has a caller.
func (c *Call) Streams() Streams { return Streams{c} }

// Open registers the call as running at its server. The context that it returns ends with the right to the call;
// it has ended already (streams.EndedFor) when the call may not begin. done must be called.
func (s Streams) Open(ctx context.Context, kind streams.Kind) (_ context.Context, done func()) {
	c := s.call
	limits := streams.Limits{PerUser: c.Core.StreamBounds.MaxPerUser, Total: c.Core.StreamBounds.Max}
	var right streams.Right
	if c.Decision != nil {
		right = c.Decision.Right
	}
	ctx, done = c.Core.Streams.Open(ctx, c.owner(), kind, c.Caller.ExpiresAt, limits, c.ground(right))
	if ctx.Err() != nil {
		return ctx, done
	}
	// Writes since the caller was proven and the decision was made have ended only calls that were registered by then
	// (M22).
	err := c.renewStanding(ctx)
	if err == nil && right != nil && (c.epoch() != c.Known.At() || c.epoch() != c.bearer.ProvenAt()) {
		var holds bool
		if holds, err = right(ctx); err == nil && !holds {
			err = &streams.Ended{Reason: streams.PolicyChanged}
		}
	}
	if err == nil {
		return ctx, done
	}
	reason := &streams.Ended{Reason: streams.Untold}
	_ = errors.As(err, &reason)
	ended, end := context.WithCancelCause(ctx)
	end(reason)
	return ended, done
}

// WriteEnded answers a call to a server whose right ended before its answer began.
func (s Streams) WriteEnded(w http.ResponseWriter, r *http.Request, reason streams.Reason) {
	c := s.call
	gateway.RefuseEnded(w, reason, c.Core.Challenge(r.URL.Path, true), c.Core.ConnectAddress(c.Server))
}

// lateAnswer is the time for which the answer to a cancelled call may still come. Servers need not send one, and
// clients do not read it (2025-11-25, basic/utilities/cancellation, "Behavior Requirements"); a server that stops its
// work says so at once.
const lateAnswer = 2 * time.Second

// EndTakenBack ends the wait for the answers to calls that the messages of this call cancel. Without that they would
// delay the end of the process, which waits for calls.
func (s Streams) EndTakenBack() {
	c := s.call
	in := c.Inbound
	ids := in.TakenBack()
	if ids == nil {
		return
	}
	// One search for all of them: otherwise a batch that cancels a hundred calls would make all streams of the process
	// wait a hundred times.
	c.Core.Streams.EndCalls(c.owner(), streams.Cancelled, func(ctx context.Context) bool {
		other, ok := ctx.Value(callKey{}).(*Call)
		return ok && other.Inbound != nil && other.Caller.Agent == c.Caller.Agent && other.ClientIssuer() == c.ClientIssuer() && other.Inbound.SameSession(in) &&
			slices.ContainsFunc(ids, other.Inbound.Asks)
	}, lateAnswer)
}

// ground returns a right that also ends with the call's own basis: its caller's token or key, its server, and the
// connection whose credential it was given. The node on which one of them is removed ends the streams itself. Other
// nodes learn only that something was written, and check this right. The reasons for the end are the same.
func (c *Call) ground(right streams.Right) streams.Right {
	known := c.Known // the call renews its own meanwhile
	return func(ctx context.Context) (bool, error) {
		var err error
		if c.bearer.Proven() {
			err = endedWhenRevoked(c.Core.Authenticator.Recheck(ctx, &c.bearer))
		}
		if err == nil && known.Server() != nil {
			err = c.standsOn(ctx, known)
		}
		if err != nil || right == nil {
			return err == nil, err
		}
		return right(ctx)
	}
}

// standsOn returns a *streams.Ended when a server, or the caller's connection to it, is gone.
func (c *Call) standsOn(ctx context.Context, known evaluator.Known) error {
	now, err := c.Core.Evaluator.Renew(ctx, evaluator.Asker{Organization: c.Caller.OrganizationID}, known)
	if errors.Is(err, storage.ErrNotFound) {
		return &streams.Ended{Reason: streams.ServerDeleted}
	}
	if err != nil || c.Caller.UserID == "" || !c.Account().used() {
		return err
	}
	key := storage.ConnectionKey{OrganizationID: c.Caller.OrganizationID, UserID: c.Caller.UserID, ServerID: now.Server().ID}
	gone, err := c.Core.Broker.Gone(ctx, key, now.Server())
	if err == nil && gone {
		return &streams.Ended{Reason: streams.Disconnected}
	}
	return err
}
