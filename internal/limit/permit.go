package limit

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/durward-gateway/durward/internal/window"
)

// Permit is a call that was let through, until its tokens are settled. Whoever has one ends it with Settle, Close or
// Cancel, whatever became of the call; the first of them counts and later ones do nothing, so that Close can be deferred. It
// is safe for concurrent use.
type Permit struct {
	engine   *Engine
	requests int64
	reserved int64

	mu       sync.Mutex
	ended    bool
	degraded bool
	matched  *Matched // where the call is now
	held     []held   // the tokens that are not settled
	first    held     // the requests of the first step
	place    [1]held  // of held, which mostly needs no more
}

// held is tokens, or requests, that were charged in one step.
type held struct {
	at       window.Slot
	counters []counted
}

// errEnded is the answer to moving a permit that was settled or closed, errExtended to extending one that has tokens.
var (
	errEnded    = errors.New("the permit has ended")
	errExtended = errors.New("the permit has tokens already")
)

// Reserved is how many tokens were reserved.
func (p *Permit) Reserved() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.reserved
}

// Degraded reports whether this node let the call through without the others.
func (p *Permit) Degraded() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.degraded
}

// Extend takes a call that was charged without tokens, because nobody knew yet where it goes, to where it goes: its tokens
// are reserved there, and its requests charged where they are not yet. When that is refused nothing changes.
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

// rest is the counters that a call which goes to has not been charged in: those of tokens, and of requests where it was not yet.
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

// Again is Move for a call that may have used something where it is, which is settled as that much, and of which as much as at first is
// reserved where it goes (attack T07). Requests count once. When that is refused nothing changes.
func (p *Permit) Again(ctx context.Context, to *Matched, used int64) (*Refusal, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return nil, errEnded
	}
	before := slices.Clone(p.held) // charge puts the next one in its place
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

// Cancel takes back what a call was charged at first, its requests too: it was refused in a later step. It reports whether it
// was the first to end the permit.
func (p *Permit) Cancel() bool {
	if !p.Settle(0) {
		return false
	}
	p.engine.correct(p.first, -p.requests)
	return true
}

// Move takes the call to another target, as a fallback does that has another provider or model. What counts here and
// there stays as it is. What counts there alone is charged as the call was at first; when that is refused nothing
// changes. What counted here alone gets its tokens back and keeps the request, which was made.
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

// charge charges the counters of m that without, which may be nil, does not have, and holds their tokens.
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

// requestsIn is how many of the counters, which come first, count requests.
func requestsIn(counters []counted) int {
	for i := range counters {
		if counters[i].tokens {
			return i
		}
	}
	return len(counters)
}

// Settle corrects the reservation to the tokens that were used: what is too much goes back to where it was reserved,
// what is missing is charged now. A call that came to nothing settles with 0. It reports whether it was the first.
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

// Close leaves the tokens as they were reserved, for a call of which nobody learnt what it used (attack T07). It reports whether
// it was the first to end the permit.
func (p *Permit) Close() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	first := !p.ended
	p.ended, p.held = true, nil
	return first
}

// correct changes what was charged for the held counters by delta.
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
