package replay

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/durward-gateway/durward/storage"
)

const server = "0198c6a0-0000-7000-8000-000000000001"

func grant(name string, actions ...string) storage.Rule {
	return storage.Rule{Name: name, Active: true, Authorized: true, Actions: actions, RolesGroups: []string{"*"}}
}

func deny(name string, actions ...string) storage.Rule {
	r := grant(name, actions...)
	r.Authorized = false
	return r
}

func when(r storage.Rule, expr string) storage.Rule {
	text, err := json.Marshal(map[string]any{"match": map[string]any{"expr": expr}})
	if err != nil {
		panic(err)
	}
	r.Condition = text
	return r
}

func draft(rules ...storage.Rule) storage.Policy {
	return storage.Policy{ID: "draft", Name: "Draft", Status: storage.PolicyDraft, ServerID: server, Revision: 3, Rules: rules}
}

var noon = time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)

// entry returns a call of the tool x that the rule "all" of another policy allowed, with the edits.
func entry(edits ...func(*storage.AuditEntry)) storage.AuditEntry {
	e := storage.AuditEntry{
		ID: "record", At: noon, Kind: storage.AuditCall, Event: "decision", UserID: "u-1", Client: "client", ServerID: server, Server: "demo",
		Method: "tools/call", Tool: "x", Decision: "allow", Rule: "all", PolicyID: "active", PolicyRevision: 7, Roles: []string{"dev"}, Groups: []string{},
	}
	for _, edit := range edits {
		edit(&e)
	}
	return e
}

func method(method, tool string) func(*storage.AuditEntry) {
	return func(e *storage.AuditEntry) { e.Method, e.Tool = method, tool }
}

func was(decision, rule, policy string) func(*storage.AuditEntry) {
	return func(e *storage.AuditEntry) { e.Decision, e.Rule, e.PolicyID = decision, rule, policy }
}

// arguments returns an edit that sets the recorded arguments to kept, for a call that was made with original.
func arguments(kept, original string) func(*storage.AuditEntry) {
	return func(e *storage.AuditEntry) {
		e.ArgumentsDigest = digestOf(original)
		if kept != "" {
			e.Arguments = json.RawMessage(kept)
		}
	}
}

func agent(id string) func(*storage.AuditEntry) {
	return func(e *storage.AuditEntry) { e.AgentID = id }
}

func cut(e *storage.AuditEntry) { e.Detail = map[string]any{"name_bytes": 9000} }

func withoutRoles(e *storage.AuditEntry) { e.Roles, e.Groups = nil, nil }

func TestJudge(t *testing.T) {
	all := grant("everything", "*")
	stream := func(decision string) func(*storage.AuditEntry) {
		return func(e *storage.AuditEntry) {
			e.Method, e.Tool, e.Decision, e.Rule = "sse/stream", "", decision, ""
		}
	}
	tests := []struct {
		name  string
		rules []storage.Rule
		entry storage.AuditEntry
		want  string // "same", "elsewhere", the new decision and its rule, or the missing data
	}{
		{"nothing changes", []storage.Rule{all}, entry(), "same"},
		{"another rule says the same", []storage.Rule{grant("other", "tools/call:x")}, entry(), "same"},
		{"a rule denies", []storage.Rule{all, deny("no x", "tools/call:x")}, entry(), "deny no x"},
		{"nothing grants", nil, entry(), "deny "},
		{"it asks", []storage.Rule{grant("ask", "tools/call:x:approve")}, entry(), "ask ask"},
		{"it asked", []storage.Rule{grant("ask", "tools/call:x:approve")}, entry(was("ask", "r", "active")), "same"},
		{"it asked and need not", []storage.Rule{all}, entry(was("ask", "r", "active")), "allow everything"},
		{"there was no policy", []storage.Rule{all}, entry(was("deny", "", "")), "allow everything"},
		{"nothing was judged, and it would pass", []storage.Rule{all}, entry(was("off", "", "")), "same"},
		{"nothing was judged, and it would not", nil, entry(was("off", "", "")), "deny "},
		{"the tool was withheld", []storage.Rule{all}, entry(was("deny", "pin enforce", "")), "elsewhere"},
		{"no policy was asked", []storage.Rule{all}, entry(was("deny", "", ""), withoutRoles), "elsewhere"},
		{"an outcome", []storage.Rule{deny("no", "*")}, entry(func(e *storage.AuditEntry) { e.Event, e.Call = "outcome", "record" }), "elsewhere"},
		{"an approval", []storage.Rule{deny("no", "*")}, entry(func(e *storage.AuditEntry) { e.Kind = storage.AuditApproval }), "elsewhere"},
		{"another server", []storage.Rule{deny("no", "*")}, entry(func(e *storage.AuditEntry) { e.ServerID = "other" }), "elsewhere"},
		{"a list", []storage.Rule{deny("no", "*")}, entry(method("tools/list", "")), "elsewhere"},
		{"completion", []storage.Rule{deny("no", "*")}, entry(method("completion/complete", "x")), "elsewhere"},
		{"a subscription to nothing", []storage.Rule{deny("no", "*")}, entry(method("subscriptions/listen", "")), "elsewhere"},
		{"a resource whose URI was cut", []storage.Rule{all}, entry(method("resources/read", "a:b"), cut), "arguments"},
		{"a tool whose name was cut", []storage.Rule{all}, entry(method("tools/call", strings.Repeat("x", 8<<10)), cut), "deny "},
		{"a prompt", []storage.Rule{deny("no", "prompts/get:p")}, entry(method("prompts/get", "p")), "deny no"},
		{"a resource", []storage.Rule{when(all, "R.attr.uri == 'a:b'")}, entry(method("resources/read", "a:b"), arguments("", `{"uri":"a:b"}`)), "same"},
		{"news of a resource", []storage.Rule{deny("no", "resources/read:a:*")}, entry(method("resources/subscribe", "a:b")), "deny no"},
		{"news of several resources", []storage.Rule{deny("no", "resources/read:a:*")}, entry(method("subscriptions/listen", "a:b")), "deny no"},

		{"arguments that are kept", []storage.Rule{all, when(deny("no", "*"), "R.attr.n == 1")}, entry(arguments(`{"n":1}`, `{"n":1}`)), "deny no"},
		{"arguments that are kept in another order", []storage.Rule{all, when(deny("no", "*"), "R.attr.n == 1")}, entry(arguments(`{"m":2,"n":1}`, `{ "n": 1, "m": 2 }`)), "deny no"},
		{"arguments that are not kept", []storage.Rule{all, when(deny("no", "*"), "R.attr.n == 1")}, entry(arguments("", `{"n":1}`)), "arguments"},
		{"arguments that do not matter", []storage.Rule{all, when(deny("no", "tools/call:y"), "R.attr.n == 1")}, entry(arguments("", `{"n":1}`)), "same"},
		{"no arguments", []storage.Rule{when(all, "!has(R.attr.n)")}, entry(), "same"},
		{"an empty object", []storage.Rule{when(all, "!has(R.attr.n)")}, entry(arguments("", `{}`)), "same"},
		{"null", []storage.Rule{when(all, "!has(R.attr.n)")}, entry(arguments("", `null`)), "same"},
		{"null that is kept", []storage.Rule{when(all, "!has(R.attr.n)")}, entry(arguments("null", `null`)), "same"},
		{"a redacted argument", []storage.Rule{when(all, "R.attr.token == 'REDACTED'")}, entry(arguments(`{"token":"REDACTED"}`, `{"token":"t"}`)), "arguments"},
		{"a redacted argument in another", []storage.Rule{when(all, "size(R.attr.list) == 1")}, entry(arguments(`{"list":[{"token":"REDACTED"}]}`, `{"list":[{"token":"t"}]}`)), "arguments"},
		{"beside a redacted argument", []storage.Rule{when(all, "R.attr.n == 1")}, entry(arguments(`{"n":1,"token":"REDACTED"}`, `{"n":1,"token":"t"}`)), "same"},
		{"the word itself", []storage.Rule{when(all, "R.attr.token == 'REDACTED'")}, entry(arguments(`{"token":"REDACTED"}`, `{"token":"REDACTED"}`)), "same"},
		{"kept arguments that are none", []storage.Rule{when(all, "R.attr.n == 1")}, entry(arguments(`"REDACTED"`, `{"n":1}`)), "arguments"},
		{"claims", []storage.Rule{when(all, "P.attr.level == 3")}, entry(), "claims"},
		{"the server's slug", []storage.Rule{when(all, "R.kind == 'demo'")}, entry(), "same"},
		{"roles", []storage.Rule{when(all, "'dev' in P.roles && size(P.groups) == 0")}, entry(), "same"},
		{"roles that are not kept", []storage.Rule{when(all, "'dev' in P.roles")}, entry(withoutRoles), "roles"},
		{"too many roles to keep, and no policy", []storage.Rule{when(all, "'dev' in P.roles")}, entry(was("deny", "", ""), withoutRoles, func(e *storage.AuditEntry) {
			e.Detail = map[string]any{"roles_bytes": 9000.0}
		}), "roles"},
		{"a key of whose user nothing is known, and no policy", []storage.Rule{when(all, "'dev' in P.roles")}, entry(was("deny", "", ""), withoutRoles, func(e *storage.AuditEntry) {
			e.Detail = map[string]any{"roles_unknown": true}
		}), "roles"},

		{"a stream that a rule granted", []storage.Rule{all}, entry(method("sse/stream", "")), "same"},
		{"a stream that a rule denies", []storage.Rule{deny("no", "*")}, entry(method("sse/stream", "")), "deny no"},
		{"a stream that was open to all", []storage.Rule{grant("tools", "tools/call:*")}, entry(stream("allow")), "same"},
		{"a stream that was open to all, and is denied", []storage.Rule{deny("no", "*")}, entry(stream("allow")), "deny no"},
		{"a stream that was open to all, and may be denied", []storage.Rule{when(deny("no", "*"), "P.attr.level == 3")}, entry(stream("allow")), "claims"},
		{"a stream that was open to all, and is granted", []storage.Rule{all}, entry(stream("allow")), "same"},
		{"a stream that needed a grant", nil, entry(stream("deny")), "same"},
		{"a stream that needed a grant and gets it", []storage.Rule{all}, entry(stream("deny")), "allow everything"},
		{"a stream that a rule granted and none does", nil, entry(method("sse/stream", "")), "streams"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			j, err := NewJudge(draft(test.rules...), nil)
			if err != nil {
				t.Fatal(err)
			}
			verdict, d, missing, err := j.Judge(t.Context(), &test.entry)
			if err != nil {
				t.Fatal(err)
			}
			if got := described(verdict, d, missing); got != test.want {
				t.Errorf("%s, want %s; %+v", got, test.want, d)
			}
		})
	}
}

func described(v Verdict, d Difference, m Missing) string {
	switch {
	case v == Same:
		return "same"
	case v == Elsewhere:
		return "elsewhere"
	case v == Changed:
		return d.New.Decision + " " + d.New.Rule
	case m == Missing{Arguments: true}:
		return "arguments"
	case m == Missing{Roles: true}:
		return "roles"
	case m == Missing{Claims: true}:
		return "claims"
	case m == Missing{Streams: true}:
		return "streams"
	}
	return "several"
}

func TestJudgeDifference(t *testing.T) {
	j, err := NewJudge(draft(deny("no", "*")), nil)
	if err != nil {
		t.Fatal(err)
	}
	e := entry(agent("a-1"))
	verdict, d, _, err := j.Judge(t.Context(), &e)
	if err != nil {
		t.Fatal(err)
	}
	want := Difference{
		RecordID: "record", Time: noon, UserID: "u-1", AgentID: "a-1", Client: "client", Kind: "tools/call", Name: "x",
		Former: Decided{Decision: "allow", Rule: "all", PolicyID: "active", Revision: 7},
		New:    Decided{Decision: "deny", Rule: "no", PolicyID: "draft", Revision: 3},
	}
	if diff := cmp.Diff(want, d); diff != "" || verdict != Changed {
		t.Errorf("verdict %v, difference (-want +got):\n%s", verdict, diff)
	}
}

// TestJudgeAgents checks that only calls count that the policy would decide.
func TestJudgeAgents(t *testing.T) {
	scoped := func(id string, status storage.PolicyStatus, agents ...string) storage.Policy {
		return storage.Policy{ID: id, ServerID: server, Status: status, ApplicationIDs: agents}
	}
	own, forAll := draft(), draft()
	own.ApplicationIDs = []string{"a-1"}
	present := []storage.Policy{
		scoped("all", storage.PolicyActive), scoped("one", storage.PolicyActive, "a-1", "a-2"), scoped("off", storage.PolicyInactive, "a-3"), own,
	}
	for _, test := range []struct {
		policy storage.Policy
		agent  string
		want   bool
	}{
		{own, "a-1", true}, {own, "a-2", false}, {own, "", false},
		{forAll, "", true}, {forAll, "a-1", false}, {forAll, "a-2", false}, {forAll, "a-3", true}, {forAll, "a-4", true},
	} {
		j, err := NewJudge(test.policy, present)
		if err != nil {
			t.Fatal(err)
		}
		e := entry(agent(test.agent))
		verdict, _, _, err := j.Judge(t.Context(), &e)
		if err != nil || (verdict == Changed) != test.want || (verdict == Elsewhere) == test.want {
			t.Errorf("for %v, agent %q: %v, %v", test.policy.ApplicationIDs, test.agent, verdict, err)
		}
	}
}

func TestJudgeErrors(t *testing.T) {
	if _, err := NewJudge(draft(when(grant("all", "*"), "1 +")), nil); err == nil {
		t.Error("a policy that does not compile is replayed")
	}
	j, err := NewJudge(draft(grant("all", "*")), nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	e := entry()
	if _, _, _, err := j.Judge(ctx, &e); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
}
