// Package conversation keeps sessions of MCP that the gateway began by itself, because their user had not connected an
// account yet. Such a session goes on with the server once the account is connected.
package conversation

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/durward-gateway/durward/internal/cache"
	"github.com/durward-gateway/durward/internal/mcp/session"
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

// Memory remembers the upstream's sessions of conversations that have gone on. It outlives configurations.
type Memory struct {
	open    *cache.Cache[session.Session]
	opening singleflight.Group
}

// NewMemory makes a memory. The store's OnChange bumps epochs.
func NewMemory(epochs *cache.Epochs) (*Memory, error) {
	open, err := cache.New(epochs, cache.Options[session.Session]{Entries: keptConversations})
	if err != nil {
		return nil, fmt.Errorf("making the cache of conversations: %w", err)
	}
	return &Memory{open: open}, nil
}

// Close frees the memory.
func (m *Memory) Close() { m.open.Close() }

// Options holds the parts that a Keeper works with. All must be set.
type Options struct {
	Memory   *Memory
	Store    storage.Conversations
	Sessions *session.Codec
	Now      func() time.Time
}

// Keeper keeps conversations. The user, agent and server of a binding own a conversation: nobody else gets its session.
// The store knows no agents. So the id must come from a session id that is sealed for the same binding, otherwise another
// agent of the user could open a conversation for itself. A Keeper is safe for concurrent use.
type Keeper struct{ Options }

// New makes a keeper.
func New(o Options) *Keeper { return &Keeper{o} }

// Begin stores the client's declaration, and returns its session id.
func (k *Keeper) Begin(ctx context.Context, owner session.Binding, begun session.Session, declared []byte) (id string, err error) {
	if id, err = k.Sessions.Seal(begun, owner); err != nil {
		return "", err
	}
	now := k.Now().UTC()
	return id, k.Store.CreateConversation(ctx, storage.Conversation{
		ID: begun.Upstream, OrganizationID: owner.Organization, UserID: owner.User, ServerID: owner.Server, Declared: declared,
		CreatedAt: now, ExpiresAt: now.Add(waitsFor),
	})
}

// errNotOpen reports that the conversation has no session at the upstream yet.
var errNotOpen = errors.New("the conversation is not open")

// Session returns the upstream's session of a conversation. When there is none it opens one, once for all nodes. Errors
// are storage.ErrNotFound for a conversation that is over, the store's, and open's.
func (k *Keeper) Session(ctx context.Context, owner session.Binding, id string, open func(ctx context.Context, declared []byte) (session.Session, error)) (session.Session, error) {
	kept, err := k.Memory.open.Get(ctx, cache.NewKey(owner.Organization, "conversation", owner.User, owner.Issuer, owner.Agent, owner.Server, id), func(ctx context.Context) (session.Session, error) {
		stored, err := k.read(ctx, owner, id)
		if err == nil && stored.Upstream == "" {
			err = errNotOpen
		}
		if err != nil {
			return session.Session{}, err
		}
		return k.unseal(stored, owner)
	})
	if !errors.Is(err, errNotOpen) {
		return kept, err
	}
	opened, err, _ := k.Memory.opening.Do(fmt.Sprintf("%q %q", owner, id), func() (any, error) {
		// The session is opened for all requests that wait, even when the first request ends.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), openingTime)
		defer cancel()
		return k.openOnce(ctx, owner, id, open)
	})
	if err != nil {
		return session.Session{}, err
	}
	return opened.(session.Session), nil
}

// read reads a conversation. One with another server is unknown.
func (k *Keeper) read(ctx context.Context, owner session.Binding, id string) (storage.Conversation, error) {
	stored, err := k.Store.Conversation(ctx, owner.Organization, owner.User, id, k.Now())
	if err == nil && stored.ServerID != owner.Server {
		err = storage.ErrNotFound
	}
	return stored, err
}

func (k *Keeper) openOnce(ctx context.Context, owner session.Binding, id string, open func(context.Context, []byte) (session.Session, error)) (session.Session, error) {
	stored, err := k.read(ctx, owner, id)
	if err != nil || stored.Upstream != "" {
		if err != nil {
			return session.Session{}, err
		}
		return k.unseal(stored, owner)
	}
	opened, err := open(ctx, stored.Declared)
	if err != nil {
		return session.Session{}, err
	}
	sealed, err := k.Sessions.Seal(opened, owner)
	if err != nil {
		return session.Session{}, err
	}
	now := k.Now()
	if stored, err = k.Store.OpenConversation(ctx, owner.Organization, owner.User, id, sealed, now, now.Add(lastsFor)); err != nil {
		return session.Session{}, err
	}
	return k.unseal(stored, owner)
}

// unseal reads the upstream's session. A session whose key is gone cannot be read any more; its conversation is over.
func (k *Keeper) unseal(stored storage.Conversation, owner session.Binding) (session.Session, error) {
	opened, err := k.Sessions.Open(stored.Upstream, owner)
	if errors.Is(err, session.ErrUnknownSession) {
		return opened, fmt.Errorf("reading a conversation: %w", storage.ErrNotFound)
	}
	return opened, err
}

// End deletes a conversation.
func (k *Keeper) End(ctx context.Context, owner session.Binding, id string) error {
	return k.Store.DeleteConversation(ctx, owner.Organization, owner.User, id)
}
