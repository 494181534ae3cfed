// Package evaluator finds the rules for calls to a server. It reads the server with its policies and compiles them. It
// remembers both until something of the organization is written.
package evaluator

import (
	"context"
	"sync/atomic"

	"github.com/durward-gateway/durward/internal/cache"
	"github.com/durward-gateway/durward/internal/policy/engine"
	"github.com/durward-gateway/durward/storage"
)

// Store is the store's part with servers and their policies.
type Store interface {
	ServerBySlug(ctx context.Context, organization, slug string) (storage.Server, error)
	ServerPolicies(ctx context.Context, organization, serverID string) ([]storage.Policy, error)
}

// Options holds the dependencies of an Evaluator. Both are required.
type Options struct {
	// Memory must stay open as long as the evaluator is used.
	Memory *Memory
	Store  Store
}

// Evaluator finds servers with the rules for calls to them. It is safe for concurrent use.
type Evaluator struct{ options Options }

// New makes an evaluator.
func New(o Options) *Evaluator { return &Evaluator{o} }

// Asker names the organization whose servers are looked up.
type Asker struct {
	Organization string
	// History is the organization's; the zero value: it is looked up each time.
	History cache.History
	// Recent remembers the server of the asker's last call; nil: nothing does.
	Recent *Recent
}

// Recent remembers the server of an asker's last call: most calls are to the same one. The zero value is ready. It is
// for one organization, and safe for concurrent use.
type Recent struct{ last atomic.Pointer[Known] }

func (e *Evaluator) epoch(who Asker) cache.Epoch {
	if who.History != (cache.History{}) {
		return who.History.Current()
	}
	return e.options.Memory.epochs.Current(who.Organization)
}

// Server returns the server of that name in the asker's organization. Errors are the store's.
func (e *Evaluator) Server(ctx context.Context, who Asker, slug string) (Known, error) {
	// The epoch is read first: the server read after it is at least as new.
	now := e.epoch(who)
	if who.Recent != nil {
		if last := who.Recent.last.Load(); last != nil && last.at == now && last.server.Slug == slug {
			return *last, nil
		}
	}
	found, err := e.options.Memory.servers.Get(ctx, cache.NewKey(who.Organization, "server", slug), func(ctx context.Context) (*known, error) {
		return e.load(ctx, who.Organization, slug)
	})
	if err != nil {
		return Known{}, err
	}
	if who.Recent != nil {
		who.Recent.last.Store(&Known{found, now})
	}
	return Known{found, now}, nil
}

// Renew reads a server again when something of its organization was written since. Its error is storage.ErrNotFound when
// the server is gone, also when its name belongs to another one now. On an error it returns the server as it was.
func (e *Evaluator) Renew(ctx context.Context, who Asker, was Known) (Known, error) {
	if was.known == nil {
		return was, errNoServer
	}
	if e.epoch(who) == was.at {
		return was, nil
	}
	now, err := e.Server(ctx, who, was.server.Slug)
	switch {
	case err != nil:
		return was, err
	case now.server.ID != was.server.ID:
		return was, storage.ErrNotFound
	}
	return now, nil
}

// RulesNow returns a function that returns the rules for calls to a server in force at the time of its call. Any
// goroutine may use it. It is for streams, which outlive the decision on their call. Its error is storage.ErrNotFound
// when the server is gone.
func (e *Evaluator) RulesNow(who Asker, was Known) func(context.Context) (*engine.Set, error) {
	organization := who.Organization // it keeps no more of the asker than this: streams wait long
	return func(ctx context.Context) (*engine.Set, error) {
		now, err := e.Renew(ctx, Asker{Organization: organization}, was)
		if err != nil {
			return nil, err
		}
		return now.Rules()
	}
}
