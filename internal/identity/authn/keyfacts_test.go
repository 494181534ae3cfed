package authn

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/google/uuid"

	"github.com/durward-gateway/durward/internal/identity/authn/authntest"
	"github.com/durward-gateway/durward/internal/identity/token"
	"github.com/durward-gateway/durward/internal/policy/engine"
	"github.com/durward-gateway/durward/storage"
)

type lists = authntest.Lists

// TestK09KeysActByTheirUsersFacts checks that a user's key acts by what tokens said of the user, for thirty days. Where
// nobody knows what a list holds now, what is denied to anybody's role or group is denied to the key; limits count it
// where it was last.
func TestK09KeysActByTheirUsersFacts(t *testing.T) {
	const day = 24 * time.Hour
	sales := lists{Roles: []string{"seller"}, Groups: []string{"sales"}, Teams: []string{"t"}, Projects: []string{"p"}}
	none := lists{Roles: []string{}, Groups: []string{}, Teams: []string{}, Projects: []string{}}
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
		"not in the group any more":          {[]said{{sales, 2 * time.Hour}, {none, time.Hour}}, lists{}, false},
		"groups that are not named any more": {[]said{{others, 2 * time.Hour}, {lists{Roles: []string{"staff"}}, time.Hour}}, others, true},
		"for long":                           {[]said{{others, 31 * day}, {lists{Roles: []string{"staff"}}, time.Hour}}, others, true},
		"named again":                        {[]said{{others, 3 * day}, {lists{}, 2 * day}, {others, day}}, others, false},
	} {
		for _, scope := range []string{"mcp", "llm"} {
			t.Run(name+" "+scope, func(t *testing.T) {
				k := newKeyDoor(t)
				for _, s := range tc.said {
					k.Say(s.lists, s.ago)
				}
				raw, _ := k.Make(func(s *storage.APIKey) { s.Scopes = []string{scope} })
				b, err := k.use(raw, here)
				if err != nil {
					t.Fatal(err)
				}
				c := b.Caller()
				if diff := cmp.Diff(tc.want, lists{Roles: c.Roles, Groups: c.Groups, Teams: c.Teams, Projects: c.Projects}, cmpopts.EquateEmpty()); diff != "" {
					t.Error(diff)
				}
				if d := authntest.DeniesSales(t).Decide(t.Context(), engine.Call{Principal: b.Principal(""), Kind: engine.ToolsCall, Name: "a"}); (d.Effect == engine.Deny) != tc.denied {
					t.Errorf("%+v", d)
				}
				if size := sizeOf(tc.want.Roles, tc.want.Groups); b.RolesSize() != size {
					t.Errorf("roles and groups have %d bytes, want %d", b.RolesSize(), size)
				}
				if unknown := tc.denied && !slices.Contains(tc.want.Groups, "sales"); b.RolesUnknown() != unknown {
					t.Errorf("unknown: %t", b.RolesUnknown())
				}
			})
		}
	}
}

// TestK09KeysOfFormerVersions checks that a key of which nobody knows with whose token it was made opens no server.
func TestK09KeysOfFormerVersions(t *testing.T) {
	k := newKeyDoor(t)
	raw, _ := k.Make(func(s *storage.APIKey) { s.MadeWith, s.Scopes = "", []string{"mcp", "llm"} })
	b, err := k.use(raw, here)
	if err != nil {
		t.Fatal(err)
	}
	if scopes := b.Caller().Key.Scopes; scopes.MCP || !scopes.LLM() {
		t.Errorf("%+v", scopes)
	}
}

// TestK09StreamsOfKeys checks that streams and calls of a key are judged by the present facts about its user, and a key
// whose agent is gone is none that was made without one.
func TestK09StreamsOfKeys(t *testing.T) {
	k := newKeyDoor(t)
	k.Say(lists{Groups: []string{"ops"}}, time.Hour)
	agent := storage.Agent{ID: uuid.NewString(), OrganizationID: authntest.OrganizationID, Application: storage.Application{
		ID: uuid.NewString(), OrganizationID: authntest.OrganizationID, Issuer: authntest.IssuerID, ExternalID: "robot",
	}}
	if err := k.store.CreateAgent(t.Context(), agent); err != nil {
		t.Fatal(err)
	}
	raw, _ := k.Make(func(s *storage.APIKey) { s.AgentID = agent.ID })
	b, err := k.use(raw, here)
	if err != nil {
		t.Fatal(err)
	}
	if a := b.Agent(); a == nil || a.ID != agent.ID || b.Caller().Agent != "robot" || b.Principal(a.ID).AgentID() != a.ID || b.Principal("").AgentID() != "" {
		t.Errorf("%+v %+v", a, b.Caller())
	}
	set, now := authntest.DeniesSales(t), k.PrincipalNow(b)
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
	k.Say(lists{Groups: []string{"sales"}}, time.Minute)
	if effect() != engine.Deny {
		t.Error("after the user came into the group")
	}
	if err := k.store.DeleteAgent(t.Context(), authntest.OrganizationID, agent.ID, k.User.ID, time.Now()); err != nil {
		t.Fatal(err)
	}
	if _, err := k.use(raw, here); !errors.Is(err, token.ErrInvalid) {
		t.Errorf("the key of an agent that is gone: %v", err)
	}
	was := b.Principal(agent.ID)
	if p, err := now(t.Context()); err != nil || p != was {
		t.Errorf("a stream of the key: %v, %v", p, err)
	}
	gone := newKnownKey(storage.APIKeyHolder{APIKey: storage.APIKey{AgentID: agent.ID}}, time.Now())
	if gone.good(time.Now()) == nil {
		t.Error("a key without its agent is good")
	}
}

// TestKeyStreamsNeedAgents checks that a stream of a key that was made for no agent ends when clients must be agents, and
// that an error of the store is no principal.
func TestKeyStreamsNeedAgents(t *testing.T) {
	k := newKeyDoor(t)
	raw, _ := k.Make(nil)
	b, err := k.use(raw, here)
	if err != nil {
		t.Fatal(err)
	}
	now := k.PrincipalNow(b)
	if p, err := now(t.Context()); err != nil || p == nil {
		t.Errorf("%v, %v", p, err)
	}
	k.requireAgents = true
	if p, err := now(t.Context()); err != nil || p != nil {
		t.Errorf("%v, %v: an agent is required", p, err)
	}
	agent := k.register(authntest.OrganizationID, authntest.IssuerID, "robot")
	ofAgent, _ := k.Make(func(s *storage.APIKey) { s.AgentID = agent.ID })
	robot, err := k.use(ofAgent, here)
	if err != nil {
		t.Fatal(err)
	}
	if p, err := k.PrincipalNow(robot)(t.Context()); err != nil || p == nil || p.AgentID() != agent.ID {
		t.Errorf("%v, %v: an agent is there", p, err)
	}
	k.store.keysFail = storage.ErrUnavailable
	k.epochs.Bump("")
	if p, err := now(t.Context()); !errors.Is(err, storage.ErrUnavailable) || p != nil {
		t.Errorf("%v, %v: the store is away", p, err)
	}
}

// TestFactsOfKeysGrowOld checks that a key that is in use loses the facts of its user when no token said them again.
func TestFactsOfKeysGrowOld(t *testing.T) {
	k := newKeyDoor(t)
	k.Say(lists{Roles: []string{"staff"}, Groups: []string{"ops"}}, time.Hour)
	raw, _ := k.Make(nil)
	unknown := func() bool {
		t.Helper()
		b, err := k.use(raw, here)
		if err != nil {
			t.Fatal(err)
		}
		return b.RolesUnknown()
	}
	if unknown() {
		t.Error("unknown at once")
	}
	k.turned.Store(int64(factsLast - 2*time.Hour))
	if unknown() {
		t.Error("unknown before their time")
	}
	k.turned.Store(int64(factsLast))
	if !unknown() {
		t.Error("known for ever")
	}
}

// TestRolesAloneUnknown checks that roles are unknown that the last token does not name, though it names groups.
func TestRolesAloneUnknown(t *testing.T) {
	k := newKeyDoor(t)
	k.Say(lists{Roles: []string{"staff"}, Groups: []string{"ops"}}, 2*time.Hour)
	k.Say(lists{Groups: []string{"ops"}}, time.Hour)
	raw, _ := k.Make(nil)
	if b, err := k.use(raw, here); err != nil || !b.RolesUnknown() {
		t.Errorf("they are known: %v", err)
	}
}

// TestFactsLast checks for how long the facts in a token count, to the moment, and that a list without facts is unknown.
func TestFactsLast(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		facts, list, now time.Time
		want             bool
	}{
		"of a new token":              {at, at, at, false},
		"at the end of their time":    {at, at, at.Add(factsLast), false},
		"behind it":                   {at, at, at.Add(factsLast + 1), true},
		"of no token":                 {time.Time{}, time.Time{}, at, true},
		"that no token has named":     {at, time.Time{}, at, false},
		"that the last does not name": {at, at.Add(-1), at, true},
	} {
		if got := unsure(&storage.User{FactsAt: c.facts}, storage.Fact{At: c.list}, c.now); got != c.want {
			t.Errorf("a list %s is unknown: %v", name, got)
		}
	}
}

// TestKeysOfRevokedUsers checks that a revocation ends the keys that a user had, and no later ones.
func TestKeysOfRevokedUsers(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		made, revoked time.Time
		good          bool
	}{
		"made before":                {at.Add(-1), at, false},
		"made at the same moment":    {at, at, false},
		"made since":                 {at.Add(1), at, true},
		"of a user who is not":       {at, time.Time{}, true},
		"of a user, made at no time": {time.Time{}, time.Time{}, true},
	} {
		known := newKnownKey(storage.APIKeyHolder{APIKey: storage.APIKey{CreatedAt: c.made}, User: &storage.User{RevokedAt: c.revoked}}, at)
		if err := known.good(at); (err == nil) != c.good {
			t.Errorf("%s: %v", name, err)
		}
	}
}
