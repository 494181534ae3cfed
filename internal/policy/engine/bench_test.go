package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/durward-gateway/durward/storage"
)

// manyRules makes a policy of n rules for other tools and groups, with denies and conditions among them. One more rule
// matches: a grant with one condition.
func manyRules(n int) []storage.Rule {
	out := make([]storage.Rule, 0, n)
	for i := range n - 1 {
		r := grant(fmt.Sprintf("rule %d", i), fmt.Sprintf("tools/call:tool_%d", i))
		switch {
		case i%10 == 3:
			r = deny(r.Name, r.Actions...)
		case i%10 == 7:
			r.Actions = []string{fmt.Sprintf("tools/call:prefix_%d_*", i)}
		}
		if i%5 == 0 {
			r = when(r, fmt.Sprintf("R.attr.n == %d", i))
		}
		out = append(out, forSubjects(r, fmt.Sprintf("group:g%d", i%50)))
	}
	return append(out, when(grant("the one", "tools/call:create_issue"), "R.attr.priority >= 2 && R.attr.title != ''"))
}

// everywhere makes n rules for all tools, for groups that the caller is not in. The index does not help there.
func everywhere(n int) []storage.Rule {
	out := make([]storage.Rule, 0, n)
	for i := range n - 1 {
		r := grant(fmt.Sprintf("rule %d", i), "tools/call:*")
		r.Authorized = i%2 == 0
		out = append(out, forSubjects(r, fmt.Sprintf("group:g%d", i)))
	}
	return append(out, when(grant("the one", "tools/call:*"), "R.attr.priority >= 2 && R.attr.title != ''"))
}

var (
	benchArguments = []byte(`{"priority":3,"title":"something is broken","body":"` + strings.Repeat("a", 100) + `"}`)
	manyGroups     = NewPrincipal("u-1", []string{"r1", "r2", "r3"}, []string{"a", "b", "c", "d", "e", "f", "h", "i", "j", "k"}, "", nil)
)

func BenchmarkDecide(b *testing.B) {
	for _, n := range []int{1, 10, 100, 1000} {
		rules := manyRules(n)
		s := compile(b, active(rules...))
		c := Call{Principal: manyGroups, Kind: ToolsCall, Name: "create_issue", Arguments: benchArguments}
		b.Run(fmt.Sprintf("rules=%d/condition", n), func(b *testing.B) { benchDecide(b, s, c, Allow) })
		b.Run(fmt.Sprintf("rules=%d/denied", n), func(b *testing.B) {
			c := c
			c.Arguments = []byte(`{"priority":1}`)
			benchDecide(b, s, c, Deny)
		})
		rules[n-1].Condition = nil
		s = compile(b, active(rules...))
		b.Run(fmt.Sprintf("rules=%d/plain", n), func(b *testing.B) { benchDecide(b, s, c, Allow) })
		s = compile(b, active(everywhere(n)...))
		b.Run(fmt.Sprintf("rules=%d/all match the tool", n), func(b *testing.B) { benchDecide(b, s, c, Allow) })
		asking := everywhere(n)
		for i := range n - 1 {
			asking[i] = when(grant(asking[i].Name, "tools/call:*"), fmt.Sprintf("R.attr.priority == %d", i+10))
		}
		s = compile(b, active(asking...))
		b.Run(fmt.Sprintf("rules=%d/all have to be evaluated", n), func(b *testing.B) { benchDecide(b, s, c, Allow) })
	}
	// A hundred other policies of the same server: only the governing one costs time.
	policies := []storage.Policy{active(manyRules(100)...)}
	for i := range 100 {
		policies = append(policies, scoped(fmt.Sprint(i), []string{fmt.Sprint("agent ", i)}, grant("g", "*")))
	}
	s := compile(b, policies...)
	b.Run("policies=101", func(b *testing.B) {
		benchDecide(b, s, Call{Principal: manyGroups, Kind: ToolsCall, Name: "create_issue", Arguments: benchArguments}, Allow)
	})
}

func benchDecide(b *testing.B, s *Set, c Call, want Effect) {
	b.ReportAllocs()
	ctx := context.Background()
	for b.Loop() {
		if d := s.Decide(ctx, c); d.Effect != want {
			b.Fatalf("%+v", d)
		}
	}
}

// BenchmarkDecideSlowest measures the slowest of a hundred decisions at 1,000 rules: no more than 20 µs. The other
// policies are for other agents. The limit does not hold where a thousand conditions must be evaluated, which no index
// can avoid: see BenchmarkDecide.
func BenchmarkDecideSlowest(b *testing.B) {
	c := Call{Principal: manyGroups, Kind: ToolsCall, Name: "create_issue", Arguments: benchArguments}
	for _, bench := range []struct {
		name  string
		rules []storage.Rule
	}{{"rules=1000/condition", manyRules(1000)}, {"rules=1000/all match the tool", everywhere(1000)}} {
		for _, others := range []int{0, 1000} {
			policies := []storage.Policy{active(bench.rules...)}
			for i := range others {
				policies = append(policies, scoped(fmt.Sprint(i), []string{fmt.Sprint("agent ", i)}, grant("g", "*")))
			}
			s := compile(b, policies...)
			b.Run(fmt.Sprintf("%s/others=%d", bench.name, others), func(b *testing.B) {
				took := make([]time.Duration, 0, 1<<16)
				ctx := context.Background()
				for b.Loop() {
					began := time.Now()
					if d := s.Decide(ctx, c); d.Effect != Allow {
						b.Fatalf("%+v", d)
					}
					if len(took) < cap(took) {
						took = append(took, time.Since(began))
					}
				}
				slices.Sort(took)
				b.ReportMetric(float64(took[len(took)*99/100].Nanoseconds()), "p99-ns/op")
			})
		}
	}
}

// BenchmarkView measures a list of fifty tools.
func BenchmarkView(b *testing.B) {
	names := make([]string, 50)
	for i := range names {
		names[i] = fmt.Sprintf("tool_%d", i)
	}
	for _, n := range []int{1, 10, 100, 1000} {
		s := compile(b, active(append(manyRules(n), when(deny("d", "tools/call:*"), "P.id == 'u-2' || R.attr.n == 7"), grant("g", "tools/call:*"))...))
		b.Run(fmt.Sprintf("rules=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			ctx := context.Background()
			for b.Loop() {
				v := s.View(ctx, manyGroups)
				for _, name := range names {
					v.Tool(name)
				}
			}
		})
	}
}

func BenchmarkCompile(b *testing.B) {
	for _, n := range []int{1, 10, 100, 1000} {
		p := active(manyRules(n)...)
		b.Run(fmt.Sprintf("rules=%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				compile(b, p)
			}
		})
	}
}

func BenchmarkNewPrincipal(b *testing.B) {
	claims := map[string]any{"iss": "https://idp.test", "email": "a@example.com", "tags": []any{"x", "y"}}
	b.ReportAllocs()
	for b.Loop() {
		NewPrincipal("u-1", []string{"dev", "support"}, []string{"sales"}, "", claims)
	}
}

// TestAllocations checks that a decision without conditions allocates nothing, and one with a condition a dozen small
// objects at most.
func TestAllocations(t *testing.T) {
	if raceEnabled {
		t.Skip("counts differ under the race detector")
	}
	s := compile(t, active(grant("g", "tools/call:x"), deny("d", "tools/call:y"), when(grant("c", "tools/call:create_issue"), "R.attr.priority >= 2")))
	for _, test := range []struct {
		call Call
		most float64
	}{
		{tool("x", `{}`), 0}, {tool("y", `{}`), 0}, {tool("z", `{}`), 0}, {tool("create_issue", string(benchArguments)), 12},
	} {
		if got := testing.AllocsPerRun(100, func() { s.Decide(context.Background(), test.call) }); got > test.most {
			t.Errorf("%s: %v allocations, at most %v", test.call.Name, got, test.most)
		}
	}
}

// TestAllocationsAreReused checks that the memory of the first evaluation is reused, and that a condition with the same
// result for all items of a list is evaluated once.
func TestAllocationsAreReused(t *testing.T) {
	if raceEnabled {
		t.Skip("counts differ under the race detector")
	}
	s := compile(t, active(when(grant("g", "*"), "R.attr.n == 1"), when(grant("r", "resources/read:a*"), "request.action == 'x'")))
	forAll := compile(t, active(when(grant("g", "*"), "P.groups.all(g, g != 'sales')")))
	call := tool("x", `{"n":1}`)
	view, viewForAll := s.View(t.Context(), sales), forAll.View(t.Context(), sales)
	for name, test := range map[string]struct {
		most float64 // halfway to the number without reuse
		do   func()
	}{
		"a call":                           {6, func() { s.Decide(t.Context(), call) }},
		"a call that is judged afterwards": {9, func() { s.Foresee(t.Context(), call, Lacking{}) }},
		"a tool in a list":                 {2, func() { view.Tool("x") }},
		"a template":                       {14, func() { view.Template("a{b}") }},
		"a tool, what is said of all":      {2, func() { viewForAll.Tool("x") }},
		"a resource, what is said of all":  {2, func() { viewForAll.Resource("a:b") }},
		"a template, what is said of all":  {5, func() { viewForAll.Template("a{b}") }},
	} {
		if got := testing.AllocsPerRun(100, test.do); got > test.most {
			t.Errorf("%s: %v allocations, at most %v", name, got, test.most)
		}
	}
}
