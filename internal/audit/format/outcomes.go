package format

import (
	"strconv"
	"time"

	"github.com/durward-gateway/durward/storage"
)

// Each outcome in a record of several outcomes is
//
//	["<id of the call>",<nanoseconds before the record's time>,"error",<duration in nanoseconds>,<upstream status>]
//
// or, when it is "ok" with status 200,
//
//	["<id of the call>",<nanoseconds before the record's time>,<duration in nanoseconds>]
//
// A brief id is that of an intent whose time is the outcome's less the duration.
const (
	groupName = 'B' // the member's name in a text
	// MaxOutcomes is part of the format: a reader refuses a list that has more.
	MaxOutcomes = 64
	// GroupSpan is more than the time between an outcome and its record. A reader that reads so much further finds the
	// outcome.
	GroupSpan = time.Second

	usualOutcome = "ok"
	usualStatus  = 200
)

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
	var all [MaxOutcomes][]byte
	n, ok := elements(value, all[:])
	if !ok {
		return nil, false
	}
	b = append(b, '[')
	for i, one := range all[:n] {
		var o [5][]byte
		switch n, _ := elements(one, o[:]); { // 0 of what is no list
		case n == 3:
			o[3] = o[2]
			o[2], o[4] = usualElements[0], usualElements[1]
		case n < len(o):
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
			call = []byte(`"` + WholeID(id, at-before-duration) + `"`)
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
