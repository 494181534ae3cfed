package limit

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/durward-gateway/durward/internal/window"
)

// Cost is what a call is charged.
type Cost struct {
	// Requests is the number of JSON-RPC requests with an id (each of a batch), /sse openings or LLM calls. With 0 the
	// counters of requests are neither asked nor charged.
	Requests int64
	// Tokens is how many to reserve. With 0 the counters of tokens are asked all the same: one that is full refuses.
	Tokens int64
}

// Engine counts calls.
type Engine struct{ coordinator Coordinator }

// NewEngine makes an engine over a coordinator's counters.
func NewEngine(c Coordinator) *Engine { return &Engine{coordinator: c} }

// step is room for what a step passes to the coordinator.
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

// Look says whether a call of one request would be refused, because a counter is full. Nothing is charged.
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

// Add charges tokens that nothing can refuse any more, because they were used.
func (e *Engine) Add(m *Matched, tokens int64) {
	e.correct(held{counters: m.counters[m.requests:]}, max(tokens, 0))
}

// Charge checks and charges every counter of a call in one step. Exactly one of its results is not nil: a permit, a
// refusal (nothing was charged), or an error of the coordinator, on which nobody may be let through.
//
// Tokens of the permit stay charged as reserved until it is settled.
func (e *Engine) Charge(ctx context.Context, m *Matched, cost Cost) (*Permit, *Refusal, error) {
	cost = Cost{Requests: max(cost.Requests, 0), Tokens: max(cost.Tokens, 0)}
	p := &Permit{engine: e, requests: cost.Requests, reserved: cost.Tokens}
	refused, err := p.charge(ctx, m, nil)
	if refused != nil || err != nil {
		return nil, refused, err
	}
	return p, nil, nil
}

// Take is Charge for what learns of tokens piece by piece, as an event stream does: each piece is charged by itself, nothing
// is left to be settled, and the stream ends when one is refused.
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
