package faults

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// thing is one object of a writer, in the writer's journal. Its state is a text that the writer chose; "" means that it
// does not exist.
type thing struct {
	kind  *kind
	label string // nothing else has it
	id    string // "" until its making was acknowledged, or it was found
	turn  int    // of the last state that is there
	is    string // the state that was acknowledged last, or found after a fault
	found bool   // nobody acknowledged it
	// tries holds the states that were requested since, and were not acknowledged: each may or may not be there.
	tries   []string
	history []string
	dirty   bool // something was asked for since the last comparison
	over    bool // nothing is ever asked of it again
	// caller is the token of the client that makes it, if it is a call.
	caller string
}

// intend notes the state that is requested next.
func (th *thing) intend(state string) {
	th.tries = append(th.tries, state)
	th.dirty = true
	th.history = append(th.history, fmt.Sprintf("intent %q", state))
}

// acknowledge notes that the state that was intended last was acknowledged.
func (th *thing) acknowledge(state string) {
	th.is, th.found, th.tries = state, false, nil
	th.turn++
	th.history = append(th.history, fmt.Sprintf("acknowledged %q", state))
}

// resolve compares the found state with the journal, and takes it over. applied reports that an unacknowledged try is
// there.
func (th *thing) resolve(t testing.TB, found string) (applied bool) {
	t.Helper()
	switch {
	case found == th.is:
	case slices.Contains(th.tries, found):
		applied, th.found = true, true
		th.turn++
	default:
		what := "is neither acknowledged nor intended: half of a write, or a write that ran twice"
		switch {
		case found == "":
			what = "an acknowledged write is lost"
		case th.is == "" && len(th.tries) == 0:
			what = "what was acknowledged to be gone is there"
		case slices.Contains(th.history, fmt.Sprintf("acknowledged %q", found)):
			what = "an acknowledged write is lost, an older state is there"
		}
		t.Errorf("%s %s: found %q: %s\n\tjournal: %s", th.kind.name, th.label, found, what, strings.Join(th.history, ", "))
	}
	if len(th.tries) > 0 {
		th.history = append(th.history, fmt.Sprintf("found %q", found))
	}
	th.is, th.tries, th.dirty = found, nil, false
	return applied
}

// said collects the errors that a test would report about a journal.
type said struct {
	testing.TB
	text string
}

func (s *said) Helper() {}

func (s *said) Errorf(format string, args ...any) { s.text += fmt.Sprintf(format, args...) }

// TestJournal checks which states a comparison takes for a fault.
func TestJournal(t *testing.T) {
	for _, tc := range []struct {
		name    string
		found   string
		tries   []string
		says    string // "": nothing
		applied bool
	}{
		{name: "as acknowledged", found: "v2"},
		{name: "as acknowledged, the try is not there", found: "v2", tries: []string{"v3"}},
		{name: "the try is there", found: "v3", tries: []string{"v3"}, applied: true},
		{name: "gone", says: "is lost"},
		{name: "gone, as was tried", tries: []string{""}, applied: true},
		{name: "an older one", found: "v1", tries: []string{"v3"}, says: "older"},
		{name: "twice", found: "v4", tries: []string{"v3"}, says: "twice"},
		{name: "half", found: half + "{v3 v2}", tries: []string{"v3"}, says: "half"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			th := &thing{kind: servers, label: "x"}
			for _, state := range []string{"v1", "v2"} {
				th.intend(state)
				th.acknowledge(state)
			}
			for _, state := range tc.tries {
				th.intend(state)
			}
			s := &said{TB: t}
			if applied := th.resolve(s, tc.found); applied != tc.applied || (s.text == "") != (tc.says == "") || !strings.Contains(s.text, tc.says) {
				t.Errorf("applied: %t; it says %q", applied, s.text)
			}
		})
	}
}
