package rules

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/durward-gateway/durward/storage"
)

// strictness orders decisions by what they let through.
func strictness(d Decision) int {
	switch {
	case d.Effect == Allow:
		return 0
	case d.Effect == Ask && !d.OutOfBand:
		return 1
	case d.Effect == Ask:
		return 2
	}
	return 3
}

// K09: a credential that does not say all that its user's token says gets no more than that token, whatever the policies are. One
// that says all of it gets the same.
func TestK09PropertyUnknownFactsGetNoMore(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		policies, who := drawPolicies(t), drawWho(t)
		s, token := compileAll(t, policies), who.principal()
		tokenView := s.View(t.Context(), token)
		noMore := func(c Call, key *Principal, unknown Unknown) {
			c.Principal = token
			want := s.Decide(t.Context(), c)
			c.Principal = key
			if got := s.Decide(t.Context(), c); strictness(got) < strictness(want) || unknown == (Unknown{}) && got.Effect != want.Effect {
				t.Fatalf("%+v %v %s %s: the key gets %+v, the token %+v", unknown, c.Kind, c.Name, c.Arguments, got, want)
			}
		}
		for _, unknown := range []Unknown{{}, {Claims: true}, {Roles: true}, {Groups: true}, {Roles: true, Groups: true, Claims: true}} {
			key := NewPrincipalWithout(unknown, who.id, who.roles, who.groups, who.agent)
			keyView := s.View(t.Context(), key)
			for _, name := range drawnNames {
				if keyView.Tool(name) && !tokenView.Tool(name) || keyView.Prompt(name) && !tokenView.Prompt(name) ||
					keyView.Resource(name) && !tokenView.Resource(name) || keyView.Template(name+"{x}") && !tokenView.Template(name+"{x}") {
					t.Fatalf("%+v: %s is listed for the key alone", unknown, name)
				}
				for _, args := range refArguments {
					for _, kind := range []Kind{ToolsCall, PromptsGet} {
						noMore(Call{Kind: kind, Name: name, Arguments: mustJSON(args)}, key, unknown)
					}
				}
				noMore(Call{Kind: ResourcesRead, Name: name}, key, unknown)
			}
			noMore(Call{Kind: SSEStream}, key, unknown)
			noMore(Call{Kind: SSEStream, Open: true}, key, unknown)
		}
	})
}

// K09: what each rule says to somebody whose facts nobody knows.
func TestK09UnknownFacts(t *testing.T) {
	t.Parallel()
	all := grant("all", "*")
	ofSales := func(r storage.Rule) storage.Rule { r.RolesGroups = []string{"group:sales"}; return r }
	asks := grant("asks", "tools/call:a:approve")
	outOfBand := asks
	outOfBand.Name, outOfBand.Approval = "out of band", storage.ChannelOutOfBand
	for name, tc := range map[string]struct {
		rules     []storage.Rule
		want      Effect
		outOfBand bool
	}{
		"a deny of a group":                        {[]storage.Rule{all, ofSales(deny("sales", "*"))}, Deny, false},
		"a grant of a group":                       {[]storage.Rule{ofSales(all)}, Deny, false},
		"a grant of everybody":                     {[]storage.Rule{all}, Allow, false},
		"a deny on groups":                         {[]storage.Rule{all, when(deny("sales", "*"), `"sales" in P.groups`)}, Deny, false},
		"a deny on a claim":                        {[]storage.Rule{all, when(deny("floor", "*"), `P.attr.floor == 7`)}, Deny, false},
		"a grant on groups":                        {[]storage.Rule{when(all, `!("sales" in P.groups)`)}, Deny, false},
		"a grant on who it is":                     {[]storage.Rule{when(all, `P.id == "u1"`)}, Allow, false},
		"a deny on the arguments":                  {[]storage.Rule{all, when(deny("n", "*"), `R.attr.n == 2`)}, Allow, false},
		"a group must ask":                         {[]storage.Rule{all, ofSales(asks)}, Ask, false},
		"a group must ask out of band":             {[]storage.Rule{all, asks, ofSales(outOfBand)}, Ask, true},
		"a claim says who must ask":                {[]storage.Rule{all, when(asks, `P.attr.floor == 7`)}, Ask, false},
		"a group must ask for what is not granted": {[]storage.Rule{ofSales(asks)}, Deny, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := Compile(serverSlug, serverID, []storage.Policy{{ID: "p", Name: "p", Status: storage.PolicyActive, ServerID: serverID, Rules: tc.rules}})
			if err != nil {
				t.Fatal(err)
			}
			p := NewPrincipalWithout(Unknown{Roles: true, Groups: true, Claims: true}, "u1", []string{"not looked at"}, []string{"nor this"}, "")
			d := s.Decide(t.Context(), Call{Principal: p, Kind: ToolsCall, Name: "a", Arguments: []byte(`{"n":1}`)})
			if d.Effect != tc.want || d.OutOfBand != tc.outOfBand {
				t.Errorf("%+v", d)
			}
		})
	}
}
