package limit

import (
	"context"

	"github.com/durward-gateway/durward/internal/ratelimit/window"
)

// Coordinator keeps the counters. [Local] keeps them in this process; others may share them between nodes through a
// database.
//
// Each call is one step over all counters that it names. So an implementation needs one round trip for it, and may send
// the steps of many requests together. An implementation owns its deadline: it must answer within some 20 ms. It
// answers from the state shared with the other nodes. When it cannot reach them and its configuration allows it, it
// answers alone (Degraded). It returns an error when neither is possible; a call must not be let through on an error.
//
// It must be safe for concurrent use, and must not keep or change its arguments.
type Coordinator interface {
	// Charge makes all of charges when each has room, and none otherwise. states is as long as charges and receives the
	// outcome of each.
	Charge(ctx context.Context, charges []window.Charge, states []window.State) (Verdict, error)
	// Look does the same as Charge but charges nothing.
	Look(ctx context.Context, charges []window.Charge, states []window.State) (Verdict, error)
	// Correct settles a charge that was made at a slot. It is called once for each charge, often after the request's
	// context has ended, and does not wait for other nodes. An implementation that cannot deliver a correction keeps
	// the estimate.
	Correct(at window.Slot, corrections []window.Correction)
	// Used fills used with the values of the counters. used is as long as keys.
	Used(ctx context.Context, keys []window.Key, used []int64) (Verdict, error)
	// Members returns the counters of a group that hold something, in no order.
	Members(ctx context.Context, group window.Digest) ([]window.Member, error)
}

// Verdict holds a Coordinator's answer to a step.
type Verdict struct {
	OK       bool        // every charge has room
	Degraded bool        // this node answered alone: other nodes may have let through more
	At       window.Slot // the slot of the charge, for Correct
}

// Local counts in this process. It is exact and never degraded.
type Local struct{ Counters *window.Counters }

// Charge implements Coordinator.
func (l Local) Charge(_ context.Context, charges []window.Charge, states []window.State) (Verdict, error) {
	at, ok := l.Counters.Charge(charges, states)
	return Verdict{OK: ok, At: at}, nil
}

// Look implements Coordinator.
func (l Local) Look(_ context.Context, charges []window.Charge, states []window.State) (Verdict, error) {
	return Verdict{OK: l.Counters.Look(charges, states)}, nil
}

// Correct implements Coordinator.
func (l Local) Correct(at window.Slot, corrections []window.Correction) {
	l.Counters.Correct(at, corrections)
}

// Used implements Coordinator.
func (l Local) Used(_ context.Context, keys []window.Key, used []int64) (Verdict, error) {
	for i, k := range keys {
		used[i] = l.Counters.Used(k)
	}
	return Verdict{OK: true}, nil
}

// Members implements Coordinator.
func (l Local) Members(_ context.Context, group window.Digest) ([]window.Member, error) {
	return l.Counters.Members(group), nil
}
