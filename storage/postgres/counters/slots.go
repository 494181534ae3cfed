package counters

import (
	"context"
	"time"

	"github.com/durward-gateway/durward/storage"
)

// span is the maximum age of a slot that counts, in seconds; there are places for one second more.
const span = 60

// counter is a counter as it was last written. The zero value holds nothing.
type counter struct {
	last  int64
	slots []int64
}

// snapshot holds counters, and the time of the server when they were read, in microseconds.
type snapshot struct {
	counters map[storage.CounterKey]counter
	now      int64
}

func (c *Counters) read(ctx context.Context, query string, args ...any) (s snapshot, err error) {
	err = c.exchange(ctx, func(ctx context.Context) error {
		s = snapshot{counters: make(map[storage.CounterKey]counter)}
		rows, err := c.pool.Query(ctx, query, args...)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var key []byte
			var found counter
			if err := rows.Scan(&key, &found.last, &found.slots, &s.now); err != nil {
				return err
			}
			if len(key) == len(storage.CounterKey{}) && len(found.slots) == span+1 {
				s.counters[storage.CounterKey(key)] = found
			}
		}
		return rows.Err()
	})
	return s, err
}

// at returns the second in which the counter is at a time, and the first that counts in it. When a clock was set
// back, the counter's time stands still, as in durward_counters_at_1.
func (c counter) at(now int64) (second int64, ok bool) {
	second = now / 1e6
	if len(c.slots) == 0 || second-c.last > span || c.last-second > span+1 {
		return second, false
	}
	return max(second, c.last), true
}

func (c counter) used(now int64) (used int64) {
	second, ok := c.at(now)
	if !ok {
		return 0
	}
	for s := second - span; s <= c.last; s++ {
		used += c.slots[s%(span+1)]
	}
	return used
}

// state returns the result that a charge would have.
func (c counter) state(charge storage.CounterCharge, now int64) storage.CounterState {
	const longest = (span + 1) * time.Second
	need := max(charge.Amount, 1)
	state := storage.CounterState{Used: c.used(now)}
	switch over := state.Used + need - charge.Limit; {
	case over <= 0:
	case need > charge.Limit:
		state.Wait = longest
	default:
		second, _ := c.at(now)
		for s := second - span; s <= c.last; s++ {
			if over -= c.slots[s%(span+1)]; over <= 0 {
				state.Wait = min(max(time.Duration((s+span+1)*1e6-now)*time.Microsecond, 1), longest)
				break
			}
		}
	}
	return state
}
