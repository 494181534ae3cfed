package engine

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/durward-gateway/durward/storage"
)

// strictness returns a number that orders decisions by their permissions.
func strictness(d Decision) int {
	switch {
	case d.Effect == Allow:
		return 0
	case d.Effect == Ask && !d.OutOfBand:
		return 1
	case d.Effect == Ask:
		return 2 + len(d.Approvers)
	}
	return math.MaxInt
}

// TestK09PropertyUnknownFactsGetNoMore checks that a credential with fewer facts than its user's token gets no more
// than the token, under any policies. A credential with all facts of the token gets the same.
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

// TestK09UnknownFacts checks the answer of each rule to a principal whose facts are unknown.
func TestK09UnknownFacts(t *testing.T) {
	t.Parallel()
	all := grant("all", "*")
	ofSales := func(r storage.Rule) storage.Rule { r.RolesGroups = []string{"group:sales"}; return r }
	asks := grant("asks", "tools/call:a:approve")
	everybodyAsks := func(r storage.Rule) storage.Rule { r.Name = "everybody asks"; return r }
	outOfBand := asks
	outOfBand.Name, outOfBand.Approval.Channel = "out of band", storage.ChannelOutOfBand
	for name, tc := range map[string]struct {
		rules     []storage.Rule
		want      Effect
		outOfBand bool
		rule      string
	}{
		"a deny of a group":                                    {[]storage.Rule{all, ofSales(deny("sales", "*"))}, Deny, false, "sales"},
		"a grant of a group":                                   {[]storage.Rule{ofSales(all)}, Deny, false, ""},
		"a grant of everybody":                                 {[]storage.Rule{all}, Allow, false, "all"},
		"a deny on groups":                                     {[]storage.Rule{all, when(deny("sales", "*"), `"sales" in P.groups`)}, Deny, false, "sales"},
		"a deny on a claim":                                    {[]storage.Rule{all, when(deny("floor", "*"), `P.attr.floor == 7`)}, Deny, false, "floor"},
		"a grant on groups":                                    {[]storage.Rule{when(all, `!("sales" in P.groups)`)}, Deny, false, ""},
		"a grant on who it is":                                 {[]storage.Rule{when(all, `P.id == "u1"`)}, Allow, false, "all"},
		"a deny on the arguments":                              {[]storage.Rule{all, when(deny("n", "*"), `R.attr.n == 2`)}, Allow, false, "all"},
		"a group must ask":                                     {[]storage.Rule{all, ofSales(asks)}, Ask, false, "asks"},
		"a group must ask out of band":                         {[]storage.Rule{all, asks, ofSales(outOfBand)}, Ask, true, "out of band"},
		"a claim says who must ask":                            {[]storage.Rule{all, when(asks, `P.attr.floor == 7`)}, Ask, false, "asks"},
		"a group must ask for what is not granted":             {[]storage.Rule{ofSales(asks)}, Deny, false, ""},
		"a group must ask out of band for what is not granted": {[]storage.Rule{ofSales(outOfBand)}, Deny, false, ""},
		"a condition that asks nobody":                         {[]storage.Rule{all, when(asks, `P.id == "u2"`)}, Allow, false, "all"},
		"a group must ask, and so must everybody":              {[]storage.Rule{ofSales(asks), everybodyAsks(asks)}, Ask, false, "everybody asks"},
		"a group must ask out of band, and so must everybody":  {[]storage.Rule{ofSales(outOfBand), everybodyAsks(outOfBand)}, Ask, true, "everybody asks"},
		"a grant on the server":                                {[]storage.Rule{when(all, `size(R) == 3`)}, Allow, false, "all"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := Compile(serverSlug, serverID, []storage.Policy{{ID: "p", Name: "p", Status: storage.PolicyActive, ServerID: serverID, Rules: tc.rules}})
			if err != nil {
				t.Fatal(err)
			}
			p := NewPrincipalWithout(Unknown{Roles: true, Groups: true, Claims: true}, "u1", []string{"not looked at"}, []string{"nor this"}, "")
			d := s.Decide(t.Context(), Call{Principal: p, Kind: ToolsCall, Name: "a", Arguments: []byte(`{"n":1}`)})
			if d.Effect != tc.want || d.OutOfBand != tc.outOfBand || d.Rule != tc.rule {
				t.Errorf("%+v", d)
			}
		})
	}
}

// TestK09PartlyUnknown checks that known facts are used, that unknown facts are not, and that a rule that denies by an
// unknown fact matches.
func TestK09PartlyUnknown(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		unknown Unknown
		want    map[string]Effect // for a tool that a rule for this subject denies
		grants  string            // the only subject with a grant
	}{
		"roles":  {Unknown{Roles: true}, map[string]Effect{"role:r": Deny, "group:h": Allow, "r": Deny}, "group:g"},
		"groups": {Unknown{Groups: true}, map[string]Effect{"role:s": Allow, "group:g": Deny, "g": Deny}, "role:r"},
	} {
		p := NewPrincipalWithout(tc.unknown, "u1", []string{"r"}, []string{"g"}, "")
		for subject, want := range tc.want {
			s := compile(t, active(grant("all", "*"), forSubjects(deny("d", "*"), subject)))
			if d := s.Decide(t.Context(), Call{Principal: p, Kind: ToolsCall, Name: "x"}); d.Effect != want {
				t.Errorf("%s are unknown, a deny of %s: %+v", name, subject, d)
			}
		}
		for _, subject := range []string{"role:r", "group:g"} {
			s := compile(t, active(forSubjects(grant("g", "*"), subject)))
			if d := s.Decide(t.Context(), Call{Principal: p, Kind: ToolsCall, Name: "x"}); (d.Effect == Allow) != (subject == tc.grants) {
				t.Errorf("%s are unknown, a grant of %s: %+v", name, subject, d)
			}
		}
	}
}

// TestK09Shadow checks that the wary judgement of the deciding policy does not carry over to a draft.
func TestK09Shadow(t *testing.T) {
	t.Parallel()
	ofSales := forSubjects(grant("asks", "tools/call:x:approve"), "group:sales")
	draft := active(ofSales)
	draft.ID, draft.Status, draft.Shadow = "draft", storage.PolicyDraft, true
	p := NewPrincipalWithout(Unknown{Groups: true}, "u1", nil, nil, "")
	d := compile(t, active(grant("all", "*"), ofSales), draft).Decide(t.Context(), Call{Principal: p, Kind: ToolsCall, Name: "x"})
	if d.Effect != Ask || len(d.Shadow) != 1 || d.Shadow[0].Effect != Deny {
		t.Errorf("%+v", d)
	}
}
