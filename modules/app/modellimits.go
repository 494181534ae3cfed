package app

import (
	"context"
	"sync/atomic"

	"github.com/durward-gateway/durward/internal/cache"
	"github.com/durward-gateway/durward/internal/limit"
	"github.com/durward-gateway/durward/storage"
)

// modelMatches is what the last call of an API key to a model counted in, before its target was known and afterwards: most
// calls of a key are to one model.
type modelMatches struct{ looked, sent atomic.Pointer[modelMatch] }

// modelMatch is what calls count in, with everything that tells one call of a key from another of it.
type modelMatch struct {
	at      cache.Epoch // of the organization, before matched was looked up
	of      modelTarget
	matched *limit.Matched
}

type modelTarget struct{ provider, name, model, alias, via string }

// MatchedForModels gives what a call to a model counts in now; subject is the call's ([Call.LimitSubject]) with its target.
// Errors are the store's; nobody may be let through on one.
func (c *Call) MatchedForModels(ctx context.Context, subject *limit.Subject) (*limit.Matched, error) {
	if c.limits.seen && !c.limits.on {
		return new(limit.Matched), nil // durward_limit off
	}
	limits, organization := c.Core.Limits, c.Caller.OrganizationID
	if c.key == nil || c.Agent != nil {
		return limits.Matched(ctx, organization, subject)
	}
	now := limits.epochs.Current(organization)
	of := modelTarget{subject.ProviderID, subject.ProviderName, subject.Model, subject.Alias, subject.Via}
	last := &c.key.matches.sent
	if of == (modelTarget{}) {
		last = &c.key.matches.looked
	}
	if m := last.Load(); m != nil && m.at == now && m.of == of {
		return m.matched, nil
	}
	matched, err := limits.Matched(ctx, organization, subject)
	if err != nil {
		return nil, err
	}
	last.Store(&modelMatch{now, of, matched})
	return matched, nil
}

// LookForModels is Look for a call to a model that is not known yet.
func (c *Call) LookForModels(ctx context.Context) (*limit.Refusal, error) {
	subject := c.LimitSubject(storage.TrafficLLM)
	m, err := c.MatchedForModels(ctx, &subject)
	if err != nil {
		return nil, err
	}
	return c.Core.Limits.Engine().Look(ctx, m)
}
