package limit

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/durward-gateway/durward/internal/ratelimit/window"
)

// Cost holds the amounts to charge for a call.
type Cost struct {
	// Requests is the number of JSON-RPC requests with an id (each one in a batch), /sse openings or LLM calls. With 0
	// the counters of requests are neither checked nor charged.
	Requests int64
	// Tokens is the number of tokens to reserve. With 0 the counters of tokens are still checked: a full one refuses.
	Tokens int64
}

// Engine counts calls.
type Engine struct{ coordinator Coordinator }

// NewEngine makes an engine that uses a coordinator's counters.
func NewEngine(c Coordinator) *Engine { return &Engine{coordinator: c} }

// step holds the buffers that a step passes to the coordinator.
type step struct {
	charges     []window.Charge
	states      []window.State
	corrections []window.Correction
}

var steps = sync.Pool{New: func() any { return new(step) }}

// fill sets the step's charges to cost for each counter of m, except those that without (which may be nil) has as well, and
// returns the charged counters in the same order.
func (s *step) fill(m *Matched, cost Cost, without *Matched) []counted {
	asked := m.counters
	if cost.Requests <= 0 {
		asked = asked[m.requests:]
	}
	if without != nil {
		asked = slices.DeleteFunc(slices.Clone(asked), func(c counted) bool { return without.has(c.key) })
	}
	s.charges = slices.Grow(s.charges[:0], len(asked))[:len(asked)]
	s.states = slices.Grow(s.states[:0], len(asked))[:len(asked)]
	clear(s.states)
	for i := range asked {
		c, charge := &asked[i], &s.charges[i]
		charge.Key, charge.Limit, charge.Amount = c.key, c.most, cost.Requests
		if c.tokens {
			charge.Amount = cost.Tokens
		}
	}
	return asked
}

// Look says whether a full counter would refuse a call of one request. It charges nothing.
func (e *Engine) Look(ctx context.Context, m *Matched) (*Refusal, error) {
	if len(m.counters) == 0 {
		return nil, nil
	}
	s := steps.Get().(*step)
	defer steps.Put(s)
	asked := s.fill(m, Cost{Requests: 1}, nil)
	v, err := e.coordinator.Look(ctx, s.charges, s.states)
	if err != nil {
		return nil, fmt.Errorf("looking at rate limits: %w", err)
	}
	if !v.OK {
		return refusal(m, asked, s.states, v), nil
	}
	return nil, nil
}

// Add charges tokens that were already used, so nothing can refuse them.
func (e *Engine) Add(m *Matched, tokens int64) {
	e.correct(held{counters: m.counters[m.requests:]}, max(tokens, 0))
}

// Charge checks and charges every counter of a call in one step. Exactly one of its results is not nil: a permit, a
// refusal (nothing was charged), or an error of the coordinator. A call must not be let through on an error.
//
// The reserved tokens stay charged until the permit is settled.
func (e *Engine) Charge(ctx context.Context, m *Matched, cost Cost) (*Permit, *Refusal, error) {
	cost = Cost{Requests: max(cost.Requests, 0), Tokens: max(cost.Tokens, 0)}
	p := &Permit{engine: e, requests: cost.Requests, reserved: cost.Tokens}
	refused, err := p.charge(ctx, m, nil)
	if refused != nil || err != nil {
		return nil, refused, err
	}
	return p, nil, nil
}

// Take charges tokens for a caller that learns of them piece by piece, as an event stream does. Each piece is charged
// alone and needs no settling. The stream ends when a piece is refused.
func (e *Engine) Take(ctx context.Context, m *Matched, tokens int64) (*Refusal, error) {
	s := steps.Get().(*step)
	defer steps.Put(s)
	asked := s.fill(m, Cost{Tokens: max(tokens, 0)}, nil)
	if len(asked) == 0 {
		return nil, nil
	}
	v, err := e.coordinator.Charge(ctx, s.charges, s.states)
	if err != nil {
		return nil, fmt.Errorf("charging rate limits: %w", err)
	}
	if !v.OK {
		return refusal(m, asked, s.states, v), nil
	}
	return nil, nil
}
