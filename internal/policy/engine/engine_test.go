package engine

import (
	"encoding/json"
	"testing"

	"github.com/durward-gateway/durward/storage"
)

const (
	serverID   = "0198c6a0-0000-7000-8000-000000000001"
	serverSlug = "demo"
)

// grant, ask and deny make rules for everybody; the entries are actions. A grant asks if an action says so.
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

func forSubjects(r storage.Rule, subjects ...string) storage.Rule {
	r.RolesGroups = subjects
	return r
}

func active(rules ...storage.Rule) storage.Policy {
	return storage.Policy{ID: "p1", Name: "policy", Status: storage.PolicyActive, ServerID: serverID, Revision: 7, Rules: rules}
}

func compile(t testing.TB, policies ...storage.Policy) *Set {
	t.Helper()
	s, err := Compile(serverSlug, serverID, policies)
	if err != nil {
		t.Fatalf("Compile: %v", err)
	}
	return s
}

var sales = NewPrincipal("u-1", []string{"dev", "support"}, []string{"sales"}, "", map[string]any{
	"iss": "https://idp.test", "email": "a@example.com", "level": json.Number("3"), "tags": []any{"x", "y"},
})

func tool(name, args string) Call {
	c := Call{Principal: sales, Kind: ToolsCall, Name: name}
	if args != "" {
		c.Arguments = []byte(args)
	}
	return c
}

// outcomeOf returns the result of one condition in a plain grant of everything.
func outcomeOf(t testing.TB, expr, args string) (granted, denied bool, values []ConditionValue) {
	t.Helper()
	g := compile(t, active(when(grant("g", "*"), expr))).Decide(t.Context(), tool("x", args))
	d := compile(t, active(grant("all", "*"), when(deny("d", "*"), expr))).Decide(t.Context(), tool("x", args))
	return g.Effect == Allow, d.Effect == Deny, g.Values
}

func TestConditions(t *testing.T) {
	const args = `{"n":5,"f":1.5,"s":"abc","list":[1,2,3],"o":{"a":{"b":true}},"big":9223372036854775807,"huge":1e300,"nul":null,"exact":0.1}`
	tests := []struct {
		expr string
		want outcome
	}{
		{`request.resource.attr.n == 5`, yes},
		{`R.attr.n == 5 && P.id == 'u-1'`, yes},
		{`R.attr.n > 4.5 && R.attr.f < 2`, yes},
		{`R.attr.big == 9223372036854775807`, yes},
		{`R.attr.exact == 0.1 && R.attr.huge > 1`, yes},
		{`R.attr.nul == null`, yes},
		{`R.attr.o.a.b`, yes},
		{`R.attr['o']['a'].b`, yes},
		{`R.attr.list.exists(x, x == 2) && R.attr.list.size() == 3 && 3 in R.attr.list`, yes},
		{`R.attr.s.startsWith('ab') && R.attr.s.upperAscii() == 'ABC' && R.attr.s.matches('^[a-c]+$')`, yes},
		{`sets.contains(R.attr.list, [1,2]) && math.greatest(R.attr.n, 3) == 5 && R.attr.list.slice(0, 1) == [1]`, yes},
		{`request.action == 'tools/call:x' && R.kind == 'demo' && R.id == '` + serverID + `'`, yes},
		{`P.roles == ['dev','support'] && 'sales' in P.groups && P.agent == ''`, yes},
		{`P.attr.email == 'a@example.com' && P.attr.level == 3 && !has(P.attr.iss) && P.attr.tags[1] == 'y'`, yes},
		{`has(R.attr.n) && !has(R.attr.zz) && !has(request.zz) && has(request.resource) && has(request.action)`, yes},
		{`size(request) == 3 && size(R) == 3 && 'attr' in R && R.exists(k, k == 'id')`, yes},
		{`request.resource == R && request.principal == P && R == R`, yes},
		{`size(R.attr) == 9 && R.attr.all(k, k != 'zz')`, yes},
		{`[R.attr.n] == [5] && {R.attr.s: 1} == {'abc': 1} && {'a': R.attr.n} == {'a': 5} && {'a': R.attr.n}['a'] == 5`, yes},
		{`{R.attr.s: 1} == {'abc': 1}`, yes},
		{`{'a': R.attr.n} == {'a': 5}`, yes},
		{`{'k': R.attr.n}['k'] == 5`, yes},
		{`{'k': R}.k.attr.n == 5`, yes},
		{`google.protobuf.Int64Value{value: R.attr.n} == 5`, yes},
		{`R.attr.s.indexOf('(') == -1 && R.attr.s.split('(') == ['abc']`, yes},
		{`R.attr.n == 6`, no},
		{`R.attr.zz == 1`, broken},
		{`R.attr.zz == 1 || true`, yes},
		{`R.attr.zz == 1 && false`, no},
		{`R.attr.s > 3`, broken},
		{`R.attr.n / 0 == 1`, broken},
		{`R.attr.s`, broken},
		{`R.attr.n.foo == 1`, broken},
		{`request.nothing.at.all == 1`, broken},
		{`R.attr.list[7] == 1`, broken},
	}
	for _, test := range tests {
		granted, denied, values := outcomeOf(t, test.expr, args)
		if granted != test.want.grants() || denied != test.want.denies() {
			t.Errorf("%s: grant matches %v, deny matches %v, want %v; %+v", test.expr, granted, denied, test.want, values)
		}
	}
}
