package format

import (
	"strconv"
	"time"

	"github.com/durward-gateway/durward/storage"
)

// Glance holds the members of an entry by which a log is searched, as bytes of the entry's text. Searches read millions of
// entries, and encoding/json would take most of their time.
type Glance struct {
	At                                                                        time.Time
	ID, Kind, Event, UserID, AgentID, Client, Session, ServerID, Server, Tool []byte
	Decision, PolicyID, ApprovalID, Outcome                                   []byte
	Completes                                                                 bool // the entry has outcomes of other entries: it is no event of its own

	outcomes []byte
}

// These are the values of members that the short form leaves out.
var (
	callKind      = []byte(storage.AuditCall)
	decisionEvent = []byte(UsualEvent(false))
)

// Read reads a text in the short form. It is not ok for other texts, and for those whose members have escapes: EntryOf and
// Of read them. A text that was tampered with has any members.
func (g *Glance) Read(text []byte) bool {
	if !IsShort(text) {
		return false
	}
	*g = Glance{Kind: callKind, Event: decisionEvent}
	nanos, ok := g.members(text)
	if !ok || nanos == 0 {
		return false
	}
	g.At = time.Unix(0, nanos).UTC()
	if isBrief(g.ID) {
		g.ID = []byte(WholeID(g.ID, nanos))
	}
	return true
}

// members reads the members of an object, and those of its shared part.
func (g *Glance) members(text []byte) (nanos int64, ok bool) {
	if len(text) < 2 {
		return 0, false
	}
	for rest := text[1:]; len(rest) > len(`"i":`); {
		if rest[0] != '"' || rest[2] != '"' || rest[3] != ':' {
			return 0, false
		}
		name := rest[1]
		size := valueSize(rest[4:])
		value := rest[4:][:size]
		if rest = rest[4+size:]; len(rest) > 0 {
			rest = rest[1:] // the comma, or the end
		}
		to := g.member(name)
		switch {
		case name == 't':
			var err error
			if nanos, err = strconv.ParseInt(string(value), 10, 64); err != nil {
				return 0, false
			}
		case name == SharedStart[2]:
			if _, ok = g.members(value); !ok {
				return 0, false
			}
		case name == 'c':
			g.Completes = true
		case name == groupName:
			g.Completes, g.outcomes = true, value
		case to != nil:
			if *to = unquoted(value); *to == nil || !plain(*to) {
				return 0, false
			}
		}
	}
	return nanos, true
}

// member returns the place of a member, nil for one by which nobody searches.
func (g *Glance) member(name byte) *[]byte {
	switch name {
	case 'i', 'I':
		return &g.ID
	case 'k':
		return &g.Kind
	case 'v':
		return &g.Event
	case 'u':
		return &g.UserID
	case 'a':
		return &g.AgentID
	case 'l':
		return &g.Client
	case 's':
		return &g.Session
	case 'm':
		return &g.ServerID
	case 'n':
		return &g.Server
	case 'o':
		return &g.Tool
	case 'd':
		return &g.Decision
	case 'p':
		return &g.PolicyID
	case 'w':
		return &g.ApprovalID
	case 'b':
		return &g.Outcome
	}
	return nil
}

// Of takes the members of an entry.
func (g *Glance) Of(e *storage.AuditEntry) {
	*g = Glance{
		At: e.At, ID: []byte(e.ID), Kind: []byte(e.Kind), Event: []byte(e.Event), UserID: []byte(e.UserID), AgentID: []byte(e.AgentID),
		Client: []byte(e.Client), Session: []byte(e.Session), ServerID: []byte(e.ServerID), Server: []byte(e.Server), Tool: []byte(e.Tool),
		Decision: []byte(e.Decision), PolicyID: []byte(e.PolicyID), ApprovalID: []byte(e.ApprovalID), Outcome: []byte(e.Outcome),
		Completes: e.Call != "" || len(e.Outcomes) > 0,
	}
}

// Outcomes calls each with the outcomes of a record of several. It is not ok for other records: EntryOf reads them.
func (g *Glance) Outcomes(each func(storage.AuditOutcome)) (ok bool) {
	var all [MaxOutcomes][]byte
	n, ok := elements(g.outcomes, all[:])
	if !ok {
		return false
	}
	for _, one := range all[:n] {
		var o [5][]byte
		switch n, _ := elements(one, o[:]); { // 0 of what is no list
		case n == 3:
			o[3] = o[2]
			o[2], o[4] = usualElements[0], usualElements[1]
		case n < len(o):
			return false
		}
		call, word := unquoted(o[0]), unquoted(o[2])
		before, err := strconv.ParseInt(string(o[1]), 10, 64)
		duration, wrong := strconv.ParseInt(string(o[3]), 10, 64)
		status, bad := strconv.Atoi(string(o[4]))
		if err != nil || wrong != nil || bad != nil || !plain(call) || !plain(word) {
			return false
		}
		at := g.At.UnixNano() - before
		out := storage.AuditOutcome{At: time.Unix(0, at).UTC(), Outcome: usualOutcome, Duration: time.Duration(duration), UpstreamStatus: status}
		if out.Call = WholeID(string(call), at-duration); string(word) != usualOutcome {
			out.Outcome = string(word)
		}
		each(out)
	}
	return true
}
