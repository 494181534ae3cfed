package app

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/google/uuid"

	"github.com/durward-gateway/durward/internal/mcp/streams"
	"github.com/durward-gateway/durward/internal/policy/engine"
	"github.com/durward-gateway/durward/storage"
)

// lists holds the lists that a token names; nil is a list that it does not name.
type lists struct{ Roles, Groups, Teams, Projects []string }

// say makes a token of the user with these lists that was issued some time ago.
func (k *keyring) say(l lists, ago time.Duration) {
	k.t.Helper()
	if _, err := k.store.ResolveUser(k.t.Context(), storage.UserClaim{
		OrganizationID: keyOrganization, Issuer: issuerID, Subject: "alice", DerivedID: uuid.NewString(), Kind: storage.UserPerson,
		Roles: l.Roles, Groups: l.Groups, Teams: l.Teams, Projects: l.Projects, IssuedAt: time.Now().Add(-ago),
	}, time.Now()); err != nil {
		k.t.Fatal(err)
	}
}

// ofSales denies a group a tool that everybody else may call.
func ofSales(t *testing.T) *engine.Set {
	t.Helper()
	set, err := engine.Compile("server", "server-id", []storage.Policy{{ID: "p", Name: "p", Status: storage.PolicyActive, ServerID: "server-id", Rules: []storage.Rule{
		{Name: "all", Active: true, Authorized: true, Actions: []string{"*"}, RolesGroups: []string{"*"}},
		{Name: "no", Active: true, Actions: []string{"*"}, RolesGroups: []string{"group:sales"}},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// TestK09KeysActByTheirUsersFacts checks that a user's key acts by what tokens said of the user, for thirty days. Where
// nobody knows what a list holds now, what is denied to anybody's role or group is denied to the key; limits count it
// where it was last.
func TestK09KeysActByTheirUsersFacts(t *testing.T) {
	const day = 24 * time.Hour
	sales := lists{[]string{"seller"}, []string{"sales"}, []string{"t"}, []string{"p"}}
	others := lists{Roles: []string{"staff"}, Groups: []string{"ops"}}
	type said struct {
		lists
		ago time.Duration
	}
	for name, tc := range map[string]struct {
		said   []said
		want   lists
		denied bool
	}{
		"of the group":                       {[]said{{sales, time.Hour}}, sales, true},
		"of another":                         {[]said{{others, 29 * day}}, others, false},
		"nothing new":                        {[]said{{others, 31 * day}}, others, true},
		"nothing known":                      {nil, lists{}, true},
		"never any groups":                   {[]said{{lists{Roles: []string{"staff"}}, time.Hour}}, lists{Roles: []string{"staff"}}, false},
		"in no group":                        {[]said{{lists{Groups: []string{}}, time.Hour}}, lists{}, false},
		"not in the group any more":          {[]said{{sales, 2 * time.Hour}, {lists{[]string{}, []string{}, []string{}, []string{}}, time.Hour}}, lists{}, false},
		"groups that are not named any more": {[]said{{others, 2 * time.Hour}, {lists{Roles: []string{"staff"}}, time.Hour}}, others, true},
		"for long":                           {[]said{{others, 31 * day}, {lists{Roles: []string{"staff"}}, time.Hour}}, others, true},
		"named again":                        {[]said{{others, 3 * day}, {lists{}, 2 * day}, {others, day}}, others, false},
	} {
		for _, scope := range []string{"mcp", "llm"} {
			t.Run(name+" "+scope, func(t *testing.T) {
				k := newKeyring(t)
				for _, s := range tc.said {
					k.say(s.lists, s.ago)
				}
				raw, _ := k.make(func(s *storage.APIKey) { s.Scopes = []string{scope} })
				call, err := k.use(raw, here)
				if err != nil {
					t.Fatal(err)
				}
				c := call.Caller
				if diff := cmp.Diff(tc.want, lists{c.Roles, c.Groups, c.Teams, c.Projects}, cmpopts.EquateEmpty()); diff != "" {
					t.Error(diff)
				}
				if d := ofSales(t).Decide(t.Context(), engine.Call{Principal: call.Principal(), Kind: engine.ToolsCall, Name: "a"}); (d.Effect == engine.Deny) != tc.denied {
					t.Errorf("%+v", d)
				}
			})
		}
	}
}

// TestK09KeysOfFormerVersions checks that a key of which nobody knows with whose token it was made opens no server.
func TestK09KeysOfFormerVersions(t *testing.T) {
	k := newKeyring(t)
	raw, _ := k.make(func(s *storage.APIKey) { s.MadeWith, s.Scopes = "", []string{"mcp", "llm"} })
	call, err := k.use(raw, here)
	if err != nil {
		t.Fatal(err)
	}
	if scopes := call.Caller.Key.Scopes; scopes.MCP || !scopes.LLM() {
		t.Errorf("%+v", scopes)
	}
}

// TestK09StreamsOfKeys checks that streams and calls of a key are judged by the present facts about its user, and a key
// whose agent is gone is none that was made without one.
func TestK09StreamsOfKeys(t *testing.T) {
	k := newKeyring(t)
	k.say(lists{Groups: []string{"ops"}}, time.Hour)
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
	effect := func() engine.Effect {
		t.Helper()
		p, err := now(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return set.Decide(t.Context(), engine.Call{Principal: p, Kind: engine.ToolsCall, Name: "a"}).Effect
	}
	if effect() != engine.Allow {
		t.Error("before")
	}
	k.say(lists{Groups: []string{"sales"}}, time.Minute)
	if effect() != engine.Deny {
		t.Error("after the user came into the group")
	}
	if err := k.store.DeleteAgent(t.Context(), keyOrganization, agent.ID, k.user.ID, time.Now()); err != nil {
		t.Fatal(err)
	}
	if _, err := k.use(raw, here); err == nil {
		t.Error("the key of an agent that is gone is good")
	}
	gone := newKnownKey(storage.APIKeyHolder{APIKey: storage.APIKey{AgentID: agent.ID}}, time.Now())
	if gone.good(time.Now()) == nil {
		t.Error("a key without its agent is good")
	}
}

// TestK09StreamOpensByFactsOfNow writes facts of the user between the proof of a key and the look at its server: the stream of
// the call begins only by the facts that hold then.
func TestK09StreamOpensByFactsOfNow(t *testing.T) {
	k := newKeyring(t)
	k.say(lists{Roles: []string{"staff"}, Groups: []string{"ops"}}, time.Hour)
	addServer(t, k.store, keyOrganization, k.user.ID, "demo")
	raw, _ := k.make(nil)
	call, err := k.use(raw, here)
	if err != nil {
		t.Fatal(err)
	}
	k.say(lists{Roles: []string{"staff"}, Groups: []string{"sales"}}, time.Minute)
	if err := call.ResolveServer(t.Context(), "demo"); err != nil {
		t.Fatal(err)
	}
	set, principalNow := ofSales(t), call.PrincipalNow()
	allowed := func(ctx context.Context, who *engine.Principal) bool {
		return set.Decide(ctx, engine.Call{Principal: who, Kind: engine.ToolsCall, Name: "read"}).Effect == engine.Allow
	}
	if !allowed(t.Context(), call.Principal()) {
		t.Fatal("the group of before is denied too")
	}
	call.Decide().Right = func(ctx context.Context) (bool, error) {
		who, err := principalNow(ctx)
		return err == nil && allowed(ctx, who), err
	}
	ctx, done := call.OpenStream(t.Context(), streams.Listen)
	defer done()
	if reason, ended := streams.EndedFor(ctx); !ended || reason != streams.PolicyChanged {
		t.Errorf("the stream begins by what was: %q", reason)
	}
}
