package limit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/durward-gateway/durward/internal/ratelimit/window"
)

// Permit is a call that was let through and whose tokens are not settled yet. Its owner must end it with Settle, Close
// or Cancel, however the call ended. The first of them counts and later ones do nothing, so that Close can be deferred.
// It is safe for concurrent use.
type Permit struct {
	engine   *Engine
	requests int64
	reserved int64

	mu       sync.Mutex
	ended    bool
	degraded bool
	matched  *Matched // counters of the call's present target
	held     []held   // tokens that are not settled yet
	first    held     // requests of the first step
	place    [1]held  // first storage of held, which mostly needs no more
}

// held records tokens or requests that were charged in one step.
type held struct {
	at       window.Slot
	counters []counted
}

// errEnded says that a permit cannot be moved because it was settled or closed. errExtended says that a permit cannot
// be extended because it has tokens.
var (
	errEnded    = errors.New("the permit has ended")
	errExtended = errors.New("the permit has tokens already")
)

// Reserved returns the number of reserved tokens.
func (p *Permit) Reserved() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.reserved
}

// Degraded reports whether this node let the call through without the other nodes.
func (p *Permit) Degraded() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.degraded
}

// Extend adds the target to a call that was charged without tokens because its target was not known yet. It reserves
// the tokens at the target, and charges the requests in counters that do not have them yet. When that is refused
// nothing changes.
func (p *Permit) Extend(ctx context.Context, to *Matched, tokens int64) (*Refusal, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.ended:
		return nil, errEnded
	case p.reserved > 0:
		return nil, errExtended
	}
	rest := p.rest(to)
	p.held = nil // no tokens are in them
	p.reserved = max(tokens, 0)
	if refused, err := p.charge(ctx, rest, nil); refused != nil || err != nil {
		p.reserved = 0
		return refused, err
	}
	p.matched = to
	return nil, nil
}

// rest returns the counters of a new target that the call was not charged in. These are all counters of tokens, and the
// counters of requests that are new.
func (p *Permit) rest(to *Matched) *Matched {
	rest := &Matched{limits: to.limits}
	for i, c := range to.counters {
		switch {
		case i >= to.requests:
		case p.matched.has(c.key):
			continue
		default:
			rest.requests++
		}
		rest.counters = append(rest.counters, c)
	}
	return rest
}

// Again moves a call that may have used tokens at its present target. That use is settled here, and the first
// reservation is made anew at the next target (attack T07). Requests count once. When that is refused nothing changes.
func (p *Permit) Again(ctx context.Context, to *Matched, used int64) (*Refusal, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return nil, errEnded
	}
	before := slices.Clone(p.held) // charge replaces the next one
	p.held = nil
	if refused, err := p.charge(ctx, p.rest(to), nil); refused != nil || err != nil {
		p.held = before
		return refused, err
	}
	for _, h := range before {
		p.engine.correct(h, max(used, 0)-p.reserved)
	}
	p.matched = to
	return nil, nil
}

// Cancel takes back the first charge of a call, including its requests, because a later step refused the call. It reports
// whether it was the first to end the permit.
func (p *Permit) Cancel() bool {
	if !p.Settle(0) {
		return false
	}
	p.engine.correct(p.first, -p.requests)
	return true
}

// Move moves the call to another target, as a fallback to another provider or model does. Counters of both targets stay
// unchanged. Counters of the new target alone are charged as the call was at first; when that is refused nothing
// changes. Counters of the old target alone get their tokens back and keep the request, which was made.
func (p *Permit) Move(ctx context.Context, to *Matched) (*Refusal, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return nil, errEnded
	}
	if refused, err := p.charge(ctx, to, p.matched); refused != nil || err != nil {
		return refused, err
	}
	for i := range p.held {
		h := &p.held[i]
		stay := make([]counted, 0, len(h.counters))
		var leave []counted
		for _, c := range h.counters {
			if to.has(c.key) {
				stay = append(stay, c)
			} else {
				leave = append(leave, c)
			}
		}
		h.counters = stay
		p.engine.correct(held{h.at, leave}, -p.reserved)
	}
	return nil, nil
}

// charge charges the counters of m that are not in without, and holds their tokens. without may be nil.
func (p *Permit) charge(ctx context.Context, m, without *Matched) (*Refusal, error) {
	s := steps.Get().(*step)
	defer steps.Put(s)
	asked := s.fill(m, Cost{Requests: p.requests, Tokens: p.reserved}, without)
	if len(asked) > 0 {
		v, err := p.engine.coordinator.Charge(ctx, s.charges, s.states)
		if err != nil {
			return nil, fmt.Errorf("charging rate limits: %w", err)
		}
		if !v.OK {
			return refusal(m, asked, s.states, v), nil
		}
		p.degraded = p.degraded || v.Degraded
		first := requestsIn(asked)
		if first < len(asked) {
			if p.held == nil {
				p.held = p.place[:0]
			}
			p.held = append(p.held, held{v.At, asked[first:]})
		}
		if p.matched == nil {
			p.first = held{v.At, asked[:first]}
		}
	}
	p.matched = m
	return nil, nil
}

// requestsIn returns how many of the counters count requests. Those come first.
func requestsIn(counters []counted) int {
	for i := range counters {
		if counters[i].tokens {
			return i
		}
	}
	return len(counters)
}

// Settle corrects the reservation to the tokens that were used. Surplus tokens go back to the slot of the reservation,
// and missing tokens are charged now. A call without any use settles with 0. It reports whether it was the first to end
// the permit.
func (p *Permit) Settle(used int64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return false
	}
	p.ended = true
	for _, h := range p.held {
		p.engine.correct(h, max(used, 0)-p.reserved)
	}
	p.held = nil
	return true
}

// Close keeps the reservation as the final charge, for a call whose use is not known (attack T07). It reports whether
// it was the first to end the permit.
func (p *Permit) Close() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	first := !p.ended
	p.ended, p.held = true, nil
	return first
}

// correct changes the charges of the held counters by delta.
func (e *Engine) correct(h held, delta int64) {
	if delta == 0 || len(h.counters) == 0 {
		return
	}
	s := steps.Get().(*step)
	defer steps.Put(s)
	s.corrections = slices.Grow(s.corrections[:0], len(h.counters))[:len(h.counters)]
	for i := range h.counters {
		s.corrections[i] = window.Correction{Key: h.counters[i].key, Delta: delta}
	}
	e.coordinator.Correct(h.at, s.corrections)
}
