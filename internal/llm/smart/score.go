package smart

import (
	"slices"

	"github.com/durward-gateway/durward/storage"
)

// Score compares a policy's decisions on labelled examples with the expected ones. It also compares them with the
// simplest alternative: always the same slot. It is not safe for concurrent use.
type Score struct {
	Slots []storage.ModelSlot
	// Confusion counts examples by their expected slot, then by the slot that they went to.
	Confusion [][]int
	// Reasons counts the reasons of the decisions.
	Reasons map[Reason]int
	// Missed lists the examples that went elsewhere, in the order of their lines.
	Missed []Miss
}

// Miss is an example that did not go to its expected slot.
type Miss struct {
	Line   int    `json:"line"`
	Want   int    `json:"want"`
	Slot   int    `json:"slot"`
	Reason Reason `json:"reason"`
}

// NewScore makes an empty Score.
func NewScore(slots []storage.ModelSlot) *Score {
	s := &Score{Slots: slots, Confusion: make([][]int, len(slots)), Reasons: make(map[Reason]int)}
	for i := range s.Confusion {
		s.Confusion[i] = make([]int, len(slots))
	}
	return s
}

// Add counts an example and the slot that it went to. The slot is one of the policy's.
func (s *Score) Add(e Example, slot int, reason Reason) {
	s.Confusion[e.Want][slot]++
	s.Reasons[reason]++
	if e.Want == slot {
		return
	}
	at, _ := slices.BinarySearchFunc(s.Missed, e.Line, func(m Miss, line int) int { return m.Line - line })
	s.Missed = slices.Insert(s.Missed, at, Miss{e.Line, e.Want, slot, reason})
}

// Examples returns the number of examples.
func (s *Score) Examples() (n int) {
	for want := range s.Confusion {
		n += s.Wanted(want)
	}
	return n
}

// Right returns the number of examples that went to their expected slot.
func (s *Score) Right() (n int) {
	for slot := range s.Confusion {
		n += s.Confusion[slot][slot]
	}
	return n
}

// Low returns the number of examples that went to a slot below the expected one, which cannot do what they need. High
// returns the number that went above it, which costs more than they need.
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

// Wanted returns the number of examples that should go to a slot. Always choosing that slot would get these right.
func (s *Score) Wanted(slot int) int { return s.count(func(want, _ int) bool { return want == slot }) }

// Chosen returns the number of examples that went to a slot.
func (s *Score) Chosen(slot int) int {
	return s.count(func(_, chosen int) bool { return chosen == slot })
}

// Failed returns the number of examples for which the determiner failed.
func (s *Score) Failed() (n int) {
	for reason, examples := range s.Reasons {
		if reason.Failed() {
			n += examples
		}
	}
	return n
}

// Baseline returns the slot that does best when it is always chosen; of several, the lowest.
func (s *Score) Baseline() (slot int) {
	for other := range s.Slots {
		if s.Wanted(other) > s.Wanted(slot) {
			slot = other
		}
	}
	return slot
}

// Worse reports whether always choosing one slot gets more right than the policy.
func (s *Score) Worse() bool { return s.Right() < s.Wanted(s.Baseline()) }
