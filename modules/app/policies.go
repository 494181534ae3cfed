package app

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strconv"

	"github.com/durward-gateway/durward/internal/cache"
	"github.com/durward-gateway/durward/internal/policy/engine"
	"github.com/durward-gateway/durward/storage"
)

// knownServer is a server with the rules for calls to it. Requests share it: it is never changed.
type knownServer struct {
	server storage.Server
	rules  *engine.Set
	// unusable is the reason why the rules cannot be used. Nothing is allowed then.
	unusable error
	// url is the address in the server's entry; badURL is the reason why it is none.
	url    *url.URL
	badURL error
	sight  sight
}

// compiled holds the compiled policies of a server, or the reason why they cannot be compiled.
type compiled struct {
	set   *engine.Set
	err   error
	rules int
}

// loadServer reads a server and its policies.
func (r *resources) loadServer(ctx context.Context, organization, slug string) (*knownServer, error) {
	server, err := r.store.ServerBySlug(ctx, organization, slug)
	if err != nil {
		return nil, err
	}
	// A server without policies also has a decision: every call to it is denied.
	policies, err := r.store.ServerPolicies(ctx, organization, server.ID)
	if err != nil {
		return nil, fmt.Errorf("reading the policies of a server: %w", err)
	}
	if len(policies) == 0 { // they may have been deleted with their server, just now on another node
		if server, err = r.store.ServerBySlug(ctx, organization, slug); err != nil {
			return nil, err
		}
	}
	cache.Compact(&server)
	for i := range policies {
		packDeciding(&policies[i])
	}
	made, err := r.compile(ctx, &server, policies)
	if err != nil {
		return nil, err
	}
	known := &knownServer{server: server, rules: made.set, unusable: made.err}
	known.url, known.badURL = url.Parse(server.Entry.URL)
	known.sight.load(&known.server)
	return known, nil
}

// packDeciding keeps only the deciding parts of a compiled policy, in one piece of memory.
func packDeciding(p *storage.Policy) {
	p.Description, p.SupportContact, p.Tags = "", "", nil
	for i := range p.Rules {
		p.Rules[i].Description = ""
	}
	cache.Compact(p)
}

// compile makes the set of a server's policies, unless that very set is known: most writes in an organization change no
// policy.
func (r *resources) compile(ctx context.Context, server *storage.Server, policies []storage.Policy) (compiled, error) {
	fields := make([]string, 0, 4+3*len(policies))
	fields = append(fields, "rules", server.OrganizationID, server.ID, server.Slug)
	count := 1
	for i := range policies {
		// Every write of a policy has its own revision; a caller can ask about a draft as though it were active.
		fields = append(fields, policies[i].ID, strconv.Itoa(policies[i].Revision), string(policies[i].Status))
		count += len(policies[i].Rules)
	}
	return r.compiled.Get(ctx, cache.NewKey("", fields...), func(context.Context) (compiled, error) {
		set, err := engine.Compile(server.Slug, server.ID, policies)
		return compiled{set: set, err: err, rules: count}, nil
	})
}

// CompileRules compiles the rules for a server, unless they are known. Its policies need not all be active. Compiled
// rules are kept: compiling many conditions takes a while, and every user may ask for it. A core without resources
// keeps nothing.
func (c *Core) CompileRules(ctx context.Context, server *storage.Server, policies []storage.Policy) (*engine.Set, error) {
	if c.resources == nil {
		return engine.Compile(server.Slug, server.ID, policies)
	}
	made, err := c.resources.compile(ctx, server, policies)
	if err != nil {
		return nil, err
	}
	return made.set, made.err
}

// Rules returns the rules for the call, as they were when its server was looked up.
func (c *Call) Rules() (*engine.Set, error) {
	switch {
	case c.known == nil:
		return nil, errors.New("the call's server was not looked up")
	case c.known.unusable != nil:
		return nil, fmt.Errorf("compiling the policies of a server: %w", c.known.unusable)
	}
	return c.known.rules, nil
}

// RulesNow returns a function that returns the rules in force at the time of its call. Any goroutine may use it. It is
// for streams, which outlive the decision on their call. Its error is storage.ErrNotFound when the server is gone.
func (c *Call) RulesNow() func(context.Context) (*engine.Set, error) {
	core, caller, server, known, seen := c.Core, c.Caller, c.Server, c.known, c.seen // keeps no more of c than this: streams wait long
	return func(ctx context.Context) (*engine.Set, error) {
		now := Call{Core: core, Caller: caller, Server: server, known: known, seen: seen}
		if err := now.renewServer(ctx); err != nil {
			return nil, err
		}
		return now.Rules()
	}
}
