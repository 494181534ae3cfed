package replay

import (
	"encoding/json"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/durward-gateway/durward/internal/policy/engine"
	"github.com/durward-gateway/durward/storage"
)

var drawnExpressions = []string{
	"R.attr.n == 1", "R.attr.n > 1 || P.id == 'u-1'", "has(R.attr.s)", "size(R.attr) > 1", "'g1' in P.groups", "P.roles.exists(r, r == 'r1')",
	"R.attr.s.startsWith('x') && P.agent == 'a-1'", "request.action.endsWith('b')", "R.kind == 'demo'", "1 / 0 == 1",
}

func drawRule(t *rapid.T, name string) storage.Rule {
	r := storage.Rule{
		Name: name, Active: true, Authorized: rapid.IntRange(0, 3).Draw(t, "authorized") > 0,
		Actions:     rapid.SliceOfN(rapid.SampledFrom([]string{"*", "tools/call:a", "tools/call:a*", "tools/call:b:approve", "tools/call:*", "prompts/get:*", "resources/read:a*"}), 1, 3).Draw(t, "actions"),
		RolesGroups: rapid.SliceOfN(rapid.SampledFrom([]string{"*", "role:r1", "group:g1", "g2"}), 1, 2).Draw(t, "subjects"),
	}
	if rapid.Bool().Draw(t, "conditional") {
		r = when(r, rapid.SampledFrom(drawnExpressions).Draw(t, "expression"))
	}
	return r
}

func drawPolicy(t *rapid.T) storage.Policy {
	p := draft()
	for i := range rapid.IntRange(0, 5).Draw(t, "rules") {
		p.Rules = append(p.Rules, drawRule(t, fmt.Sprint("rule ", i)))
	}
	return p
}

// drawCall draws a call and its audit entry when arguments are kept, without the decision.
func drawCall(t *rapid.T) (engine.Call, storage.AuditEntry) {
	names := func(of ...string) []string {
		out := []string{}
		for _, name := range of {
			if rapid.Bool().Draw(t, name) {
				out = append(out, name)
			}
		}
		return out
	}
	e := entry(agent(rapid.SampledFrom([]string{"", "a-1"}).Draw(t, "agent")))
	e.UserID = rapid.SampledFrom([]string{"u-1", "u-2"}).Draw(t, "user")
	e.Roles, e.Groups = names("r1", "r2"), names("g1", "g2")
	e.Method = rapid.SampledFrom([]string{"tools/call", "tools/call", "prompts/get", "resources/read"}).Draw(t, "method")
	e.Tool = rapid.SampledFrom([]string{"a", "b", "ab", "not a name"}).Draw(t, "name")
	text := rapid.SampledFrom([]string{"", "{}", `{"n":1}`, `{"n":2,"s":"xyz"}`, `{"s":"REDACTED"}`, `{"n":"text"}`, `{"n":1e400}`}).Draw(t, "arguments")
	kind := kindOf(e.Method)
	c := engine.Call{Principal: engine.NewPrincipal(e.UserID, e.Roles, e.Groups, e.AgentID, nil), Kind: kind, Name: e.Tool}
	if text != "" {
		c.Arguments = []byte(text)
		e.ArgumentsDigest, e.Arguments = digestOf(text), json.RawMessage(text)
	}
	return c, e
}

func decideBy(t *rapid.T, p storage.Policy, c engine.Call) engine.Decision {
	p.Status = storage.PolicyActive
	set, err := engine.Compile("demo", server, []storage.Policy{p})
	if err != nil {
		t.Fatal(err)
	}
	return set.Decide(t.Context(), c)
}

func judgeBy(t *rapid.T, p storage.Policy, e storage.AuditEntry) (Verdict, Difference) {
	j, err := NewJudge(p, nil)
	if err != nil {
		t.Fatal(err)
	}
	// The entry is used in the form in which it is read from the log.
	text, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	var read storage.AuditEntry
	if err := json.Unmarshal(text, &read); err != nil {
		t.Fatal(err)
	}
	verdict, d, _, err := j.Judge(t.Context(), &read)
	if err != nil {
		t.Fatal(err)
	}
	return verdict, d
}

// TestPropertyTheSamePolicyChangesNothing checks that the policy that decided decides no call differently, and that all
// fully recorded calls are judged.
func TestPropertyTheSamePolicyChangesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := drawPolicy(t)
		c, e := drawCall(t)
		d := decideBy(t, p, c)
		e.Decision, e.Rule, e.PolicyID, e.PolicyRevision = d.Effect.String(), d.Rule, d.PolicyID, d.Revision
		if verdict, difference := judgeBy(t, p, e); verdict != Same {
			t.Fatalf("%v: decided %+v, replayed %+v", verdict, d, difference)
		}
	})
}

// TestPropertyAnotherPolicy checks that the reported decision of another policy is its real one, or is reported as not
// known. For a fully recorded call it must be known.
func TestPropertyAnotherPolicy(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		former, p := drawPolicy(t), drawPolicy(t)
		c, e := drawCall(t)
		before, after := decideBy(t, former, c), decideBy(t, p, c)
		e.Decision, e.Rule, e.PolicyID, e.PolicyRevision = before.Effect.String(), before.Rule, "former", before.Revision
		full := true
		if rapid.Bool().Draw(t, "arguments are not kept") && e.Arguments != nil {
			e.Arguments, full = nil, false
		}
		if rapid.Bool().Draw(t, "roles are not kept") {
			e.Roles, e.Groups, full = nil, nil, false
		}
		verdict, d := judgeBy(t, p, e)
		switch {
		case verdict == Same && before.Effect == after.Effect:
		case verdict == Changed && before.Effect != after.Effect && d.New.Decision == after.Effect.String() && (!full || d.New.Rule == after.Rule):
		case verdict == Unjudged && !full:
		default:
			t.Fatalf("%v %+v, before %+v, after %+v", verdict, d, before, after)
		}
	})
}
