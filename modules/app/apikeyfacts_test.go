package app

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/google/uuid"

	"github.com/durward-gateway/durward/internal/rules"
	"github.com/durward-gateway/durward/storage"
)

// say has the user's token say something of them, issued some time ago.
func (k *keyring) say(facts storage.UserFacts, ago time.Duration) {
	k.t.Helper()
	if _, err := k.store.ResolveUser(k.t.Context(), storage.UserClaim{
		OrganizationID: keyOrganization, Issuer: issuerID, Subject: "alice", DerivedID: uuid.NewString(), Kind: storage.UserPerson,
		Facts: facts, IssuedAt: time.Now().Add(-ago),
	}, time.Now()); err != nil {
		k.t.Fatal(err)
	}
}

// ofSales denies a group a tool that everybody else may call.
func ofSales(t *testing.T) *rules.Set {
	t.Helper()
	set, err := rules.Compile("server", "server-id", []storage.Policy{{ID: "p", Name: "p", Status: storage.PolicyActive, ServerID: "server-id", Rules: []storage.Rule{
		{Name: "all", Active: true, Authorized: true, Actions: []string{"*"}, RolesGroups: []string{"*"}},
		{Name: "no", Active: true, Actions: []string{"*"}, RolesGroups: []string{"group:sales"}},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// TestK09KeysActByTheirUsersFacts: a key for MCP servers acts by what the user's newest token said, for thirty days; a key for models
// by nothing. Without facts, what is denied to anybody's role or group is denied to the key.
func TestK09KeysActByTheirUsersFacts(t *testing.T) {
	sales := storage.UserFacts{Roles: []string{"seller"}, Groups: []string{"sales"}, Teams: []string{"t"}, Projects: []string{"p"}}
	others := storage.UserFacts{Roles: []string{"staff"}, Groups: []string{"ops"}}
	for name, tc := range map[string]struct {
		facts  storage.UserFacts
		ago    time.Duration // zero: no token said when it was issued
		scope  string
		want   storage.UserFacts
		denied bool
	}{
		"of the group":       {sales, time.Hour, "mcp", sales, true},
		"of another":         {others, 29 * 24 * time.Hour, "mcp", others, false},
		"nothing new":        {others, 31 * 24 * time.Hour, "mcp", storage.UserFacts{}, true},
		"nothing known":      {others, 0, "mcp", storage.UserFacts{}, true},
		"a key for models":   {sales, time.Hour, "llm", storage.UserFacts{}, true},
		"no groups, no role": {storage.UserFacts{}, time.Hour, "mcp", storage.UserFacts{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			k := newKeyring(t)
			if tc.ago != 0 {
				k.say(tc.facts, tc.ago)
			}
			raw, _ := k.make(func(s *storage.APIKey) { s.Scopes = []string{tc.scope} })
			call, err := k.use(raw, here)
			if err != nil {
				t.Fatal(err)
			}
			c := call.Caller
			if diff := cmp.Diff(tc.want, storage.UserFacts{Roles: c.Roles, Groups: c.Groups, Teams: c.Teams, Projects: c.Projects}, cmpopts.EquateEmpty()); diff != "" {
				t.Error(diff)
			}
			d := ofSales(t).Decide(t.Context(), rules.Call{Principal: call.Principal(), Kind: rules.ToolsCall, Name: "a"})
			if (d.Effect == rules.Deny) != tc.denied {
				t.Errorf("%+v", d)
			}
		})
	}
}

// TestK09StreamsOfKeys: what runs for a key is judged by what is said of its user by then, and a key whose agent is gone is none that
// was made without one.
func TestK09StreamsOfKeys(t *testing.T) {
	k := newKeyring(t)
	k.say(storage.UserFacts{Groups: []string{"ops"}}, time.Hour)
	agent := storage.Agent{ID: uuid.NewString(), OrganizationID: keyOrganization, Application: storage.Application{
		ID: uuid.NewString(), OrganizationID: keyOrganization, Issuer: issuerID, ExternalID: "robot",
	}}
	if err := k.store.CreateAgent(t.Context(), agent); err != nil {
		t.Fatal(err)
	}
	raw, _ := k.make(func(s *storage.APIKey) { s.AgentID = agent.ID })
	call, err := k.use(raw, here)
	if err != nil {
		t.Fatal(err)
	}
	if call.Agent == nil || call.Agent.ID != agent.ID || call.Caller.Agent != "robot" || call.Principal().AgentID() != agent.ID || call.PrincipalAs(nil).AgentID() != "" {
		t.Errorf("%+v %+v", call.Agent, call.Caller)
	}
	set, now := ofSales(t), call.PrincipalNow()
	effect := func() rules.Effect {
		t.Helper()
		p, err := now(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return set.Decide(t.Context(), rules.Call{Principal: p, Kind: rules.ToolsCall, Name: "a"}).Effect
	}
	if effect() != rules.Allow {
		t.Error("before")
	}
	k.say(storage.UserFacts{Groups: []string{"sales"}}, time.Minute)
	if effect() != rules.Deny {
		t.Error("after the user came into the group")
	}
	if err := k.store.DeleteAgent(t.Context(), keyOrganization, agent.ID, k.user.ID, time.Now()); err != nil {
		t.Fatal(err)
	}
	if _, err := k.use(raw, here); err == nil {
		t.Error("the key of an agent that is gone is good")
	}
	gone := newKnownKey(storage.APIKeyHolder{APIKey: storage.APIKey{AgentID: agent.ID}})
	if gone.good(time.Now()) == nil {
		t.Error("a key without its agent is good")
	}
}
