package engine

import (
	"slices"
	"strconv"
	"testing"
)

// TestLongLists checks that a caller with many groups is found in each of them, and that conditions see each group
// once.
func TestLongLists(t *testing.T) {
	for _, n := range []int{1, fewNames, fewNames + 1, 300} {
		groups := make([]string, n)
		for i := range groups {
			groups[i] = "g" + strconv.Itoa(n-i)
		}
		p := NewPrincipal("u", []string{"dev"}, append(groups, groups...), "", nil)
		set := compile(t, active(
			forSubjects(grant("each", "tools/call:each"), "group:g1"), forSubjects(grant("either", "tools/call:either"), "g"+strconv.Itoa(n)),
			forSubjects(grant("other", "tools/call:other"), "group:g0", "group:dev"), when(grant("once", "tools/call:once"), "P.groups.size() == "+strconv.Itoa(n)+" && P.groups[0] == 'g1'"),
		))
		for name, want := range map[string]Effect{"each": Allow, "either": Allow, "other": Deny, "once": Allow} {
			if got := set.Decide(t.Context(), Call{Principal: p, Kind: ToolsCall, Name: name}).Effect; got != want {
				t.Errorf("%s, of %d groups: %v", name, n, got)
			}
		}
		if !slices.IsSorted(p.groups.sorted()) {
			t.Errorf("%d groups are not sorted", n)
		}
	}
}

// reader implements Claims.
type reader func() (all map[string]any, ok bool)

func (r reader) Read() (all map[string]any, ok bool) { return r() }

// TestUnreadableClaims checks that a deny that reads claims holds when they cannot be read, also after their reader
// panicked.
func TestUnreadableClaims(t *testing.T) {
	set := compile(t, active(grant("all", "*"), when(deny("blocked", "*"), "has(P.attr.blocked)")))
	decide := func(p *Principal) (d Decision) {
		defer func() { _ = recover() }()
		return set.Decide(t.Context(), Call{Principal: p, Kind: ToolsCall, Name: "x"})
	}
	unread := NewPrincipalOf("u", nil, nil, "", reader(func() (map[string]any, bool) { return nil, false }))
	broken := NewPrincipalOf("u", nil, nil, "", reader(func() (map[string]any, bool) { panic("broken") }))
	decide(broken)
	for name, p := range map[string]*Principal{"unread": unread, "broken": broken} {
		if got := decide(p); got.Rule != "blocked" || got.Values[0].Error != errClaims.Error() {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if unread.claims != nil {
		t.Error("claims are held once they are read")
	}
	unasked := NewPrincipalOf("u", nil, nil, "", reader(func() (map[string]any, bool) { t.Error("read though no condition looks at them"); return nil, true }))
	call := Call{Principal: unasked, Kind: ToolsCall, Name: "x", Arguments: []byte(`{"n":1}`)}
	if d := compile(t, active(when(grant("g", "*"), "R.attr.n == 1"))).Decide(t.Context(), call); d.Effect != Allow {
		t.Errorf("%+v", d)
	}
	if got := decide(NewPrincipal("u", nil, nil, "", nil)); got.Effect != Allow {
		t.Errorf("no claims: %+v", got)
	}
}

// TestPrincipalAllocates checks that a principal with a few roles and groups is one object. There is one for each token
// in memory, and the garbage collector visits all of them.
func TestPrincipalAllocates(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	roles, groups := []string{"dev", "support"}, []string{"engineering"}
	claims := reader(func() (map[string]any, bool) { return nil, true })
	var p *Principal
	if n := testing.AllocsPerRun(100, func() { p = NewPrincipalOf("u", roles, groups, "agent", claims) }); n > 1 {
		t.Errorf("%v objects", n)
	}
	if p.AgentID() != "agent" {
		t.Errorf("agent %q", p.AgentID())
	}
}
