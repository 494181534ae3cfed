package storagetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/durward-gateway/durward/storage"
)

// someProvisioned is more than any case makes.
const someProvisioned = 1000

func (b *bundle) newProvisioned(organization, name string) storage.ProvisionedUser {
	return storage.ProvisionedUser{
		ID: newID(), OrganizationID: organization, UserName: name, ExternalID: "ext " + name, Email: "mail " + name, Active: true,
		Attributes: json.RawMessage(`{"displayName":"` + "One" + `"}`), CreatedAt: start, UpdatedAt: start,
	}
}

func (b *bundle) provisioned(t *testing.T, name string) storage.ProvisionedUser {
	t.Helper()
	u := b.newProvisioned(b.orgA, name)
	noError(t, b.CreateProvisionedUser(t.Context(), u, someProvisioned))
	return u
}

func (b *bundle) provisionedGroup(t *testing.T, name string, members ...string) storage.ProvisionedGroup {
	t.Helper()
	g := storage.ProvisionedGroup{ID: newID(), OrganizationID: b.orgA, Name: name, ExternalID: "ext " + name, CreatedAt: start, UpdatedAt: start}
	noError(t, b.CreateProvisionedGroup(t.Context(), g, members, storage.ProvisionedMost{Groups: someProvisioned, Members: someProvisioned}))
	return g
}

// namedUser makes a user of the gateway with a subject and an address.
func (b *bundle) namedUser(t *testing.T, subject, email string) string {
	t.Helper()
	u, err := b.ResolveUser(t.Context(), storage.UserClaim{OrganizationID: b.orgA, Issuer: issuer, Subject: subject, DerivedID: newID(), Kind: storage.UserPerson, Email: email}, start)
	noError(t, err)
	return u.ID
}

func setProvisioned(change func(*storage.ProvisionedUser)) func(*storage.ProvisionedUser) error {
	return func(u *storage.ProvisionedUser) error { change(u); return nil }
}

// testProvisionedUsers follows provisioned users from their creation to their deletion.
func testProvisionedUsers(t *testing.T, b *bundle) {
	ctx := t.Context()
	var err error
	ada, bob := b.provisioned(t, "Ada@Example.com"), b.provisioned(t, "bob")
	read, err := b.ProvisionedUser(ctx, b.orgA, ada.ID)
	noError(t, err)
	equal(t, read, ada)
	for _, name := range []string{"ada@example.com", "Ada@Example.com"} {
		wantConflict(t, b.CreateProvisionedUser(ctx, b.newProvisioned(b.orgA, name), someProvisioned), "user_name")
	}
	noError(t, b.CreateProvisionedUser(ctx, b.newProvisioned(b.orgB, "bob"), someProvisioned)) // another organization's names are free
	for name, c := range map[string]struct {
		filter storage.ProvisionedFilter
		want   []storage.ProvisionedUser
		total  int
	}{
		"everything":      {storage.ProvisionedFilter{Limit: 10}, []storage.ProvisionedUser{ada, bob}, 2},
		"only a count":    {storage.ProvisionedFilter{}, nil, 2},
		"a page":          {storage.ProvisionedFilter{Skip: 1, Limit: 1}, []storage.ProvisionedUser{bob}, 2},
		"beyond the end":  {storage.ProvisionedFilter{Skip: 2, Limit: 1}, nil, 2},
		"by name":         {storage.ProvisionedFilter{Name: "ADA@example.COM", Limit: 10}, []storage.ProvisionedUser{ada}, 1},
		"by external id":  {storage.ProvisionedFilter{ExternalID: "ext bob", Limit: 10}, []storage.ProvisionedUser{bob}, 1},
		"exactly":         {storage.ProvisionedFilter{ExternalID: "EXT bob", Limit: 10}, nil, 0},
		"by address":      {storage.ProvisionedFilter{Email: "MAIL bob", Limit: 10}, []storage.ProvisionedUser{bob}, 1},
		"by id":           {storage.ProvisionedFilter{ID: bob.ID, Limit: 10}, []storage.ProvisionedUser{bob}, 1},
		"by several":      {storage.ProvisionedFilter{ID: bob.ID, Name: "ada@example.com", Limit: 10}, nil, 0},
		"the active":      {storage.ProvisionedFilter{Active: new(true), Limit: 10}, []storage.ProvisionedUser{ada, bob}, 2},
		"the others":      {storage.ProvisionedFilter{Active: new(false), Limit: 10}, nil, 0},
		"of nobody":       {storage.ProvisionedFilter{Name: "nobody", Limit: 10}, nil, 0},
		"injected in SQL": {storage.ProvisionedFilter{Name: "' OR '1'='1", Limit: 10}, nil, 0},
	} {
		c.filter.OrganizationID = b.orgA
		page, err := b.ProvisionedUsers(ctx, c.filter)
		noError(t, err)
		t.Run(name, func(t *testing.T) {
			equal(t, page, storage.Page[storage.ProvisionedUser]{Items: c.want, Total: c.total})
		})
	}

	var before, after storage.ProvisionedUser
	changed := b.changes(func() {
		before, after, err = b.UpdateProvisionedUser(ctx, b.orgA, ada.ID, storage.MatchUserName, setProvisioned(func(u *storage.ProvisionedUser) {
			u.Attributes, u.UpdatedAt, u.ID, u.OrganizationID = json.RawMessage(`{}`), start.Add(time.Hour), b.unknown, b.orgB
		}))
	})
	noError(t, err)
	equal(t, changed, 0) // no decision depends on it
	equal(t, before, ada)
	ada.Attributes, ada.UpdatedAt = json.RawMessage(`{}`), start.Add(time.Hour)
	equal(t, after, ada)
	_, _, err = b.UpdateProvisionedUser(ctx, b.orgA, ada.ID, storage.MatchUserName, setProvisioned(func(u *storage.ProvisionedUser) { u.UserName = "BOB" }))
	wantConflict(t, err, "user_name")
	refused := errors.New("no")
	_, _, err = b.UpdateProvisionedUser(ctx, b.orgA, ada.ID, storage.MatchUserName, func(u *storage.ProvisionedUser) error { u.Active = false; return refused })
	equal(t, err == refused, true)
	for _, change := range []func(*storage.ProvisionedUser){
		func(u *storage.ProvisionedUser) { u.Active = false }, func(u *storage.ProvisionedUser) { u.UserName = "ada" }, func(u *storage.ProvisionedUser) { u.ExternalID = "" },
	} {
		changed = b.changes(func() {
			_, after, err = b.UpdateProvisionedUser(ctx, b.orgA, ada.ID, storage.MatchUserName, setProvisioned(change))
		})
		noError(t, err)
		equal(t, changed, 1)
	}
	read, err = b.ProvisionedUser(ctx, b.orgA, ada.ID)
	noError(t, err)
	equal(t, read, after)
	equal(t, []any{read.Active, read.UserName, read.ExternalID}, []any{false, "ada", ""})

	equal(t, b.changes(func() { err = b.DeleteProvisionedUser(ctx, b.orgA, ada.ID, start) }), 1)
	noError(t, err)
	_, err = b.ProvisionedUser(ctx, b.orgA, ada.ID)
	wantError(t, err, storage.ErrNotFound)
	wantError(t, b.DeleteProvisionedUser(ctx, b.orgA, ada.ID, start), storage.ErrNotFound)
	_, _, err = b.UpdateProvisionedUser(ctx, b.orgA, ada.ID, storage.MatchUserName, setProvisioned(func(*storage.ProvisionedUser) { t.Error("edited") }))
	wantError(t, err, storage.ErrNotFound)
	page, err := b.ProvisionedUsers(ctx, storage.ProvisionedFilter{OrganizationID: b.orgA, Limit: 10})
	noError(t, err)
	equal(t, page, storage.Page[storage.ProvisionedUser]{Items: []storage.ProvisionedUser{bob}, Total: 1})
	again := b.provisioned(t, "ADA") // the name of a deleted one is free
	_, _, err = b.UpdateProvisionedUser(ctx, b.orgA, bob.ID, storage.MatchUserName, setProvisioned(func(u *storage.ProvisionedUser) { u.UserName = "Bob" }))
	noError(t, err)
	noError(t, b.DeleteProvisionedUser(ctx, b.orgA, again.ID, start))
	_, _, err = b.UpdateProvisionedUser(ctx, b.orgA, bob.ID, storage.MatchUserName, setProvisioned(func(u *storage.ProvisionedUser) { u.UserName = "ada" }))
	noError(t, err)
	wantError(t, b.CreateProvisionedUser(ctx, b.newProvisioned(b.unknown, "bob"), someProvisioned), storage.ErrNotFound)
}

// testProvisionedStanding checks which provisioned user a user of the gateway is, by each match.
func testProvisionedStanding(t *testing.T, b *bundle) {
	ctx := t.Context()
	standing := func(user string, match storage.ProvisionedMatch) storage.ProvisionedStanding {
		t.Helper()
		s, err := b.ProvisionedStanding(ctx, b.orgA, user, match)
		noError(t, err)
		return s
	}
	update := func(id string, change func(*storage.ProvisionedUser)) {
		t.Helper()
		_, _, err := b.UpdateProvisionedUser(ctx, b.orgA, id, storage.MatchUserName, setProvisioned(change))
		noError(t, err)
	}
	back := errors.New("taken back, so that nobody stays matched")
	as := func(id string, match storage.ProvisionedMatch, want ...string) {
		t.Helper()
		wantError(t, b.Together(ctx, b.orgA, func(ctx context.Context) error {
			ids, err := b.LinkProvisioned(ctx, b.orgA, id, match)
			noError(t, err)
			equal(t, ids, want)
			return back
		}), back)
	}
	unknown, in, out := storage.ProvisionedStanding{}, storage.ProvisionedStanding{Known: true, Active: true}, storage.ProvisionedStanding{Known: true}

	bySubject, byEmail, byID := b.namedUser(t, "Ada", ""), b.namedUser(t, "00u1", "ADA@example.com"), b.namedUser(t, "ext ada", "")
	ada := b.provisioned(t, "ada")
	mail := b.provisioned(t, "ada@Example.com")
	for match, want := range map[storage.ProvisionedMatch][]storage.ProvisionedStanding{
		storage.MatchUserName: {in, in, unknown}, storage.MatchSubject: {in, unknown, unknown}, storage.MatchEmail: {unknown, in, unknown},
		storage.MatchExternalID: {unknown, unknown, in},
	} {
		for i, user := range []string{bySubject, byEmail, byID} {
			t.Run(fmt.Sprint(match, i), func(t *testing.T) { equal(t, standing(user, match), want[i]) })
		}
	}
	as(ada.ID, storage.MatchUserName, bySubject)
	as(ada.ID, storage.MatchEmail)
	as(ada.ID, storage.MatchExternalID, byID)
	as(mail.ID, storage.MatchUserName, byEmail)
	as(mail.ID, storage.MatchSubject)
	_, err := b.LinkProvisioned(ctx, b.orgA, b.unknown, storage.MatchUserName)
	wantError(t, err, storage.ErrNotFound)
	_, err = b.ProvisionedStanding(ctx, b.orgA, b.unknown, storage.MatchUserName)
	wantError(t, err, storage.ErrNotFound)

	// Groups are those of the one who matches.
	b.provisionedGroup(t, "staff", ada.ID, mail.ID)
	admins := b.provisionedGroup(t, "Admins", ada.ID)
	equal(t, standing(bySubject, storage.MatchUserName), storage.ProvisionedStanding{Known: true, Active: true, Groups: []string{"Admins", "staff"}})
	equal(t, standing(byEmail, storage.MatchUserName), storage.ProvisionedStanding{Known: true, Active: true, Groups: []string{"staff"}})
	noError(t, b.DeleteProvisionedGroup(ctx, b.orgA, admins.ID))

	// The subject comes before the address.
	both := b.namedUser(t, "both", "ada@example.com")
	as(mail.ID, storage.MatchUserName, byEmail, both)
	subject := b.provisioned(t, "both")
	update(subject.ID, func(u *storage.ProvisionedUser) { u.Active = false })
	equal(t, standing(both, storage.MatchUserName), out)
	equal(t, standing(both, storage.MatchEmail).Active, true)
	as(mail.ID, storage.MatchUserName, byEmail)

	// A renamed one stays who they are, until somebody else has the name.
	update(ada.ID, func(u *storage.ProvisionedUser) { u.UserName = "lovelace" })
	update(ada.ID, func(u *storage.ProvisionedUser) { u.UserName, u.Active = "countess", false })
	equal(t, standing(bySubject, storage.MatchUserName), storage.ProvisionedStanding{Known: true, Groups: []string{"staff"}})
	as(ada.ID, storage.MatchUserName, bySubject)
	next := b.provisioned(t, "ada")
	equal(t, standing(bySubject, storage.MatchUserName), in)
	as(ada.ID, storage.MatchUserName)
	as(next.ID, storage.MatchUserName, bySubject)

	// A deleted one stays out, and is in again under a new id.
	noError(t, b.DeleteProvisionedUser(ctx, b.orgA, next.ID, start))
	equal(t, standing(bySubject, storage.MatchUserName), storage.ProvisionedStanding{Known: true, Groups: []string{"staff"}}) // the renamed one is not deleted
	noError(t, b.DeleteProvisionedUser(ctx, b.orgA, ada.ID, start))
	equal(t, standing(bySubject, storage.MatchUserName), out)
	as(next.ID, storage.MatchUserName, bySubject)
	b.provisioned(t, "ADA")
	equal(t, standing(bySubject, storage.MatchUserName), in)

	// Of several with one external id nobody knows which it is.
	twin := b.newProvisioned(b.orgA, "twin")
	twin.ExternalID = "ext both"
	noError(t, b.CreateProvisionedUser(ctx, twin, someProvisioned))
	doubted := b.namedUser(t, "ext both", "")
	equal(t, standing(doubted, storage.MatchExternalID), storage.ProvisionedStanding{Known: true, Ambiguous: true})
	as(twin.ID, storage.MatchExternalID, doubted)
	as(subject.ID, storage.MatchExternalID, doubted)
	update(subject.ID, func(u *storage.ProvisionedUser) { u.Active = true })
	equal(t, standing(doubted, storage.MatchExternalID), storage.ProvisionedStanding{Known: true, Active: true, Ambiguous: true})
	noError(t, b.DeleteProvisionedUser(ctx, b.orgA, subject.ID, start))
	equal(t, standing(doubted, storage.MatchExternalID), in)
}

// testProvisionedLink checks that who was found by their address stays out when their next token has another one.
func testProvisionedLink(t *testing.T, b *bundle) {
	ctx := t.Context()
	user := b.namedUser(t, "00u1", "ada@example.com")
	ada := b.provisioned(t, "ada@example.com")
	_, _, err := b.UpdateProvisionedUser(ctx, b.orgA, ada.ID, storage.MatchUserName, setProvisioned(func(u *storage.ProvisionedUser) { u.Active = false }))
	noError(t, err)
	ids, err := b.LinkProvisioned(ctx, b.orgA, ada.ID, storage.MatchUserName)
	noError(t, err)
	equal(t, ids, []string{user})
	equal(t, b.namedUser(t, "00u1", "countess@example.com"), user)
	standing, err := b.ProvisionedStanding(ctx, b.orgA, user, storage.MatchUserName)
	noError(t, err)
	equal(t, standing, storage.ProvisionedStanding{Known: true})
	b.provisioned(t, "countess@example.com") // who has the address now comes before who had it
	standing, err = b.ProvisionedStanding(ctx, b.orgA, user, storage.MatchUserName)
	noError(t, err)
	equal(t, standing, storage.ProvisionedStanding{Known: true, Active: true})
}

// testProvisionedGroups checks groups and their members.
func testProvisionedGroups(t *testing.T, b *bundle) {
	ctx := t.Context()
	one, two, three := b.provisioned(t, "one"), b.provisioned(t, "two"), b.provisioned(t, "three")
	ref := func(u storage.ProvisionedUser) storage.ProvisionedRef {
		return storage.ProvisionedRef{ID: u.ID, Name: u.UserName}
	}
	g := b.provisionedGroup(t, "Staff", two.ID, one.ID, one.ID)
	empty := b.provisionedGroup(t, "Empty")
	read := func(want ...storage.ProvisionedUser) {
		t.Helper()
		got, err := b.ProvisionedGroup(ctx, b.orgA, g.ID, true)
		noError(t, err)
		g.Members = nil
		for _, u := range want {
			g.Members = append(g.Members, ref(u))
		}
		equal(t, got, g)
	}
	change := func(changes int, c storage.ProvisionedChange) {
		t.Helper()
		var err error
		var got storage.ProvisionedGroup
		c.Most = someProvisioned
		equal(t, b.changes(func() { got, err = b.UpdateProvisionedGroup(ctx, b.orgA, g.ID, start.Add(time.Second), c) }), changes)
		noError(t, err)
		g = got
	}
	read(one, two)
	for name, c := range map[string]struct {
		filter storage.ProvisionedFilter
		want   []storage.ProvisionedGroup
		total  int
	}{
		"everything":     {storage.ProvisionedFilter{Limit: 10, Members: 100}, []storage.ProvisionedGroup{g, empty}, 2},
		"a page":         {storage.ProvisionedFilter{Skip: 1, Limit: 10}, []storage.ProvisionedGroup{empty}, 2},
		"only a count":   {storage.ProvisionedFilter{}, nil, 2},
		"by name":        {storage.ProvisionedFilter{Name: "STAFF", Limit: 10, Members: 100}, []storage.ProvisionedGroup{g}, 1},
		"by external id": {storage.ProvisionedFilter{ExternalID: "ext Empty", Limit: 10}, []storage.ProvisionedGroup{empty}, 1},
		"by id":          {storage.ProvisionedFilter{ID: empty.ID, Limit: 10}, []storage.ProvisionedGroup{empty}, 1},
		"by member":      {storage.ProvisionedFilter{Member: one.ID, Limit: 10, Members: 100}, []storage.ProvisionedGroup{g}, 1},
		"by id, member":  {storage.ProvisionedFilter{ID: g.ID, Member: three.ID, Limit: 10}, nil, 0},
	} {
		c.filter.OrganizationID = b.orgA
		page, err := b.ProvisionedGroups(ctx, c.filter)
		noError(t, err)
		t.Run(name, func(t *testing.T) {
			equal(t, page, storage.Page[storage.ProvisionedGroup]{Items: c.want, Total: c.total})
		})
	}
	without, err := b.ProvisionedGroup(ctx, b.orgA, g.ID, false)
	noError(t, err)
	equal(t, len(without.Members), 0)
	user, err := b.ProvisionedUser(ctx, b.orgA, one.ID)
	noError(t, err)
	equal(t, user.Groups, []storage.ProvisionedRef{{ID: g.ID, Name: "Staff"}})

	change(1, storage.ProvisionedChange{Add: []string{three.ID, one.ID}, Remove: []string{two.ID}})
	read(one, three)
	change(0, storage.ProvisionedChange{Add: []string{three.ID, one.ID}, Remove: []string{two.ID, b.unknown}})
	change(1, storage.ProvisionedChange{Replace: true, Add: []string{two.ID, three.ID}})
	read(two, three)
	change(0, storage.ProvisionedChange{Replace: true, Add: []string{two.ID, three.ID}})
	change(1, storage.ProvisionedChange{Edit: func(g *storage.ProvisionedGroup) error { g.Name, g.ExternalID = "Crew", ""; return nil }})
	read(two, three)
	refused := errors.New("no")
	_, err = b.UpdateProvisionedGroup(ctx, b.orgA, g.ID, start, storage.ProvisionedChange{Replace: true, Edit: func(*storage.ProvisionedGroup) error { return refused }})
	equal(t, err == refused, true)
	_, err = b.UpdateProvisionedGroup(ctx, b.orgA, g.ID, start, storage.ProvisionedChange{Edit: func(g *storage.ProvisionedGroup) error { g.Name = "EMPTY"; return nil }})
	wantConflict(t, err, "name")
	theirs := b.newProvisioned(b.orgB, "theirs")
	noError(t, b.CreateProvisionedUser(ctx, theirs, someProvisioned))
	for _, member := range []string{b.unknown, theirs.ID, ""} {
		_, err = b.UpdateProvisionedGroup(ctx, b.orgA, g.ID, start, storage.ProvisionedChange{Add: []string{one.ID, member}, Most: someProvisioned})
		wantConflict(t, err, "members")
		wantConflict(t, b.CreateProvisionedGroup(ctx, storage.ProvisionedGroup{ID: newID(), OrganizationID: b.orgA, Name: "new"}, []string{member}, storage.ProvisionedMost{Groups: someProvisioned, Members: someProvisioned}), "members")
	}
	wantConflict(t, b.CreateProvisionedGroup(ctx, storage.ProvisionedGroup{ID: newID(), OrganizationID: b.orgA, Name: "crew"}, nil, storage.ProvisionedMost{Groups: someProvisioned, Members: someProvisioned}), "name")
	read(two, three)
	noError(t, b.DeleteProvisionedUser(ctx, b.orgA, two.ID, start))
	read(three)
	_, err = b.UpdateProvisionedGroup(ctx, b.orgA, g.ID, start, storage.ProvisionedChange{Add: []string{two.ID}})
	wantConflict(t, err, "members")
	change(1, storage.ProvisionedChange{Replace: true})
	read()

	equal(t, b.changes(func() { err = b.DeleteProvisionedGroup(ctx, b.orgA, empty.ID) }), 0)
	noError(t, err)
	wantError(t, b.DeleteProvisionedGroup(ctx, b.orgA, empty.ID), storage.ErrNotFound)
	_, err = b.ProvisionedGroup(ctx, b.orgA, empty.ID, true)
	wantError(t, err, storage.ErrNotFound)
	change(1, storage.ProvisionedChange{Add: []string{one.ID}})
	equal(t, b.changes(func() { err = b.DeleteProvisionedGroup(ctx, b.orgA, g.ID) }), 1)
	noError(t, err)
	user, err = b.ProvisionedUser(ctx, b.orgA, one.ID)
	noError(t, err)
	equal(t, len(user.Groups), 0)
}

// testProvisionedBounded checks that a group has no more members than it may have, and that a page of groups ends early.
func testProvisionedBounded(t *testing.T, b *bundle) {
	ctx := t.Context()
	one, two, three := b.provisioned(t, "one"), b.provisioned(t, "two"), b.provisioned(t, "three")
	wantConflict(t, b.CreateProvisionedUser(ctx, b.newProvisioned(b.orgA, "four"), 3), "count")
	noError(t, b.DeleteProvisionedUser(ctx, b.orgA, b.provisioned(t, "gone").ID, start))
	noError(t, b.CreateProvisionedUser(ctx, b.newProvisioned(b.orgA, "four"), 4))
	newGroup := func(name string) storage.ProvisionedGroup {
		return storage.ProvisionedGroup{ID: newID(), OrganizationID: b.orgA, Name: name}
	}
	wantConflict(t, b.CreateProvisionedGroup(ctx, newGroup("big"), []string{one.ID, two.ID}, storage.ProvisionedMost{Groups: 1, Members: 1}), "count")
	big := newGroup("big")
	noError(t, b.CreateProvisionedGroup(ctx, big, []string{one.ID, two.ID}, storage.ProvisionedMost{Groups: 1, Members: 2}))
	wantConflict(t, b.CreateProvisionedGroup(ctx, newGroup("small"), nil, storage.ProvisionedMost{Groups: 1, Members: 2}), "count")
	_, err := b.UpdateProvisionedGroup(ctx, b.orgA, big.ID, start, storage.ProvisionedChange{Add: []string{three.ID}, Most: 2})
	wantConflict(t, err, "count")
	_, err = b.UpdateProvisionedGroup(ctx, b.orgA, big.ID, start, storage.ProvisionedChange{Add: []string{three.ID}, Remove: []string{one.ID}, Most: 2})
	noError(t, err)
	b.provisionedGroup(t, "small", one.ID)
	for groups, want := range map[int]int{0: 4, 1: 1, 2: 2, 3: 4} { // three of the four are in a group each
		page, err := b.ProvisionedUsers(ctx, storage.ProvisionedFilter{OrganizationID: b.orgA, Limit: 10, Members: groups})
		noError(t, err)
		equal(t, []int{len(page.Items), page.Total}, []int{want, 4})
		equal(t, len(page.Items[0].Groups), min(groups, 1))
	}
	for members, want := range map[int]int{0: 2, 1: 1, 2: 1, 3: 2} {
		page, err := b.ProvisionedGroups(ctx, storage.ProvisionedFilter{OrganizationID: b.orgA, Limit: 10, Members: members})
		noError(t, err)
		equal(t, []int{len(page.Items), page.Total}, []int{want, 2})
		if members > 0 {
			equal(t, len(page.Items[0].Members), 2)
		}
	}
}

// testProvisionedIsolation calls every method as organization B with ids of organization A: the answer is the one for an unknown
// id. Each write is in the audit log with its transaction.
func testProvisionedIsolation(t *testing.T, b *bundle) {
	ctx := t.Context()
	user := b.provisioned(t, "ada")
	group := b.provisionedGroup(t, "staff", user.ID)
	b.namedUser(t, "ada", "")
	calls := func(ctx context.Context, organization string) map[string]func(user, group string) error {
		return map[string]func(user, group string) error{
			"ProvisionedUser": func(user, _ string) error { _, err := b.ProvisionedUser(ctx, organization, user); return err },
			"UpdateProvisionedUser": func(user, _ string) error {
				_, _, err := b.UpdateProvisionedUser(ctx, organization, user, storage.MatchUserName, setProvisioned(func(u *storage.ProvisionedUser) { u.Active = false }))
				return err
			},
			"LinkProvisioned": func(user, _ string) error {
				_, err := b.LinkProvisioned(ctx, organization, user, storage.MatchUserName)
				return err
			},
			"ProvisionedGroup": func(_, group string) error {
				_, err := b.ProvisionedGroup(ctx, organization, group, true)
				return err
			},
			"UpdateProvisionedGroup": func(_, group string) error {
				_, err := b.UpdateProvisionedGroup(ctx, organization, group, start, storage.ProvisionedChange{Replace: true})
				return err
			},
			"DeleteProvisionedGroup": func(_, group string) error { return b.DeleteProvisionedGroup(ctx, organization, group) },
			"DeleteProvisionedUser":  func(user, _ string) error { return b.DeleteProvisionedUser(ctx, organization, user, start) },
		}
	}
	for name, call := range calls(ctx, b.orgB) {
		t.Run(name, func(t *testing.T) {
			wantError(t, call(user.ID, group.ID), storage.ErrNotFound)
			wantError(t, call(b.unknown, b.unknown), storage.ErrNotFound)
		})
	}
	for _, f := range []storage.ProvisionedFilter{{Limit: 10}, {ID: user.ID, Limit: 10}, {Name: "ada", Limit: 10}} {
		f.OrganizationID = b.orgB
		page, err := b.ProvisionedUsers(ctx, f)
		noError(t, err)
		equal(t, page.Total, 0)
	}
	groups, err := b.ProvisionedGroups(ctx, storage.ProvisionedFilter{OrganizationID: b.orgB, Member: user.ID, Limit: 10})
	noError(t, err)
	equal(t, groups.Total, 0)
	theirs, err := b.ResolveUser(ctx, storage.UserClaim{OrganizationID: b.orgB, Issuer: issuer, Subject: "ada", DerivedID: newID(), Kind: storage.UserPerson}, start)
	noError(t, err)
	standing, err := b.ProvisionedStanding(ctx, b.orgB, theirs.ID, storage.MatchUserName)
	noError(t, err)
	equal(t, standing, storage.ProvisionedStanding{})
	wantError(t, b.CreateProvisionedGroup(ctx, storage.ProvisionedGroup{ID: newID(), OrganizationID: b.unknown, Name: "staff"}, nil, storage.ProvisionedMost{Groups: someProvisioned, Members: someProvisioned}), storage.ErrNotFound)

	var want []string
	for _, name := range []string{"UpdateProvisionedUser", "LinkProvisioned", "UpdateProvisionedGroup", "DeleteProvisionedGroup", "DeleteProvisionedUser"} {
		ctx, _ := b.audited(t, b.orgA, name)
		noError(t, calls(ctx, b.orgA)[name](user.ID, group.ID))
		want = append(want, name)
		equal(t, b.chain(t, b.orgA), want)
	}
	removable, err := b.EmptyOrganizations(ctx)
	noError(t, err)
	for _, o := range removable {
		equal(t, o.ID == b.orgA, false)
	}
}

// testProvisionedHostileText stores every text in every member that takes text, and finds only it again.
func testProvisionedHostileText(t *testing.T, b *bundle) {
	ctx := t.Context()
	bystander := b.provisioned(t, "bystander")
	for i, text := range hostileTexts {
		t.Run(fmt.Sprintf("%d %.30q", i, text), func(t *testing.T) {
			u := b.newProvisioned(b.orgA, fmt.Sprint(text, " ", i))
			u.ExternalID, u.Email, u.Attributes = text+" external", fmt.Sprint(text, " mail ", i), json.RawMessage(text)
			err := b.CreateProvisionedUser(ctx, u, someProvisioned)
			if mayRefuse(text) && errors.Is(err, storage.ErrText) {
				return
			}
			noError(t, err)
			for _, f := range []storage.ProvisionedFilter{{Name: u.UserName}, {ExternalID: u.ExternalID}, {Email: u.Email}} {
				f.OrganizationID, f.Limit = b.orgA, 10
				page, err := b.ProvisionedUsers(ctx, f)
				noError(t, err)
				equal(t, page.Items, []storage.ProvisionedUser{u})
			}
			g := storage.ProvisionedGroup{ID: newID(), OrganizationID: b.orgA, Name: u.UserName, ExternalID: text, CreatedAt: start, UpdatedAt: start}
			noError(t, b.CreateProvisionedGroup(ctx, g, []string{u.ID}, storage.ProvisionedMost{Groups: someProvisioned, Members: someProvisioned}))
			page, err := b.ProvisionedGroups(ctx, storage.ProvisionedFilter{OrganizationID: b.orgA, Name: g.Name, ExternalID: text, Limit: 10})
			noError(t, err)
			equal(t, page.Items, []storage.ProvisionedGroup{g})
			user := b.namedUser(t, u.UserName, "")
			s, err := b.ProvisionedStanding(ctx, b.orgA, user, storage.MatchUserName)
			noError(t, err)
			equal(t, s, storage.ProvisionedStanding{Known: true, Active: true, Groups: []string{g.Name}})
		})
	}
	left, err := b.ProvisionedUser(ctx, b.orgA, bystander.ID)
	noError(t, err)
	equal(t, left, bystander)
}
