package replay

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func changed(decision, name string, second int) *Difference {
	return &Difference{
		Time: noon.Add(time.Duration(second) * time.Second), Kind: "tools/call", Name: name, Former: Decided{Decision: "allow", Rule: "former"},
		New: Decided{Decision: decision, Rule: "new"},
	}
}

func TestTally(t *testing.T) {
	tally := NewTally(2)
	tally.Add(Elsewhere, nil, Missing{})
	tally.Add(Same, nil, Missing{})
	tally.Add(Unjudged, nil, Missing{Arguments: true, Claims: true})
	tally.Add(Unjudged, nil, Missing{Arguments: true})
	tally.Add(Unjudged, nil, Missing{Roles: true})
	tally.Add(Unjudged, nil, Missing{Streams: true})
	for i := range 9 {
		tally.Add(Changed, changed("deny", "x", i), Missing{})
	}
	tally.Add(Changed, changed("deny", "x", -1), Missing{}) // from a journal: it comes late
	tally.Add(Changed, changed("ask", "y", 0), Missing{})
	tally.Add(Changed, changed("allow", "y", 0), Missing{})
	want := Counts{
		Calls: 17, Same: 1, NewlyDenied: 10, NewlyAllowed: 1, NewlyAsking: 1,
		NotJudged: NotJudged{Calls: 4, Arguments: 2, Roles: 1, Claims: 1, Streams: 1},
	}
	if diff := cmp.Diff(want, tally.Counts); diff != "" || tally.Records != 18 {
		t.Errorf("%d records, counts (-want +got):\n%s", tally.Records, diff)
	}
	if diff := cmp.Diff([]Difference{*changed("deny", "x", -1), *changed("deny", "x", 8)}, tally.Examples("deny")); diff != "" {
		t.Errorf("examples (-want +got):\n%s", diff)
	}
	groups := []Group{
		{Kind: "tools/call", Name: "x", Former: "allow", New: "deny", Rule: "new", Calls: 10},
		{Kind: "tools/call", Name: "y", Former: "allow", New: "allow", Rule: "new", Calls: 1},
		{Kind: "tools/call", Name: "y", Former: "allow", New: "ask", Rule: "new", Calls: 1},
	}
	if diff := cmp.Diff(groups, tally.Groups()); diff != "" {
		t.Errorf("groups (-want +got):\n%s", diff)
	}
}

// TestTallyBounded checks that names, which come from callers, take no more room than allowed.
func TestTallyBounded(t *testing.T) {
	tally := NewTally(0)
	for i := range maxGroups + 5 {
		tally.Add(Changed, changed("deny", fmt.Sprint("tool", i), i), Missing{})
	}
	tally.Add(Changed, changed("deny", "tool0", 0), Missing{})
	if got := tally.Groups(); len(got) != maxGroups || got[0].Name != "tool0" || got[0].Calls != 2 || tally.Ungrouped != 5 || tally.NewlyDenied != maxGroups+6 {
		t.Errorf("%d groups, %d calls beside them", len(got), tally.Ungrouped)
	}
	if len(tally.Examples("deny")) != 0 || len(tally.latest["deny"]) != 0 {
		t.Error("examples are kept that nobody wants")
	}
}
