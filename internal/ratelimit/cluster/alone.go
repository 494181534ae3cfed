package cluster

import (
	"github.com/durward-gateway/durward/internal/ratelimit/limit"
	"github.com/durward-gateway/durward/internal/ratelimit/window"
)

// held returns the charges of a step with the limits that apply to this node alone.
func (c *Coordinator) held(charges []window.Charge) []window.Charge {
	if c.failure != Local {
		return charges
	}
	nodes := c.census.count()
	mine := make([]window.Charge, len(charges))
	for i, charge := range charges {
		if charge.Limit > 0 {
			charge.Limit = max(charge.Limit/nodes, 1)
		}
		mine[i] = charge
	}
	return mine
}

func (c *Coordinator) chargeAlone(charges []window.Charge, states []window.State) (limit.Verdict, error) {
	if c.alone != nil {
		c.alone()
	}
	if c.failure == Closed {
		return limit.Verdict{}, ErrClosed
	}
	here, ok := c.own.Charge(c.held(charges), states)
	if ok {
		for i := range charges {
			c.owe(charges[i].Key, 0, charges[i].Amount)
		}
	}
	return limit.Verdict{OK: ok, Degraded: true, At: slot(0, here)}, nil
}

func (c *Coordinator) lookAlone(charges []window.Charge, states []window.State) (limit.Verdict, error) {
	if c.failure == Closed {
		return limit.Verdict{}, ErrClosed
	}
	return limit.Verdict{OK: c.own.Look(c.held(charges), states), Degraded: true}, nil
}
