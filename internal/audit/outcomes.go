package audit

import (
	"slices"

	"github.com/durward-gateway/durward/internal/audit/format"
	"github.com/durward-gateway/durward/storage"
)

// The outcomes of calls that end at about the same time make one record, since a record for each would cost a hash and a
// line. The record has the time of the last outcome, or of a record that was written before it although it is later. A
// single outcome makes a record of its own, unless an intent overtook it. Intents overtake waiting outcomes. Outcomes are
// written when there are format.MaxOutcomes of them, after laterDelay, and before anything that covers all records so far,
// such as a checkpoint.
const (
	// outcomeSize is the approximate length of an outcome in bytes.
	outcomeSize = 100
	// spareGroups is the number of lists of outcomes that are kept for reuse.
	spareGroups = 8
)

// Outcome records the outcome of a call within a few milliseconds. It counts the outcome as lost when that is not
// possible.
func (j *Journal) Outcome(organization string, o *storage.AuditOutcome) {
	j.later(organization, func(c *chain) { j.group(c, o) })
}

// group adds an outcome to those of its chain that wait for a record.
func (j *Journal) group(c *chain, o *storage.AuditOutcome) {
	// They may be far apart when the clock was changed, or when this one waited for a disk.
	if len(c.outcomes) > 0 && o.At.Sub(c.outcomes[0].At).Abs() >= format.GroupSpan/4 {
		j.closeGroup(c)
	}
	if len(c.outcomes) == 0 {
		j.grouping = append(j.grouping, c)
		if n := len(j.spare); n > 0 {
			c.outcomes, j.spare = j.spare[n-1], j.spare[:n-1]
		}
	}
	c.outcomes = append(c.outcomes, *o)
	j.grouped++
	if len(c.outcomes) == format.MaxOutcomes {
		j.closeGroup(c)
	}
}

// flushAll writes pending, with all outcomes that wait for a record.
func (j *Journal) flushAll() error {
	j.closeGroups()
	return j.flush()
}

// closeGroups puts all outcomes that wait for a record into pending.
func (j *Journal) closeGroups() {
	for _, c := range j.grouping {
		if len(c.outcomes) > 0 {
			j.closeGroup(c)
		}
	}
	clear(j.grouping)
	j.grouping = j.grouping[:0]
}

func (j *Journal) closeGroup(c *chain) {
	all := c.outcomes
	e := storage.AuditEntry{Kind: storage.AuditCall}
	last := slices.MaxFunc(all, func(a, b storage.AuditOutcome) int { return a.At.Compare(b.At) })
	// The record is not before any of its outcomes, because a backward reader must have an outcome before its intent. It
	// is also not before the intents that overtook the outcomes: exports are in the order of time, and chains must be
	// too. A much later time of an intent is ignored: the clock was put back after it.
	passed := c.latest.After(last.At) && c.latest.Sub(last.At) < format.GroupSpan/2
	if len(all) > 1 || passed {
		e.At, e.Event, e.Outcomes = last.At, "outcomes", all
		if passed {
			e.At = c.latest
		}
		e.ID = format.NewID(e.At)
	} else {
		e.At, e.Event, e.Outcome, e.Duration, e.UpstreamStatus = last.At, format.UsualEvent(true), last.Outcome, last.Duration, last.UpstreamStatus
		e.Call = format.WholeID(last.Call, last.At.UnixNano()-int64(last.Duration))
	}
	j.add(c, &e, len(all))
	j.grouped -= len(all)
	c.outcomes = nil
	if len(j.spare) < spareGroups {
		clear(all)
		j.spare = append(j.spare, all[:0])
	}
}
