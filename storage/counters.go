package storage

import (
	"context"
	"errors"
	"time"
)

// SharedCounters keeps counters of the last 60 seconds for several nodes, in slots of one second of the server's own
// clock, as internal/window does in one process. Every method is one exchange with the server, and has the caller's
// context as its only deadline. It is safe for concurrent use.
type SharedCounters interface {
	// Charge charges all of charges when each has room, none otherwise, in one step. Charges of one key add up. states is
	// as long as charges and says what became of each. at is the second in which it charged, for Correct; never 0. When
	// ctx ends first, the step may have been made or not. ErrCountersLost: the counters are not those of epoch; nothing was
	// charged.
	Charge(ctx context.Context, epoch CounterEpoch, charges []CounterCharge, states []CounterState) (at uint32, ok bool, err error)
	// Look is Charge without its charge; it makes no counter, and never fails with ErrCountersLost.
	Look(ctx context.Context, epoch CounterEpoch, charges []CounterCharge, states []CounterState) (ok bool, err error)
	// Correct changes what was charged: below 0 is given back in its second, at most what is there, above 0 is charged
	// now, whatever the limit. ErrCountersLost is as of Charge.
	Correct(ctx context.Context, epoch CounterEpoch, corrections []CounterCorrection) error
	// Restore charges what was let through some seconds ago, whatever the limit. ErrCountersLost is as of Charge.
	Restore(ctx context.Context, epoch CounterEpoch, spent []CounterSpent) error
	// Used fills used, as long as keys, with what counters hold.
	Used(ctx context.Context, epoch CounterEpoch, keys []CounterKey, used []int64) error
	// Members gives the counters whose keys begin with group and that hold something, in no order. Those whose key has
	// nothing but zeros behind it need not be among them.
	Members(ctx context.Context, epoch CounterEpoch, group [16]byte) ([]CounterMember, error)
	// Beat says that a node lives, and in which epoch counters know what it has let through: AnyEpoch when that is nothing.
	// Where there is no epoch, one begins. It also forgets counters that nobody charges any more.
	Beat(ctx context.Context, node string, known CounterEpoch) (CounterBeat, error)
	// Close ends it. Calls that run may fail.
	Close() error
}

// CounterEpoch names counters from when they were made until the server loses them. It is above 0, and no two are the same.
type CounterEpoch int64

// AnyEpoch is whichever there is.
const AnyEpoch CounterEpoch = -1

// CounterBeat is what a server knows of nodes.
type CounterBeat struct {
	Epoch CounterEpoch
	Age   time.Duration // of the epoch, by the server's clock
	Nodes int           // that said within NodeLife that they live, the one that asks included
	Told  int           // of which the counters of the epoch know what they have let through
}

// ErrCountersLost: the server has lost the counters that the epoch names.
var ErrCountersLost = errors.New("the counters do not know what nodes have let through")

// NodeLife is for how long a node counts as living after a beat.
const NodeLife = time.Second

// CounterKey names a counter.
type CounterKey [32]byte

// CounterCharge is what one counter is asked to take. Amount 0 charges nothing but needs room for one. Amount and limit
// are from 0 to 2^48-1, or 2^48 for an amount that never fits.
type CounterCharge struct {
	Key           CounterKey
	Amount, Limit int64
}

// CounterState is what became of a charge: what the counter holds, and how long it takes until the charge has room, 0
// when it has.
type CounterState struct {
	Used int64
	Wait time.Duration
}

// CounterCorrection changes what was charged at a second.
type CounterCorrection struct {
	Key   CounterKey
	At    uint32 // of Charge; not looked at when Delta is above 0
	Delta int64
}

// CounterSpent is what a counter took so many seconds ago, at most 60.
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
