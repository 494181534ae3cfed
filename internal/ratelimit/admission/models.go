package admission

import (
	"context"
	"sync/atomic"

	"github.com/durward-gateway/durward/internal/cache"
	"github.com/durward-gateway/durward/internal/ratelimit/limit"
	"github.com/durward-gateway/durward/storage"
)

// RecentModels remembers the limits that counted the last call of an API key to a model, before its target was known and
// afterwards: most calls of a key are to one model.
type RecentModels struct{ looked, sent atomic.Pointer[modelMatch] }

// modelMatch holds limits, with all properties that can differ between calls of one key.
type modelMatch struct {
	at      cache.Epoch // the organization's epoch, read before matched was looked up
	of      modelTarget
	matched *limit.Matched
}

type modelTarget struct{ provider, name, model, alias, via string }

// MatchModels returns the limits that count a call to a model now; subject is the call's with its target. Errors are the
// store's; on an error the call must not pass.
func (a *Admitter) MatchModels(ctx context.Context, c *Call, subject *limit.Subject) (*limit.Matched, error) {
	if c.State.seen && !c.State.on {
		return new(limit.Matched), nil // durward_limit off
	}
	if c.RecentModels == nil {
		return a.book.Matched(ctx, c.Organization, subject)
	}
	now := a.book.epochs.Current(c.Organization)
	of := modelTarget{subject.ProviderID, subject.ProviderName, subject.Model, subject.Alias, subject.Via}
	last := &c.RecentModels.sent
	if of == (modelTarget{}) {
		last = &c.RecentModels.looked
	}
	if m := last.Load(); m != nil && m.at == now && m.of == of {
		return m.matched, nil
	}
	matched, err := a.book.Matched(ctx, c.Organization, subject)
	if err != nil {
		return nil, err
	}
	last.Store(&modelMatch{now, of, matched})
	return matched, nil
}

// LookModels does the work of Look for a call to a model that is not known yet.
func (a *Admitter) LookModels(ctx context.Context, c *Call) (*limit.Refusal, error) {
	subject := c.Subject.LimitSubject(storage.TrafficLLM)
	m, err := a.MatchModels(ctx, c, &subject)
	if err != nil {
		return nil, err
	}
	return a.look(ctx, storage.TrafficLLM, m)
}

// ModelRefused counts, for the metrics, a call to a model whose charge a limit refused.
func (a *Admitter) ModelRefused(refused *limit.Refusal) {
	a.refused(storage.TrafficLLM, atCharge, refused.Measure)
}
