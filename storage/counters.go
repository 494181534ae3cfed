package storage

import (
	"context"
	"errors"
	"time"
)

// SharedCounters keeps counters of the last 60 seconds for several nodes, in slots of one second of the server's own
// clock, as internal/ratelimit/window does in one process. Every method is one exchange with the server, and has the caller's
// context as its only deadline. It is safe for concurrent use.
type SharedCounters interface {
	// Charge charges all of charges when each has room, none otherwise, in one step. Charges of one key add up.
	// states is as long as charges and receives the result of each. at is the second of the charge, for Correct;
	// never 0. When ctx ends first, the step may have been made or not. ErrCountersLost says that the counters are
	// not those of epoch; nothing was charged.
	Charge(ctx context.Context, epoch CounterEpoch, charges []CounterCharge, states []CounterState) (at uint32, ok bool, err error)
	// Look checks like Charge but charges nothing; it makes no counter, and never fails with ErrCountersLost.
	Look(ctx context.Context, epoch CounterEpoch, charges []CounterCharge, states []CounterState) (ok bool, err error)
	// Correct changes earlier charges. A delta below 0 is given back in its second, at most down to zero. A delta
	// above 0 is charged now, whatever the limit. ErrCountersLost is as for Charge.
	Correct(ctx context.Context, epoch CounterEpoch, corrections []CounterCorrection) error
	// Restore charges calls of some seconds ago, whatever the limit. ErrCountersLost is as for Charge.
	Restore(ctx context.Context, epoch CounterEpoch, spent []CounterSpent) error
	// Used fills used, as long as keys, with the values of counters.
	Used(ctx context.Context, epoch CounterEpoch, keys []CounterKey, used []int64) error
	// Members returns the non-empty counters whose keys begin with group, in no order. Those whose key has only zeros
	// behind it need not be among them.
	Members(ctx context.Context, epoch CounterEpoch, group [16]byte) ([]CounterMember, error)
	// Beat says that a node is alive, and in which epoch the counters know its charges: AnyEpoch when it has none.
	// Where there is no epoch, one begins. Beat also deletes counters that are no longer charged.
	Beat(ctx context.Context, node string, known CounterEpoch) (CounterBeat, error)
	// Close closes the counters. Running calls may fail.
	Close() error
}

// CounterEpoch names counters from their creation until the server loses them. It is above 0, and no two are the
// same.
type CounterEpoch int64

// AnyEpoch means the present epoch, whichever it is.
const AnyEpoch CounterEpoch = -1

// CounterBeat holds a server's facts about nodes.
type CounterBeat struct {
	Epoch CounterEpoch
	Age   time.Duration // of the epoch, by the server's clock
	Nodes int           // that beat within NodeLife, including the one that asks
	Told  int           // whose charges the counters of the epoch know
}

// ErrCountersLost says that the server has lost the counters of the epoch.
var ErrCountersLost = errors.New("the counters do not know what nodes have let through")

// NodeLife is the time for which a node counts as alive after a beat.
const NodeLife = time.Second

// CounterKey names a counter.
type CounterKey [32]byte

// CounterCharge is a charge to one counter. Amount 0 charges nothing but needs room for one. Amount and limit are
// from 0 to 2^48-1, or 2^48 for an amount that never fits.
type CounterCharge struct {
	Key           CounterKey
	Amount, Limit int64
}

// CounterState holds the result of a charge: the counter's value, and the time until the charge has room, 0 when it
// has.
type CounterState struct {
	Used int64
	Wait time.Duration
}

// CounterCorrection changes the charge of a second.
type CounterCorrection struct {
	Key   CounterKey
	At    uint32 // of Charge; ignored when Delta is above 0
	Delta int64
}

// CounterSpent is a charge to a counter so many seconds ago, at most 60.
type CounterSpent struct {
	Key    CounterKey
	Age    uint32
	Amount int64
}

// CounterMember is one counter of a group: the second half of its key.
type CounterMember struct {
	Member [16]byte
	Used   int64
}
