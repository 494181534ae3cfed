package app

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/durward-gateway/durward/internal/mcp/streams"
	"github.com/durward-gateway/durward/internal/policy/evaluator"
	"github.com/durward-gateway/durward/storage"
)

// UseConnection notes whether the call uses its caller's connection: its streams then end with the connection. It must
// be noted before the credential is read. Otherwise the streams outlive a connection that another node takes away
// meanwhile, because their right is checked only after the write.
func (c *Call) UseConnection(uses bool) {
	var noted uint32
	if uses {
		noted = 1
	}
	atomic.StoreUint32(&c.connected, noted)
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
	if err != nil || c.Caller.UserID == "" || atomic.LoadUint32(&c.connected) == 0 {
		return err
	}
	key := storage.ConnectionKey{OrganizationID: c.Caller.OrganizationID, UserID: c.Caller.UserID, ServerID: now.Server().ID}
	gone, err := c.Core.Broker.Gone(ctx, key, now.Server())
	if err == nil && gone {
		return &streams.Ended{Reason: streams.Disconnected}
	}
	return err
}
