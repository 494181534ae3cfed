package app

import (
	"context"
	"sync/atomic"

	"github.com/durward-gateway/durward/internal/cache"
	"github.com/durward-gateway/durward/internal/ratelimit/limit"
	"github.com/durward-gateway/durward/storage"
)

// modelMatches holds the limits that counted the last call of an API key to a model, before its target was known and
// afterwards: most calls of a key are to one model.
type modelMatches struct{ looked, sent atomic.Pointer[modelMatch] }

// modelMatch holds the limits that count calls, with all properties that can differ between calls of one key.
type modelMatch struct {
	at      cache.Epoch // the organization's epoch, read before matched was looked up
	of      modelTarget
	matched *limit.Matched
}

type modelTarget struct{ provider, name, model, alias, via string }

// MatchedForModels returns the limits that count a call to a model now; subject is the call's ([Call.LimitSubject])
// with its target. Errors are the store's; on an error the call must not pass.
func (c *Call) MatchedForModels(ctx context.Context, subject *limit.Subject) (*limit.Matched, error) {
	if c.limits.seen && !c.limits.on {
		return new(limit.Matched), nil // durward_limit off
	}
	limits, organization := c.Core.Admitter, c.Caller.OrganizationID
	if c.key == nil || c.Agent != nil {
		return limits.Matched(ctx, organization, subject)
	}
	now := limits.Epoch(organization)
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

// LookForModels does the work of Look for a call to a model that is not known yet.
func (c *Call) LookForModels(ctx context.Context) (*limit.Refusal, error) {
	subject := c.LimitSubject(storage.TrafficLLM)
	m, err := c.MatchedForModels(ctx, &subject)
	if err != nil {
		return nil, err
	}
	return c.Core.Admitter.Engine().Look(ctx, m)
}
