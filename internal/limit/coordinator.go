package limit

import (
	"context"

	"github.com/durward-gateway/durward/internal/window"
)

// Coordinator keeps the counters. [Local] keeps them in this process; others may share them between nodes through a
// database.
//
// Each call is one step over all it names, so that an implementation needs one round trip for it, and may send the
// steps of many requests together. An implementation owns its deadline: within some 20 ms it must answer, from what it
// shares with the other nodes or, when it cannot reach them and its configuration says so, alone (Degraded). It
// returns an error when neither is allowed; nobody may be let through on one.
//
// It must be safe for concurrent use, and must not keep or change what it is given.
type Coordinator interface {
	// Charge charges all of charges when each has room, none otherwise. states is as long as charges and is filled with
	// what became of each.
	Charge(ctx context.Context, charges []window.Charge, states []window.State) (Verdict, error)
	// Look is Charge without its charge.
	Look(ctx context.Context, charges []window.Charge, states []window.State) (Verdict, error)
	// Correct settles what was charged at a slot. It is called once for each charge, often after the request's context
	// has ended, and does not wait for other nodes; an implementation that cannot deliver a correction keeps the
	// estimate.
	Correct(at window.Slot, corrections []window.Correction)
	// Used fills used, as long as keys, with what the counters hold.
	Used(ctx context.Context, keys []window.Key, used []int64) (Verdict, error)
	// Members gives the counters of a group that hold something, in no order.
	Members(ctx context.Context, group window.Digest) ([]window.Member, error)
}

// Verdict is what a Coordinator says of a step.
type Verdict struct {
	OK       bool        // every charge has room
	Degraded bool        // this node answered alone: others may have let through more
	At       window.Slot // where Charge charged, for Correct
}

// Local counts in this process. It is exact, and never degraded.
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
