package evaluator

import (
	"context"
	"fmt"
	"net/url"
	"strconv"

	"github.com/durward-gateway/durward/internal/cache"
	"github.com/durward-gateway/durward/internal/policy/engine"
	"github.com/durward-gateway/durward/storage"
)

// load reads a server and its policies.
func (e *Evaluator) load(ctx context.Context, organization, slug string) (*known, error) {
	server, err := e.options.Store.ServerBySlug(ctx, organization, slug)
	if err != nil {
		return nil, err
	}
	// A server without policies also has a decision: every call to it is denied.
	policies, err := e.options.Store.ServerPolicies(ctx, organization, server.ID)
	if err != nil {
		return nil, fmt.Errorf("reading the policies of a server: %w", err)
	}
	if len(policies) == 0 { // they may have been deleted with their server, just now on another node
		if server, err = e.options.Store.ServerBySlug(ctx, organization, slug); err != nil {
			return nil, err
		}
	}
	cache.Compact(&server)
	for i := range policies {
		compactDeciding(&policies[i])
	}
	made, err := e.compile(ctx, &server, policies)
	if err != nil {
		return nil, err
	}
	k := &known{server: server, rules: made.set, unusable: made.err}
	k.url, k.badURL = url.Parse(server.Entry.URL)
	k.sight.Load(&k.server)
	return k, nil
}

// compactDeciding keeps only the deciding parts of a compiled policy, in one piece of memory.
func compactDeciding(p *storage.Policy) {
	p.Description, p.SupportContact, p.Tags = "", "", nil
	for i := range p.Rules {
		p.Rules[i].Description = ""
	}
	cache.Compact(p)
}

// Compile compiles policies for a server, unless these are known. They need not all be active. The result is kept:
// compiling many conditions takes a while, and every user may ask for it.
func (e *Evaluator) Compile(ctx context.Context, server *storage.Server, policies []storage.Policy) (*engine.Set, error) {
	made, err := e.compile(ctx, server, policies)
	if err != nil {
		return nil, err
	}
	return made.set, made.err
}

// compile makes the set of a server's policies, unless that very set is known: most writes in an organization change no
// policy.
func (e *Evaluator) compile(ctx context.Context, server *storage.Server, policies []storage.Policy) (compiled, error) {
	fields := make([]string, 0, 4+3*len(policies))
	fields = append(fields, "rules", server.OrganizationID, server.ID, server.Slug)
	count := 1
	for i := range policies {
		// Every write of a policy has its own revision; a caller can ask about a draft as though it were active.
		fields = append(fields, policies[i].ID, strconv.Itoa(policies[i].Revision), string(policies[i].Status))
		count += len(policies[i].Rules)
	}
	return e.options.Memory.compiled.Get(ctx, cache.NewKey("", fields...), func(context.Context) (compiled, error) {
		set, err := engine.Compile(server.Slug, server.ID, policies)
		return compiled{set: set, err: err, rules: count}, nil
	})
}
