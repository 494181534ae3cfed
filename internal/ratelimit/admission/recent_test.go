package admission

import (
	"testing"

	"github.com/durward-gateway/durward/internal/ratelimit/limit"
	"github.com/durward-gateway/durward/storage"
)

// TestRecent checks that the limits of a caller's last call are used for the next one only when that has the same server
// and agent, and no longer than the organization's limits stay as they are.
func TestRecent(t *testing.T) {
	g := newGate(t, rate(everybody, 10, 0))
	who, recent := new(user), new(Recent)
	look := func(server, agent string, remembered *Recent) (asked bool) {
		t.Helper()
		c := counted()
		c.Subject, c.Recent, c.Server = who, remembered, &storage.Server{ID: server}
		if who.subject.AgentID = agent; agent != "" {
			c.Agent = &storage.Agent{ID: agent}
		}
		before := who.asked
		for range 2 { // the second time, the call itself remembers them
			if refused, err := g.Look(t.Context(), c); refused != nil || err != nil {
				t.Fatal(refused, err)
			}
		}
		if c.State.matched.Len() != len(g.limits) {
			t.Errorf("%d counters, want %d", c.State.matched.Len(), len(g.limits))
		}
		return who.asked > before
	}
	for i, step := range []struct {
		server, agent string
		recent        *Recent
		change        bool
		asked         bool
	}{
		{"s1", "", recent, false, true},
		{"s1", "", recent, false, false},
		{"s2", "", recent, false, true},
		{"s2", "a", recent, false, true},
		{"s2", "a", recent, false, false},
		{"s2", "a", nil, false, true},
		{"s2", "a", recent, true, true},
		{"s2", "a", recent, false, false},
	} {
		if step.change {
			g.set()
		}
		if asked := look(step.server, step.agent, step.recent); asked != step.asked {
			t.Errorf("step %d: looked up anew: %v", i, asked)
		}
	}
}

// TestRecentOfChangedAgent checks that a stream whose agent has changed since it was described leaves the limits of the
// new agent to no call of the former one.
func TestRecentOfChangedAgent(t *testing.T) {
	g := newGate(t, rate(storage.Scope{Type: storage.ScopeAgent, Value: "new"}, 10, 0))
	recent := new(Recent)
	counters := func(described, now string) int {
		c := counted()
		c.Agent, c.Recent, c.Subject = &storage.Agent{ID: described}, recent, &user{subject: limit.Subject{AgentID: now}}
		if refused, err := g.Look(t.Context(), c); refused != nil || err != nil {
			t.Fatal(refused, err)
		}
		return c.State.matched.Len()
	}
	if n := counters("former", "new"); n != 1 {
		t.Errorf("the stream has %d counters", n)
	}
	if n := counters("former", "former"); n != 0 {
		t.Errorf("a call of the former agent has %d counters", n)
	}
}

// TestChangeDuringACall checks that a change of limits is in force for the next step of a call that has begun.
func TestChangeDuringACall(t *testing.T) {
	g := newGate(t)
	c := counted()
	c.Recent = new(Recent)
	if refused, err := g.Look(t.Context(), c); refused != nil || err != nil {
		t.Fatal(refused, err)
	}
	g.set(rate(everybody, -1, 0))
	if refused, err := g.Charge(t.Context(), c, Work{Requests: 1}); refused == nil || err != nil {
		t.Errorf("%v, %v", refused, err)
	}
}

// TestRecentModels checks that the limits of a key's last call to a model are used for the next one only when that goes
// to the same target, and no longer than the organization's limits stay as they are.
func TestRecentModels(t *testing.T) {
	g := newGate(t, rate(everybody, 10, 0), rate(storage.Scope{Type: storage.ScopeModelAlias, Value: "small"}, 10, 0))
	recent := new(RecentModels)
	matched := func(target limit.Subject) *limit.Matched {
		t.Helper()
		c := counted()
		c.RecentModels = recent
		target.Traffic = storage.TrafficLLM
		m, err := g.MatchModels(t.Context(), c, &target)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	for range 2 {
		for _, tc := range []struct {
			target   limit.Subject
			counters int
		}{
			{limit.Subject{}, 1},
			{limit.Subject{ProviderID: "p", Model: "m", Alias: "small"}, 2},
			{limit.Subject{ProviderID: "p", Model: "m", Alias: "large"}, 1},
			{limit.Subject{ProviderID: "p", Model: "m", Alias: "large", Via: "small"}, 2},
		} {
			if got := matched(tc.target).Len(); got != tc.counters {
				t.Errorf("%+v: %d counters, want %d", tc.target, got, tc.counters)
			}
		}
	}
	small := limit.Subject{ProviderID: "p", Model: "m", Alias: "small"}
	if matched(small); recent.sent.Load().matched != matched(small) || recent.looked.Load().matched == matched(small) {
		t.Error("the limits of the last call are not used")
	}
	g.set(g.limits[:1]...)
	if got := matched(small).Len(); got != 1 {
		t.Errorf("after the change: %d counters", got)
	}
}

// TestCallsAllocateNothing checks that the limits of a call with the properties of the caller's last one take no memory.
func TestCallsAllocateNothing(t *testing.T) {
	g := newGate(t)
	c := counted()
	c.Recent, c.RecentModels = new(Recent), new(RecentModels)
	if _, err := g.Look(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	allocs := testing.AllocsPerRun(100, func() {
		*c.State = State{}
		c.State.Count()
		if refused, err := g.Look(ctx, c); refused != nil || err != nil {
			t.Fatal(refused, err)
		}
		if refused, err := g.Charge(ctx, c, Work{Requests: 1, Results: 1}); refused != nil || err != nil {
			t.Fatal(refused, err)
		}
		g.MeterText(ctx, c, nil)
		c.State.Settle()
	})
	if allocs != 0 {
		t.Errorf("%v allocations", allocs)
	}
}
