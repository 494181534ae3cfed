package window

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestParallelCallsAreExact covers T01 and P9: of 1,000 parallel calls under a limit of 100 exactly 100 pass, with one
// counter and with four counters at a time.
func TestParallelCallsAreExact(t *testing.T) {
	for round := range 20 {
		w := New(newClock().now)
		var passed atomic.Int64
		var wait sync.WaitGroup
		gate := make(chan struct{})
		for i := range 1000 {
			wait.Go(func() {
				<-gate
				charges := []Charge{
					{Key: key("org", ""), Amount: 1, Limit: 100},
					{Key: key("user", string(rune(i%7))), Amount: 1, Limit: 1000},
					{Key: key("model", ""), Amount: 2, Limit: 1000},
					{Key: key("key", string(rune(i))), Amount: 1, Limit: 1},
				}
				rand.Shuffle(len(charges), func(a, b int) { charges[a], charges[b] = charges[b], charges[a] })
				if _, ok := w.Charge(charges, nil); ok {
					passed.Add(1)
				}
			})
		}
		close(gate)
		wait.Wait()
		if passed.Load() != 100 || w.Used(key("org", "")) != 100 || w.Used(key("model", "")) != 200 {
			t.Fatalf("round %d: %d passed, %d and %d counted", round, passed.Load(), w.Used(key("org", "")), w.Used(key("model", "")))
		}
		var users int64
		for _, m := range w.Members(NewDigest("user")) {
			users += m.Used
		}
		if users != 100 {
			t.Fatalf("round %d: users hold %d", round, users)
		}
	}
}

// TestExactUnderContention covers P9. Eight goroutines charge, are refused, settle, look and sweep at once while time
// goes on. Afterwards every counter holds exactly the charges minus the refunds.
func TestExactUnderContention(t *testing.T) {
	c := newClock()
	w := New(c.now)
	const workers, rounds, counters = 8, 20_000, 12
	keys := make([]Key, counters)
	for i := range keys {
		keys[i] = key("k", string(rune('a'+i)))
	}
	var kept [counters]atomic.Int64
	var wait sync.WaitGroup
	for g := range workers {
		random := rand.New(rand.NewPCG(1, uint64(g))) //nolint:gosec // a repeatable order of steps, no secret
		wait.Go(func() {
			for round := range rounds {
				var charges []Charge
				var which []int
				for _, i := range random.Perm(counters)[:1+random.IntN(5)] {
					limit := int64(1 << 40)
					if i == 0 {
						limit = 1000 // fills, and then refuses for all
					}
					charges = append(charges, Charge{Key: keys[i], Amount: 1 + random.Int64N(100), Limit: limit})
					which = append(which, i)
				}
				if at, ok := w.Charge(charges, nil); ok {
					var corrections []Correction
					for j, i := range which {
						actual := charges[j].Amount
						switch random.IntN(3) {
						case 0:
							actual = random.Int64N(actual + 1)
						case 1:
							if i != 0 {
								actual += random.Int64N(50)
							}
						}
						kept[i].Add(actual)
						corrections = append(corrections, Correction{Key: keys[i], Delta: actual - charges[j].Amount})
					}
					w.Correct(at, corrections)
				}
				switch {
				case round%1000 == 0:
					w.Sweep()
					w.Members(NewDigest("k"))
				case round%100 == 0 && g == 0:
					c.turn(200 * time.Millisecond) // 40 s in total: nothing expires
				case round%10 == 0:
					w.Look(charges, nil)
					if used := w.Used(keys[0]); used > 1000 {
						t.Errorf("%d of 1,000", used)
					}
				}
			}
		})
	}
	wait.Wait()
	for i := range keys {
		if got, want := w.Used(keys[i]), kept[i].Load(); got != want {
			t.Errorf("counter %d holds %d, charged were %d", i, got, want)
		}
	}
}
