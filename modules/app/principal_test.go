package app

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/durward-gateway/durward/internal/policy/engine"
	"github.com/durward-gateway/durward/storage"
)

// TestAttributes checks that tokens of a person share what policies know of them as long as their claims say the same,
// and no longer.
func TestAttributes(t *testing.T) {
	core, i, _ := newBearers(t, AgentRules{AutoRegister: true})
	callOf := func(claims map[string]any) *Call {
		t.Helper()
		call := &Call{Core: core}
		if err := call.Authenticate(t.Context(), i.sign(claims), ""); err != nil {
			t.Fatal(err)
		}
		return call
	}
	deadline := time.Now().Add(30 * time.Second)
	first, before := callOf(map[string]any{"department": "sales"}), (*Call)(nil)
	for n := 0; before == nil || before.token.person != first.token.person; n++ {
		if time.Now().After(deadline) {
			t.Fatal("the person is never kept") // the cache stores in the background
		}
		before, first = first, callOf(map[string]any{"department": "sales", "jti": fmt.Sprint("first ", n)})
	}
	principalOf := func(claims map[string]any) *engine.Principal { return callOf(claims).PrincipalAs(first.Agent) }
	if principalOf(map[string]any{"department": "sales", "jti": "2", "exp": i.now.Load() + 300}) != first.Principal() {
		t.Error("a token that only ends at another time makes another principal")
	}
	isSales := func(p *engine.Principal) bool { return holds(t, p, `request.principal.attr.department == "sales"`) }
	if !isSales(first.Principal()) || isSales(principalOf(map[string]any{"department": "research"})) {
		t.Error("a token's claims are those of another token")
	}
	if !isSales(principalOf(map[string]any{"department": "sales", "jti": "3"})) || isSales(principalOf(map[string]any{"jti": "4"})) {
		t.Error("a token's claims are those of another token, in turn")
	}
}

// TestClaimsOfOneToken checks that no condition sees the claims in which tokens with shared attributes may differ.
func TestClaimsOfOneToken(t *testing.T) {
	claims := map[string]any{"seen": "x"}
	for _, name := range []string{"aud", "exp", "nbf", "iat", "jti", "nonce", "sid", "session_state"} {
		if !ofOneToken([]byte(name)) {
			t.Errorf("%s is taken for an attribute", name)
		}
		claims[name] = "x"
	}
	for _, name := range []string{"sub", "email", "roles", "seen", ""} {
		if ofOneToken([]byte(name)) {
			t.Errorf("%s is left out", name)
		}
	}
	p := engine.NewPrincipal("u", nil, nil, "", claims)
	if !holds(t, p, "has(request.principal.attr.seen)") || !holds(t, p, "request.principal.attr.size() == 1") {
		t.Error("conditions see claims of one token")
	}
}

// holds reports whether a condition is true of a principal.
func holds(t *testing.T, p *engine.Principal, condition string) bool {
	t.Helper()
	text, err := json.Marshal(map[string]any{"match": map[string]any{"expr": condition}})
	if err != nil {
		t.Fatal(err)
	}
	set, err := engine.Compile("demo", "s", []storage.Policy{{ID: "p", Name: "p", Status: storage.PolicyActive, ServerID: "s", Rules: []storage.Rule{
		{Name: "when", Active: true, Authorized: true, Actions: []string{"*"}, RolesGroups: []string{"*"}, Condition: text},
	}}})
	if err != nil {
		t.Fatal(fmt.Errorf("compiling %s: %w", condition, err))
	}
	return set.Decide(t.Context(), engine.Call{Principal: p, Kind: engine.ToolsCall, Name: "x"}).Effect == engine.Allow
}
