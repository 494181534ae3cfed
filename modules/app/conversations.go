package app

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/durward-gateway/durward/internal/cache"
	mcpsession "github.com/durward-gateway/durward/internal/mcp/session"
	"github.com/durward-gateway/durward/internal/policy/evaluator"
	"github.com/durward-gateway/durward/storage"
)

const (
	keptConversations = 50_000
	// waitsFor is the time for which a conversation waits for its user to connect; lastsFor is its lifetime from then on.
	waitsFor = 7 * 24 * time.Hour
	lastsFor = 30 * 24 * time.Hour
	// openingTime bounds opening a session at an upstream.
	openingTime = 30 * time.Second
	// MaxDeclared is the limit for the stored part of a client's initialize, in bytes.
	MaxDeclared = 16 << 10
)

// ConnectTool is the tool that is listed when a server's own tools are not known.
const ConnectTool = "connect_account"

// conversations holds the sessions that the gateway began and that have gone on with an upstream.
type conversations struct {
	open    *cache.Cache[mcpsession.Session]
	opening singleflight.Group
}

func (r *resources) makeConversations() (err error) {
	r.conversations.open, err = newCache(r, "conversations", cache.Options[mcpsession.Session]{Entries: keptConversations})
	return err
}

// Led reports whether the gateway leads the caller to the page that connects their account. Machines are not: they open
// no pages.
func (c *Call) Led() bool {
	return c.Core.Guide && c.Server.Entry.Protocol == storage.ProtocolMCP && !c.Caller.Machine && c.Caller.UserID != ""
}

func (c *Call) connectionKey() storage.ConnectionKey {
	return storage.ConnectionKey{OrganizationID: c.Caller.OrganizationID, UserID: c.Caller.UserID, ServerID: c.Server.ID}
}

// HasConnected reports whether the caller has an account connected at the server. Errors are the store's.
func (c *Call) HasConnected(ctx context.Context) (bool, error) { return c.AsksConnected()(ctx) }

// AsksConnected is HasConnected for goroutines beside the call's own, which renews its server meanwhile. It reads the
// server anew each time: the first connection turns a pending server into an active one.
func (c *Call) AsksConnected() func(ctx context.Context) (bool, error) {
	core, known, key := c.Core, c.Known, c.connectionKey()
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

// Want notes that the server asked for scopes which the caller's connection does not give: the next connect asks for them too.
func (c *Call) Want(ctx context.Context, scope string) error {
	return c.Core.Broker.Want(ctx, c.connectionKey(), scope)
}

// BeginConversation stores the client's declaration, and returns its session id.
func (c *Call) BeginConversation(ctx context.Context, session mcpsession.Session, declared []byte) (id string, err error) {
	if id, err = c.Core.Sessions.Seal(session, c.Binding()); err != nil {
		return "", err
	}
	now := time.Now().UTC()
	return id, c.Core.Store.CreateConversation(ctx, storage.Conversation{
		ID: session.Upstream, OrganizationID: c.Caller.OrganizationID, UserID: c.Caller.UserID, ServerID: c.Server.ID, Declared: declared,
		CreatedAt: now, ExpiresAt: now.Add(waitsFor),
	})
}

// errNotOpen reports that the conversation has no session at the upstream yet.
var errNotOpen = errors.New("the conversation is not open")

// Conversation returns the upstream's session of a conversation. When there is none it opens one, once for all nodes.
// Errors are storage.ErrNotFound for a conversation that is over, the store's, and open's.
func (c *Call) Conversation(ctx context.Context, id string, open func(ctx context.Context, declared []byte) (mcpsession.Session, error)) (mcpsession.Session, error) {
	kept := &c.Core.resources.conversations
	session, err := kept.open.Get(ctx, cache.NewKey(c.Caller.OrganizationID, "conversation", c.Caller.UserID, id), func(ctx context.Context) (mcpsession.Session, error) {
		stored, err := c.Core.Store.Conversation(ctx, c.Caller.OrganizationID, c.Caller.UserID, id, time.Now())
		if err == nil && stored.Upstream == "" {
			err = errNotOpen
		}
		if err != nil {
			return mcpsession.Session{}, err
		}
		return c.unsealConversation(stored)
	})
	if !errors.Is(err, errNotOpen) {
		return session, err
	}
	opened, err, _ := kept.opening.Do(c.Caller.OrganizationID+" "+id, func() (any, error) {
		// The session is opened for all requests that wait, even when the first request ends.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), openingTime)
		defer cancel()
		return c.openConversation(ctx, id, open)
	})
	if err != nil {
		return mcpsession.Session{}, err
	}
	return opened.(mcpsession.Session), nil
}

func (c *Call) openConversation(ctx context.Context, id string, open func(context.Context, []byte) (mcpsession.Session, error)) (mcpsession.Session, error) {
	stored, err := c.Core.Store.Conversation(ctx, c.Caller.OrganizationID, c.Caller.UserID, id, time.Now())
	if err != nil || stored.Upstream != "" {
		if err != nil {
			return mcpsession.Session{}, err
		}
		return c.unsealConversation(stored)
	}
	session, err := open(ctx, stored.Declared)
	if err != nil {
		return mcpsession.Session{}, err
	}
	sealed, err := c.Core.Sessions.Seal(session, c.Binding())
	if err != nil {
		return mcpsession.Session{}, err
	}
	now := time.Now()
	if stored, err = c.Core.Store.OpenConversation(ctx, c.Caller.OrganizationID, c.Caller.UserID, id, sealed, now, now.Add(lastsFor)); err != nil {
		return mcpsession.Session{}, err
	}
	return c.unsealConversation(stored)
}

// unsealConversation reads the upstream's session. A session whose key is gone cannot be read any more; its
// conversation is over.
func (c *Call) unsealConversation(stored storage.Conversation) (mcpsession.Session, error) {
	if stored.ServerID != c.Server.ID {
		return mcpsession.Session{}, storage.ErrNotFound
	}
	session, err := c.Core.Sessions.Open(stored.Upstream, c.Binding())
	if errors.Is(err, mcpsession.ErrUnknownSession) {
		return session, fmt.Errorf("reading a conversation: %w", storage.ErrNotFound)
	}
	return session, err
}

// EndConversation deletes a conversation.
func (c *Call) EndConversation(ctx context.Context, id string) error {
	return c.Core.Store.DeleteConversation(ctx, c.Caller.OrganizationID, c.Caller.UserID, id)
}
