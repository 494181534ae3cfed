package app

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/durward-gateway/durward/internal/credential/connection"
	"github.com/durward-gateway/durward/internal/policy/evaluator"
	"github.com/durward-gateway/durward/storage"
)

// Account is the account of a call's caller at the call's server, which may not be connected.
type Account struct{ call *Call }

// Account returns the account of a call that has a caller and a server.
func (c *Call) Account() Account { return Account{c} }

// Key names the caller's connection.
func (a Account) Key() storage.ConnectionKey {
	c := a.call
	return storage.ConnectionKey{OrganizationID: c.Caller.OrganizationID, UserID: c.Caller.UserID, ServerID: c.Server.ID}
}

// Led reports whether the gateway leads the caller to the page that connects their account. Machines are not: they open
// no pages.
func (a Account) Led() bool {
	c := a.call
	return c.Core.Guide && c.Server.Entry.Protocol == storage.ProtocolMCP && !c.Caller.Machine && c.Caller.UserID != ""
}

// Connected reports whether the account is connected. Errors are the store's.
func (a Account) Connected(ctx context.Context) (bool, error) { return a.AsksConnected()(ctx) }

// AsksConnected is Connected for goroutines beside the call's own, which renews its server meanwhile. It reads the
// server anew each time: the first connection turns a pending server into an active one.
func (a Account) AsksConnected() func(ctx context.Context) (bool, error) {
	core, known, key := a.call.Core, a.call.Known, a.Key()
	return func(ctx context.Context) (bool, error) {
		now, err := core.Evaluator.Renew(ctx, evaluator.Asker{Organization: key.OrganizationID}, known)
		if errors.Is(err, storage.ErrNotFound) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		return core.Broker.Connected(ctx, key, now.Server())
	}
}

// Want notes that the server asked for scopes which the connection does not give: the next connect asks for them too.
func (a Account) Want(ctx context.Context, scope string) error {
	return a.call.Core.Broker.Want(ctx, a.Key(), scope)
}

// Use notes whether the call uses the connection: its streams then end with the connection. It must be noted before the
// credential is read. Otherwise the streams outlive a connection that another node takes away meanwhile, because their
// right is checked only after the write.
func (a Account) Use(uses bool) {
	var noted uint32
	if uses {
		noted = 1
	}
	atomic.StoreUint32(&a.call.connected, noted)
}

// used reports what Use has noted.
func (a Account) used() bool { return atomic.LoadUint32(&a.call.connected) == 1 }

// Recent returns the memory of the connection that the caller's calls use; nil when nothing remembers it.
func (a Account) Recent() *connection.Recent {
	c := a.call
	notes := c.tokenNotes()
	if notes == nil || c.Server == nil || c.Known.Server() != c.Server {
		return nil
	}
	return &notes.connection
}
