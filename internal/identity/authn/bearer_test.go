package authn

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/durward-gateway/durward/internal/identity/authn/authntest"
	"github.com/durward-gateway/durward/internal/policy/engine"
	"github.com/durward-gateway/durward/storage"
)

// TestNobody checks that the zero bearer is nobody, and that nobody's calls and streams may not go on.
func TestNobody(t *testing.T) {
	var b Bearer
	if b.Proven() || b.Caller() != nil || b.Agent() != nil || b.Notes() != nil || b.Principal("") != nil || b.RolesSize() != 0 || b.RolesUnknown() {
		t.Error("nobody is somebody")
	}
	d := newDoor(t, nil)
	if err := d.Recheck(t.Context(), &b); err == nil {
		t.Error("nobody's credential is good")
	}
	if err := d.Renew(t.Context(), &b); err == nil {
		t.Error("nobody's credential is still good")
	}
	if who, err := d.PrincipalNow(&b)(t.Context()); err == nil || who != nil {
		t.Errorf("nobody's stream: %v, %v", who, err)
	}
}

func TestPrincipal(t *testing.T) {
	d := newDoor(t, func(o *Options) { o.RegisterAgents = true })
	raw := d.issuer.Sign(nil)
	b := d.settled(raw)
	agent := b.Agent()
	made := b.Principal(agent.ID)
	if made == nil || made != b.Principal(agent.ID) || made != d.settled(raw).Principal(agent.ID) {
		t.Error("the principal is made anew for each call")
	}
	if size := b.RolesSize(); size != len("admin")+len("reader") || b.RolesUnknown() {
		t.Errorf("roles and groups have %d bytes", size)
	}
	for _, want := range []string{"", agent.ID} {
		if p := b.Principal(want); p == nil || p.AgentID() != want {
			t.Error("the principal does not know the agent")
		}
	}
	t.Run("of a stream", func(t *testing.T) {
		now := d.PrincipalNow(b)
		if who, err := now(t.Context()); err != nil || who != b.Principal(agent.ID) {
			t.Errorf("%v, %v", who, err)
		}
		d.requireAgents = true
		if who, err := now(t.Context()); err != nil || who != b.Principal(agent.ID) {
			t.Errorf("%v, %v: an agent is required, and there", who, err)
		}
		d.requireAgents = false
		if err := d.store.DeleteAgent(t.Context(), authntest.OrganizationID, agent.ID, "", time.Now()); err != nil {
			t.Fatal(err)
		}
		if who, err := now(t.Context()); err != nil || who == nil || who.AgentID() == agent.ID {
			t.Errorf("%v, %v: the agent was deleted", who, err)
		}
		d.requireAgents = true
		b.token.register = false
		found, err := d.store.AgentByClient(t.Context(), authntest.OrganizationID, authntest.IssuerID, "agent")
		if err == nil { // registered again on sight
			err = d.store.DeleteAgent(t.Context(), authntest.OrganizationID, found.ID, "", time.Now())
		}
		if err != nil {
			t.Fatal(err)
		}
		if who, err := now(t.Context()); err != nil || who != nil {
			t.Errorf("%v, %v: an agent is required", who, err)
		}
		d.store.revokedAt = time.Now()
		d.epochs.Bump("")
		if who, err := now(t.Context()); err != nil || who == nil {
			t.Errorf("%v, %v: the user was revoked", who, err)
		}
		d.store.agentsFail = storage.ErrUnavailable
		d.epochs.Bump("")
		if who, err := now(t.Context()); !errors.Is(err, storage.ErrUnavailable) || who != nil {
			t.Errorf("%v, %v: the store is away", who, err)
		}
	})
}

// TestAttributes checks that tokens of a person share what policies know of them as long as their claims say the same,
// and no longer.
func TestAttributes(t *testing.T) {
	d := newDoor(t, func(o *Options) { o.RegisterAgents = true })
	n := 0
	var first *Bearer
	d.settles(&d.store.resolved, func() {
		n++
		first = d.bearer(d.issuer.Sign(map[string]any{"department": "sales", "jti": "first " + strconv.Itoa(n)}))
	})
	agent := first.Agent().ID
	principalOf := func(claims map[string]any) *engine.Principal { return d.bearer(d.issuer.Sign(claims)).Principal(agent) }
	if principalOf(map[string]any{"department": "sales", "jti": "2", "exp": d.issuer.Now() + 300}) != first.Principal(agent) {
		t.Error("a token that only ends at another time makes another principal")
	}
	isSales := func(p *engine.Principal) bool { return holds(t, p, `request.principal.attr.department == "sales"`) }
	if !isSales(first.Principal(agent)) || isSales(principalOf(map[string]any{"department": "research"})) {
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
