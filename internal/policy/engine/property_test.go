package engine

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/durward-gateway/durward/storage"
)

var (
	drawnNames   = []string{"a", "b", "ab", "abb", "b/a", "abc"}
	drawnActions = []string{
		"*", "tools/call:*", "tools/call:a", "tools/call:a*", "tools/call:ab*", "tools/call:abb", "tools/call:b", "tools/call:b*",
		"tools/call:a:approve", "tools/call:a*:approve", "tools/call:*:approve", "tools/call:abc:approve", "prompts/get:a*", "prompts/get:b", "prompts/get:*", "sse/stream",
		"resources/read:*", "resources/read:a*", "resources/read:ab", "resources/read:b/a",
	}
	drawnSubjects = []string{"*", "role:r1", "group:g1", "r1", "g1", "role:r2", "g2", "role:g1"}
)

func drawCondition(t *rapid.T, depth int) refCondition {
	op := "expr"
	if depth < 2 {
		op = rapid.SampledFrom([]string{"expr", "expr", "all", "any", "none"}).Draw(t, "op")
	}
	if op == "expr" {
		return refCondition{expr: rapid.IntRange(0, len(refExprs)-1).Draw(t, "expr")}
	}
	c := refCondition{op: op}
	for range rapid.IntRange(1, 3).Draw(t, "parts") {
		c.of = append(c.of, drawCondition(t, depth+1))
	}
	return c
}

func drawRule(t *rapid.T, name string) refRule {
	r := refRule{Rule: storage.Rule{
		Name: name, Active: rapid.IntRange(0, 9).Draw(t, "active") > 0, Authorized: rapid.IntRange(0, 3).Draw(t, "authorized") > 0,
		Actions:     rapid.SliceOfN(rapid.SampledFrom(drawnActions), 1, 3).Draw(t, "actions"),
		RolesGroups: rapid.SliceOfN(rapid.SampledFrom(drawnSubjects), 1, 2).Draw(t, "subjects"),
	}}
	if rapid.Bool().Draw(t, "conditional") {
		c := drawCondition(t, 0)
		r.condition = &c
		r.Condition = mustJSON(map[string]any{"match": c.json()})
	}
	if rapid.IntRange(0, 3).Draw(t, "out of band") == 0 {
		r.Approval.Channel = storage.ChannelOutOfBand
		r.Approval.By = rapid.SliceOfN(rapid.SampledFrom([]string{"group:g1", "group:g2", "role:r1", "role:g1"}), 0, 2).Draw(t, "approvers")
	}
	return r
}

func drawPolicy(t *rapid.T, id string, status storage.PolicyStatus, agents ...string) refPolicy {
	p := refPolicy{Policy: storage.Policy{ID: id, Name: id, Status: status, ServerID: serverID, ApplicationIDs: agents}}
	for i := range rapid.IntRange(0, 6).Draw(t, "rules") {
		p.rules = append(p.rules, drawRule(t, fmt.Sprintf("%s-%d", id, i)))
	}
	return p
}

func (p *refPolicy) stored() storage.Policy {
	out := p.Policy
	out.Rules = nil
	for _, r := range p.rules {
		out.Rules = append(out.Rules, r.Rule)
	}
	return out
}

func drawPolicies(t *rapid.T) []refPolicy {
	out := []refPolicy{drawPolicy(t, "unscoped", rapid.SampledFrom([]storage.PolicyStatus{storage.PolicyActive, storage.PolicyActive, storage.PolicyDraft}).Draw(t, "status"))}
	if rapid.Bool().Draw(t, "scoped") {
		out = append(out, drawPolicy(t, "scoped", rapid.SampledFrom([]storage.PolicyStatus{storage.PolicyActive, storage.PolicyActive, storage.PolicyInactive}).Draw(t, "status"), "a1", "a2"))
	}
	return out
}

func drawWho(t *rapid.T) refWho {
	return refWho{
		id: rapid.SampledFrom([]string{"u1", "u2"}).Draw(t, "user"), agent: rapid.SampledFrom([]string{"", "a1", "a3"}).Draw(t, "agent"),
		roles:  rapid.SliceOfDistinct(rapid.SampledFrom([]string{"r1", "r2", "g1"}), rapid.ID[string]).Draw(t, "roles"),
		groups: rapid.SliceOfDistinct(rapid.SampledFrom([]string{"g1", "g2"}), rapid.ID[string]).Draw(t, "groups"),
	}
}

func (w refWho) principal() *Principal { return NewPrincipal(w.id, w.roles, w.groups, w.agent, nil) }

func compileAll(t *rapid.T, policies []refPolicy) *Set {
	stored := make([]storage.Policy, len(policies))
	for i := range policies {
		stored[i] = policies[i].stored()
	}
	s, err := Compile(serverSlug, serverID, stored)
	if err != nil {
		t.Fatalf("Compile: %v", err)
	}
	return s
}

// TestM11PropertyAgainstReference checks that random policies decide as the reference does. It also checks M11: a list
// hides an item exactly when every call of it is denied, and no sampled call contradicts that.
func TestM11PropertyAgainstReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		policies, who := drawPolicies(t), drawWho(t)
		s, p := compileAll(t, policies), who.principal()
		view := s.View(t.Context(), p)
		for _, k := range []Kind{ToolsCall, PromptsGet} {
			for _, name := range drawnNames {
				call := refCall{who: who, action: k.String() + ":" + name}
				listed, _ := refDecide(policies, call)
				shown := view.Tool(name)
				if k == PromptsGet {
					shown = view.Prompt(name)
				}
				if shown != (listed != Deny) {
					t.Fatalf("%s: shown %v, the reference says %v", call.action, shown, listed)
				}
				call.known = true
				for _, args := range refArguments {
					call.args = args
					want, wantOutOfBand := refDecide(policies, call)
					d := s.Decide(t.Context(), Call{Principal: p, Kind: k, Name: name, Arguments: mustJSON(args)})
					if d.Effect != want || d.OutOfBand != wantOutOfBand {
						t.Fatalf("%s %v: %+v, the reference says %v, out of band %v", call.action, args, d, want, wantOutOfBand)
					}
					if d.Effect == Ask && !sameApprovers(d.Approvers, refApprovers(policies, call)) || d.Effect != Ask && d.Approvers != nil {
						t.Fatalf("%s %v: %+v, the reference says %v", call.action, args, d, refApprovers(policies, call))
					}
					if d.Effect != Deny && !shown || d.Effect == Deny && d.Hidden == shown || d.Effect != Deny && d.Hidden {
						t.Fatalf("%s %v: %+v, shown %v", call.action, args, d, shown)
					}
				}
			}
		}
		// For a resource nothing is unknown in a list: conditions see its URI.
		for _, uri := range drawnNames {
			want, _ := refDecide(policies, refCall{who: who, action: "resources/read:" + uri, args: map[string]any{"uri": uri}, known: true})
			d := s.Decide(t.Context(), Call{Principal: p, Kind: ResourcesRead, Name: uri})
			if d.Effect != want || view.Resource(uri) != (want != Deny) || d.Hidden != (want == Deny) {
				t.Fatalf("resource %s: %+v, shown %v, the reference says %v", uri, d, view.Resource(uri), want)
			}
		}
		call := refCall{who: who, action: "sse/stream", known: true}
		want, _ := refDecide(policies, call)
		if d := s.Decide(t.Context(), Call{Principal: p, Kind: SSEStream}); d.Effect != want {
			t.Fatalf("stream: %+v, the reference says %v", d, want)
		}
	})
}

// TestM01PropertyDenyWinsInAnyOrder checks M01: a matching deny wins over everything else in the policy. The order of
// rules never matters.
func TestM01PropertyDenyWinsInAnyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		policy, who := drawPolicy(t, "p", storage.PolicyActive), drawWho(t)
		name := rapid.SampledFrom(drawnNames).Draw(t, "name")
		c := Call{Principal: who.principal(), Kind: ToolsCall, Name: name, Arguments: mustJSON(rapid.SampledFrom(refArguments).Draw(t, "args"))}
		first := compileAll(t, []refPolicy{policy})
		before, shown := first.Decide(t.Context(), c), first.View(t.Context(), c.Principal).Tool(name)

		shuffled := policy
		shuffled.rules = slices.Clone(policy.rules)
		seed := rapid.Uint64().Draw(t, "seed")
		rand.New(rand.NewPCG(seed, 0)).Shuffle(len(shuffled.rules), func(i, j int) {
			shuffled.rules[i], shuffled.rules[j] = shuffled.rules[j], shuffled.rules[i]
		})
		second := compileAll(t, []refPolicy{shuffled})
		after := second.Decide(t.Context(), c)
		if after.Effect != before.Effect || after.OutOfBand != before.OutOfBand || after.Hidden != before.Hidden || second.View(t.Context(), c.Principal).Tool(name) != shown {
			t.Fatalf("in another order: %+v, before %+v", after, before)
		}

		denying := refRule{Rule: deny("no", rapid.SampledFrom([]string{"*", "tools/call:*", "tools/call:" + name, "tools/call:" + name + ":approve", "tools/call:" + name[:1] + "*"}).Draw(t, "denied"))}
		shuffled.rules = slices.Insert(shuffled.rules, rapid.IntRange(0, len(shuffled.rules)).Draw(t, "at"), denying)
		third := compileAll(t, []refPolicy{shuffled})
		if d := third.Decide(t.Context(), c); d.Effect != Deny || !d.Hidden || d.Rule == "" || third.View(t.Context(), c.Principal).Tool(name) {
			t.Fatalf("with a deny: %+v", d)
		}
	})
}

// TestM08PropertyAskBeatsAllow checks M08: if one rule of a policy asks and another allows, the call asks.
func TestM08PropertyAskBeatsAllow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		policy, who := drawPolicy(t, "p", storage.PolicyActive), drawWho(t)
		c := Call{Principal: who.principal(), Kind: ToolsCall, Name: "ab", Arguments: []byte(`{"n":1}`)}
		before := compileAll(t, []refPolicy{policy}).Decide(t.Context(), c)
		asking := refRule{Rule: grant("ask", rapid.SampledFrom([]string{"tools/call:ab:approve", "tools/call:a*:approve", "tools/call:*:approve"}).Draw(t, "asked"))}
		policy.rules = slices.Insert(slices.Clone(policy.rules), rapid.IntRange(0, len(policy.rules)).Draw(t, "at"), asking)
		after := compileAll(t, []refPolicy{policy}).Decide(t.Context(), c)
		denied := before.Effect == Deny && before.Rule != ""
		if denied && after.Effect != Deny || !denied && after.Effect != Ask {
			t.Fatalf("before %+v, with a rule that asks %+v", before, after)
		}
		if after.OutOfBand != (before.Effect == Ask && before.OutOfBand) {
			t.Fatalf("channel: before %+v, after %+v", before, after)
		}
	})
}
