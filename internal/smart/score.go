package smart

import (
	"slices"

	"github.com/durward-gateway/durward/storage"
)

// Score holds what a policy decided about labelled examples against what it should have, and against what it would cost
// nothing to do: always taking the same slot. It is not safe for concurrent use.
type Score struct {
	Slots []storage.ModelSlot
	// Confusion counts examples by the slot that they should go to, then by the slot that they went to.
	Confusion [][]int
	// Reasons counts what chose.
	Reasons map[Reason]int
	// Missed are the examples that went elsewhere, in the order of their lines.
	Missed []Miss
}

// Miss is an example that did not go where it should.
type Miss struct {
	Line   int    `json:"line"`
	Want   int    `json:"want"`
	Slot   int    `json:"slot"`
	Reason Reason `json:"reason"`
}

// NewScore makes a Score of nothing yet.
func NewScore(slots []storage.ModelSlot) *Score {
	s := &Score{Slots: slots, Confusion: make([][]int, len(slots)), Reasons: make(map[Reason]int)}
	for i := range s.Confusion {
		s.Confusion[i] = make([]int, len(slots))
	}
	return s
}

// Add counts an example and the slot, one of the policy's, that it went to.
func (s *Score) Add(e Example, slot int, reason Reason) {
	s.Confusion[e.Want][slot]++
	s.Reasons[reason]++
	if e.Want == slot {
		return
	}
	at, _ := slices.BinarySearchFunc(s.Missed, e.Line, func(m Miss, line int) int { return m.Line - line })
	s.Missed = slices.Insert(s.Missed, at, Miss{e.Line, e.Want, slot, reason})
}

// Examples is how many there were.
func (s *Score) Examples() (n int) {
	for want := range s.Confusion {
		n += s.Wanted(want)
	}
	return n
}

// Right is how many of them went where they should.
func (s *Score) Right() (n int) {
	for slot := range s.Confusion {
		n += s.Confusion[slot][slot]
	}
	return n
}

// Low is how many went to a slot below the one that they should go to, which cannot do what they need; High is how many
// went above it, which costs more than they need.
func (s *Score) Low() int { return s.count(func(want, slot int) bool { return slot < want }) }

// High is described at Low.
func (s *Score) High() int { return s.count(func(want, slot int) bool { return slot > want }) }

func (s *Score) count(of func(want, slot int) bool) (n int) {
	for want, row := range s.Confusion {
		for slot, examples := range row {
			if of(want, slot) {
				n += examples
			}
		}
	}
	return n
}

// Wanted is how many examples should go to a slot: what always taking it would get right.
func (s *Score) Wanted(slot int) int { return s.count(func(want, _ int) bool { return want == slot }) }

// Chosen is how many examples went to a slot.
func (s *Score) Chosen(slot int) int {
	return s.count(func(_, chosen int) bool { return chosen == slot })
}

// Failed is for how many examples the determiner was asked in vain.
func (s *Score) Failed() (n int) {
	for reason, examples := range s.Reasons {
		if reason.Failed() {
			n += examples
		}
	}
	return n
}

// Baseline is the slot that does best when it is always taken, the lowest of them.
func (s *Score) Baseline() (slot int) {
	for other := range s.Slots {
		if s.Wanted(other) > s.Wanted(slot) {
			slot = other
		}
	}
	return slot
}

// Worse reports whether always taking one slot gets more right than the policy.
func (s *Score) Worse() bool { return s.Right() < s.Wanted(s.Baseline()) }
