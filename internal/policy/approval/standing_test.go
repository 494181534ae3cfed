package approval_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/durward-gateway/durward/internal/policy/approval"
	"github.com/durward-gateway/durward/internal/policy/engine"
	"github.com/durward-gateway/durward/storage"
)

var noon = time.Unix(50_000, 0).UTC()

// people returns a store with a caller, alice, and others: bob is a lead by his last login, and carol is none.
func people() *memory {
	person := func(id string) storage.User {
		return storage.User{ID: id, OrganizationID: "o", Kind: storage.UserPerson}
	}
	machine := person("robot")
	machine.Kind = storage.UserMachine
	return &memory{
		users: map[string]storage.User{"alice": person("alice"), "bob": person("bob"), "carol": person("carol"), "robot": machine},
		facts: map[string]storage.SessionFacts{
			"alice": {Groups: []string{"leads"}, At: noon}, "bob": {Groups: []string{"x", "leads"}, Roles: []string{"editor"}, At: noon},
			"carol": {Roles: []string{"leads"}, At: noon}, "robot": {Groups: []string{"leads"}, At: noon},
		},
	}
}

func foreign(approvers ...[]string) *approval.Call {
	c := call()
	c.Channel, c.Approvers = storage.ChannelOutOfBand, approvers
	return c
}

func browser(user string) approval.Decider {
	return approval.Decider{OrganizationID: "o", UserID: user, Client: "durward", Browser: true}
}

// TestOtherGroups checks that who decides has the groups that somebody else than their login says, and nobody does when that
// cannot be found out.
func TestOtherGroups(t *testing.T) {
	failed := errors.New("the store is away")
	for name, tc := range map[string]struct {
		groups []string
		err    error
		want   bool
	}{"in the group": {[]string{"leads"}, nil, true}, "not in it": {nil, nil, false}, "unknown": {[]string{"leads"}, failed, false}} {
		e := approval.New(approval.Options{Store: people(), Groups: func(_ context.Context, organization, user string, said []string) ([]string, error) {
			if organization != "o" || user != "bob" || !slices.Equal(said, []string{"x", "leads"}) {
				t.Error(organization, user, said)
			}
			return tc.groups, tc.err
		}})
		s, err := e.Standing(t.Context(), browser("bob"))
		if !errors.Is(err, tc.err) || s.Decides("o", "alice", [][]string{{"group:leads"}}) != tc.want {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestForeign checks who decides on a call that its policy leaves to leads: any of them but the caller.
func TestForeign(t *testing.T) {
	leads := []string{"group:leads"}
	token := func(user string, groups ...string) approval.Decider {
		return approval.Decider{OrganizationID: "o", UserID: user, Client: "console", Groups: groups, FactsAt: noon}
	}
	change := func(d approval.Decider, f func(*approval.Decider)) approval.Decider { f(&d); return d }
	for name, tc := range map[string]struct {
		decider approval.Decider
		store   func(*memory)
		want    error
	}{
		"a lead with a browser":                 {decider: browser("bob")},
		"a lead with a token":                   {decider: token("bob", "leads")},
		"the caller, a lead":                    {decider: browser("alice"), want: approval.ErrCaller},
		"the caller, with a token":              {decider: token("alice", "leads"), want: approval.ErrCaller},
		"the caller, with another agent":        {decider: change(token("alice", "leads"), func(d *approval.Decider) { d.Client = "agent-b" }), want: approval.ErrCaller},
		"the caller, with a key":                {decider: change(token("alice", "leads"), func(d *approval.Decider) { d.Key = true }), want: approval.ErrCaller},
		"somebody else":                         {decider: browser("carol"), want: storage.ErrNotFound},
		"a token without groups":                {decider: token("bob"), want: storage.ErrNotFound},
		"a lead of another organization":        {decider: change(browser("bob"), func(d *approval.Decider) { d.OrganizationID = "p" }), want: storage.ErrNotFound},
		"a lead with the client of the call":    {decider: change(token("bob", "leads"), func(d *approval.Decider) { d.Client = "agent-a" }), want: approval.ErrClient},
		"a lead with a client that is not one":  {decider: change(token("bob", "leads"), func(d *approval.Decider) { d.Client = "agent-c" }), want: approval.ErrClient},
		"a lead with an API key":                {decider: change(token("bob", "leads"), func(d *approval.Decider) { d.Key = true }), want: storage.ErrNotFound},
		"a machine with the group":              {decider: change(token("robot", "leads"), func(d *approval.Decider) { d.Machine = true }), want: storage.ErrNotFound},
		"a machine's user":                      {decider: browser("robot"), want: storage.ErrNotFound},
		"nobody":                                {decider: approval.Decider{OrganizationID: "o", Client: "console", Groups: leads}, want: storage.ErrNotFound},
		"a lead whose last login says nothing":  {decider: browser("bob"), store: func(m *memory) { delete(m.facts, "bob") }, want: storage.ErrNotFound},
		"a lead who is gone":                    {decider: token("bob", "leads"), store: func(m *memory) { delete(m.users, "bob") }, want: storage.ErrNotFound},
		"a lead who was revoked since":          {decider: browser("bob"), store: edit("bob", func(u *storage.User) { u.RevokedAt = noon }), want: storage.ErrNotFound},
		"a token of a lead who was revoked":     {decider: token("bob", "leads"), store: edit("bob", func(u *storage.User) { u.RevokedAt = noon.Add(time.Second) }), want: storage.ErrNotFound},
		"a lead who was revoked before":         {decider: browser("bob"), store: edit("bob", func(u *storage.User) { u.RevokedAt = noon.Add(-1) })},
		"a lead by a newer token, too":          {decider: browser("bob"), store: edit("bob", func(u *storage.User) { u.Facts.Groups = storage.Fact{Names: []string{"leads"}, At: noon.Add(1)} })},
		"a lead who left, by a newer token":     {decider: browser("bob"), store: edit("bob", func(u *storage.User) { u.Facts.Groups = storage.Fact{Names: []string{"x"}, At: noon.Add(1)} }), want: storage.ErrNotFound},
		"an older token of a lead who left":     {decider: token("bob", "leads"), store: edit("bob", func(u *storage.User) { u.Facts.Groups = storage.Fact{At: noon.Add(1)} }), want: storage.ErrNotFound},
		"a token without a time, and one later": {decider: change(token("bob", "leads"), func(d *approval.Decider) { d.FactsAt = time.Time{} }), store: edit("bob", func(u *storage.User) { u.Facts.Groups = storage.Fact{At: noon} }), want: storage.ErrNotFound},
		"a lead since the older token":          {decider: browser("bob"), store: edit("bob", func(u *storage.User) { u.Facts.Groups = storage.Fact{At: noon} })},
	} {
		for _, approve := range []bool{true, false} {
			store := people()
			if tc.store != nil {
				tc.store(store)
			}
			e := newEngine(store, new(approval.Bell), func() time.Time { return noon })
			c := foreign(leads)
			a, err := e.Request(t.Context(), c)
			if err != nil {
				t.Fatal(err)
			}
			decided, err := e.Decide(t.Context(), tc.decider, a.ID, approve)
			if !errors.Is(err, tc.want) || (err == nil) != (tc.want == nil) || err == nil && decided.DecidedBy != tc.decider.UserID {
				t.Errorf("%s: %v, want %v; by %q", name, err, tc.want, decided.DecidedBy)
			}
			if _, err := e.Take(t.Context(), c, a.ID); (err == nil) != (tc.want == nil && approve) {
				t.Errorf("%s: taken: %v", name, err)
			}
			sees, err := e.Sees(t.Context(), tc.decider, &a)
			if may := tc.want == nil || errors.Is(tc.want, approval.ErrCaller) || errors.Is(tc.want, approval.ErrClient); err != nil || sees != may {
				t.Errorf("%s: sees %v, %v", name, sees, err)
			}
		}
	}
}

func edit(user string, f func(*storage.User)) func(*memory) {
	return func(m *memory) {
		u := m.users[user]
		f(&u)
		m.users[user] = u
	}
}

// TestForeignInBand checks that the client of the call says neither yes nor no on a call that others decide.
func TestForeignInBand(t *testing.T) {
	e := newEngine(people(), new(approval.Bell), func() time.Time { return noon })
	c := foreign([]string{"group:leads"})
	c.Channel = storage.ChannelInBand // as if the rule had forgotten the channel
	a, err := e.Request(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	for _, approve := range []bool{true, false} {
		if _, err := e.DecideInBand(t.Context(), "o", "alice", a.ID, approve); !errors.Is(err, approval.ErrChannel) {
			t.Errorf("%v: %v", approve, err)
		}
	}
	if a, err = e.Approval(t.Context(), "o", a.ID); err != nil || a.Status != storage.ApprovalPending {
		t.Errorf("%s, %v", a.Status, err)
	}
}

// TestForeignTooLate checks that nobody decides after the time of a call is over, nor twice.
func TestForeignTooLate(t *testing.T) {
	now := noon
	e := newEngine(people(), new(approval.Bell), func() time.Time { return now })
	late, err := e.Request(t.Context(), foreign([]string{"group:leads"}))
	if err != nil {
		t.Fatal(err)
	}
	now = now.Add(approval.DecideFor)
	if _, err := e.Decide(t.Context(), browser("bob"), late.ID, true); !errors.Is(err, storage.ErrConflict) {
		t.Errorf("too late: %v", err)
	}
	a, err := e.Request(t.Context(), foreign([]string{"group:leads"}))
	if err != nil || a.ID == late.ID {
		t.Fatal(a.ID, err)
	}
	if _, err := e.Decide(t.Context(), browser("bob"), a.ID, false); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Decide(t.Context(), browser("bob"), a.ID, true); !errors.Is(err, storage.ErrConflict) {
		t.Errorf("twice: %v", err)
	}
}

// TestForeignBinding checks that an approval is good only while the same people decide, and that the rounds of a call stay
// decided by them.
func TestForeignBinding(t *testing.T) {
	e := newEngine(people(), new(approval.Bell), func() time.Time { return noon })
	c := foreign([]string{"group:leads"})
	a, err := e.Request(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Decide(t.Context(), browser("bob"), a.ID, true); err != nil {
		t.Fatal(err)
	}
	for name, other := range map[string]*approval.Call{
		"the caller": foreign(), "others": foreign([]string{"group:others"}), "fewer": foreign([]string{"group:leads"}, []string{"group:x"}),
		"one list": foreign([]string{"group:leads", "group:x"}), "an empty list": foreign([]string{"group:leads"}, nil),
	} {
		if _, err := e.Take(t.Context(), other, a.ID); !errors.Is(err, storage.ErrNotFound) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if string(foreign([]string{"a", "b"}).Binding()) == string(foreign([]string{"a"}, []string{"b"}).Binding()) {
		t.Error("two calls have one binding")
	}
	used, err := e.Take(t.Context(), c, a.ID)
	if err != nil {
		t.Fatal(err)
	}
	next, round, err := e.Prolong(t.Context(), &used, c)
	if err != nil {
		t.Fatal(err)
	}
	again := *c
	again.Round = round
	if taken, err := e.Take(t.Context(), &again, next); err != nil || taken.DecidedBy != "bob" {
		t.Errorf("%+v, %v", taken, err)
	}
}

// TestForeignList checks that a list shows the calls of others that wait for its reader, page by page.
func TestForeignList(t *testing.T) {
	now := noon
	e := newEngine(people(), new(approval.Bell), func() time.Time { return now })
	var asked []string
	for _, approvers := range [][][]string{{{"group:leads"}}, {{"role:editor", "group:none"}}, {{"group:leads"}, {"role:editor"}}, {{"group:none"}}, nil} {
		a, err := e.Request(t.Context(), foreign(approvers...))
		if err != nil {
			t.Fatal(err)
		}
		asked = append(asked, a.ID)
	}
	list := func(user string, page storage.PageRequest) (ids []string, total int) {
		found, err := e.Foreign(t.Context(), browser(user), page)
		if err != nil {
			t.Fatal(err)
		}
		for i := range found.Items {
			ids = append(ids, found.Items[i].ID)
		}
		return ids, found.Total
	}
	if got, total := list("bob", storage.PageRequest{}); total != 3 || !slices.Equal(got, []string{asked[2], asked[1], asked[0]}) {
		t.Errorf("%v of %d", got, total)
	}
	if got, total := list("bob", storage.PageRequest{Number: 2, Limit: 2}); total != 3 || !slices.Equal(got, asked[:1]) {
		t.Errorf("%v of %d", got, total)
	}
	if got, total := list("bob", storage.PageRequest{Number: 9, Limit: 2}); total != 3 || got != nil {
		t.Errorf("%v of %d", got, total)
	}
	for _, user := range []string{"alice", "carol", "robot", ""} {
		if got, total := list(user, storage.PageRequest{}); total != 0 || got != nil {
			t.Errorf("%q: %v of %d", user, got, total)
		}
	}
	now = now.Add(approval.DecideFor)
	if got, _ := list("bob", storage.PageRequest{}); got != nil {
		t.Errorf("over: %v", got)
	}
}

// TestPropertyApprovers checks that nobody outside of the approvers ever decides, and never the caller.
func TestPropertyApprovers(t *testing.T) {
	users := []string{"alice", "bob", "carol", "robot"}
	entries := []string{"group:leads", "group:x", "role:leads", "role:editor", "user:alice", "user:bob", "user:carol", "user:robot"}
	rapid.Check(t, func(t *rapid.T) {
		store := people()
		e := newEngine(store, new(approval.Bell), func() time.Time { return noon })
		c := foreign(rapid.SliceOfN(rapid.SliceOfN(rapid.SampledFrom(entries), 1, 3), 1, 3).Draw(t, "approvers")...)
		c.UserID = rapid.SampledFrom(users[:3]).Draw(t, "caller")
		a, err := e.Request(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		d := approval.Decider{
			OrganizationID: rapid.SampledFrom([]string{"o", "o", "p"}).Draw(t, "organization"), UserID: rapid.SampledFrom(users).Draw(t, "decider"),
			Client: rapid.SampledFrom([]string{"console", "agent-a", "agent-b", ""}).Draw(t, "client"), Browser: rapid.Bool().Draw(t, "browser"),
			Machine: rapid.IntRange(0, 9).Draw(t, "machine") == 0, Key: rapid.IntRange(0, 9).Draw(t, "key") == 0, FactsAt: noon,
			Groups: rapid.SliceOf(rapid.SampledFrom([]string{"leads", "x"})).Draw(t, "groups"),
		}
		groups, roles := d.Groups, d.Roles
		if d.Browser {
			groups, roles = store.facts[d.UserID].Groups, store.facts[d.UserID].Roles
		}
		_, err = e.Decide(t.Context(), d, a.ID, rapid.Bool().Draw(t, "approve"))
		may := d.OrganizationID == "o" && d.UserID != c.UserID && d.UserID != "robot" && !d.Machine && !d.Key &&
			(d.Browser || d.Client == "console" || d.Client == "agent-b") && engine.IsApprover(c.Approvers, d.UserID, roles, groups)
		if may != (err == nil) {
			t.Fatalf("%v, may %v", err, may)
		}
	})
}

func TestPeople(t *testing.T) {
	for want, approvers := range map[string][][]string{
		"somebody else who is group:leads":                            {{"group:leads"}},
		"somebody else who is group:leads or role:x, and also user:1": {{"group:leads", "role:x"}, {"user:1"}},
		`somebody else who is group:a⟨U+202E⟩b`:                       {{"group:a\u202eb"}},
	} {
		if got := approval.People(approvers); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
