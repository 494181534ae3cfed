package audit

import (
	"slices"
	"strconv"
	"time"

	"github.com/durward-gateway/durward/storage"
)

// The outcomes of calls that end at about the same time make one record, since a record for each would cost a hash and a
// line. The record has the time of the last outcome, or of a record that was written before it although it is later. Each
// outcome in it is
//
//	["<id of the call>",<nanoseconds before that time>,"error",<duration in nanoseconds>,<upstream status>]
//
// or, when it is "ok" with status 200,
//
//	["<id of the call>",<nanoseconds before that time>,<duration in nanoseconds>]
//
// A brief id (see brief.go) is that of an intent whose time is the outcome's less the duration. A single outcome makes a
// record of its own, unless an intent overtook it. Intents overtake waiting outcomes. Outcomes are written when there are
// maxOutcomes of them, after laterDelay, and before anything that covers all records so far, such as a checkpoint.
const (
	groupName = 'B' // the member's name in the short form
	// maxOutcomes is part of the format: a reader refuses a list that has more.
	maxOutcomes = 64
	// groupSpan is more than the time between an outcome and its record. A reader that reads so much further finds the
	// outcome.
	groupSpan = time.Second
	// outcomeSize is the approximate length of an outcome in bytes.
	outcomeSize = 100
	// spareGroups is the number of lists of outcomes that are kept for reuse.
	spareGroups = 8

	usualOutcome = "ok"
	usualStatus  = 200
)

// Outcome records the outcome of a call within a few milliseconds. It counts the outcome as lost when that is not
// possible.
func (j *Journal) Outcome(organization string, o *storage.AuditOutcome) {
	j.later(organization, func(c *chain) { j.group(c, o) })
}

// group adds an outcome to those of its chain that wait for a record.
func (j *Journal) group(c *chain, o *storage.AuditOutcome) {
	// They may be far apart when the clock was changed, or when this one waited for a disk.
	if len(c.outcomes) > 0 && o.At.Sub(c.outcomes[0].At).Abs() >= groupSpan/4 {
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
	if len(c.outcomes) == maxOutcomes {
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
	passed := c.latest.After(last.At) && c.latest.Sub(last.At) < groupSpan/2
	if len(all) > 1 || passed {
		e.At, e.Event, e.Outcomes = last.At, "outcomes", all
		if passed {
			e.At = c.latest
		}
		e.ID = NewID(e.At)
	} else {
		e.At, e.Event, e.Outcome, e.Duration, e.UpstreamStatus = last.At, usualEvent(true), last.Outcome, last.Duration, last.UpstreamStatus
		e.Call = wholeID(last.Call, last.At.UnixNano()-int64(last.Duration))
	}
	j.add(c, &e, len(all))
	j.grouped -= len(all)
	c.outcomes = nil
	if len(j.spare) < spareGroups {
		clear(all)
		j.spare = append(j.spare, all[:0])
	}
}

// appendOutcomes appends the outcomes of an entry with the time at.
func appendOutcomes(b []byte, at time.Time, all []storage.AuditOutcome) []byte {
	b = append(appendName(b, groupName), '[')
	last := at.UnixNano()
	for i := range all {
		o := &all[i]
		if i > 0 {
			b = append(b, ',')
		}
		b = append(appendText(append(b, '['), o.Call), ',')
		b = append(strconv.AppendInt(b, last-o.At.UnixNano(), 10), ',')
		if o.Outcome == usualOutcome && o.UpstreamStatus == usualStatus {
			b = append(strconv.AppendInt(b, int64(o.Duration), 10), ']')
			continue
		}
		b = append(appendText(b, o.Outcome), ',')
		b = append(strconv.AppendInt(b, int64(o.Duration), 10), ',')
		b = append(strconv.AppendInt(b, int64(o.UpstreamStatus), 10), ']')
	}
	return append(b, ']')
}

// expandOutcomes appends the long form of outcomes. It is not ok when the value, which is JSON, is no list of outcomes.
func expandOutcomes(b, value []byte, at int64) (long []byte, ok bool) {
	var all [maxOutcomes][]byte
	n, ok := elements(value, all[:])
	if !ok {
		return nil, false
	}
	b = append(b, '[')
	for i, one := range all[:n] {
		var o [5][]byte
		switch n, ok := elements(one, o[:]); {
		case ok && n == 3:
			o[3] = o[2]
			o[2], o[4] = usualElements[0], usualElements[1]
		case !ok || n < len(o):
			return nil, false
		}
		before, err := strconv.ParseInt(string(o[1]), 10, 64)
		if err != nil {
			return nil, false
		}
		if i > 0 {
			b = append(b, ',')
		}
		call := o[0]
		if id := unquoted(call); isBrief(id) {
			duration, err := strconv.ParseInt(string(o[3]), 10, 64)
			if err != nil {
				return nil, false
			}
			call = []byte(`"` + wholeID(id, at-before-duration) + `"`)
		}
		b = append(append(b, `{"call":`...), call...)
		b = appendTime(append(b, `,"time":`...), at-before)
		b = append(append(b, `,"outcome":`...), o[2]...)
		b = append(append(b, `,"duration_ns":`...), o[3]...)
		b = append(append(append(b, `,"upstream_status":`...), o[4]...), '}')
	}
	return append(b, ']'), true
}

var usualElements = [...][]byte{[]byte(`"` + usualOutcome + `"`), strconv.AppendInt(nil, usualStatus, 10)}

// elements splits a list, which is JSON without blanks, into its elements. It is not ok for other values, and for lists
// with more elements than room: a crafted list takes no more memory.
func elements(list []byte, room [][]byte) (n int, ok bool) {
	if len(list) < 2 || list[0] != '[' || list[len(list)-1] != ']' {
		return 0, false
	}
	for rest := list[1 : len(list)-1]; len(rest) > 0; n++ {
		if n == len(room) {
			return 0, false
		}
		size := valueSize(rest)
		room[n] = rest[:size]
		if rest = rest[size:]; len(rest) > 0 {
			rest = rest[1:] // the comma
		}
	}
	return n, true
}
