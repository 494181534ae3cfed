package storagetest

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/durward-gateway/durward/storage"
)

func testOrganizations(t *testing.T, b *bundle) {
	ctx := t.Context()
	resolve := func(c storage.OrganizationClaim) (storage.Organization, error) {
		t.Helper()
		return b.ResolveOrganization(ctx, c, start)
	}
	must := func(c storage.OrganizationClaim) storage.Organization {
		t.Helper()
		o, err := resolve(c)
		noError(t, err)
		return o
	}
	id, derived := newID(), newID()

	first := must(storage.OrganizationClaim{Issuer: issuer, ID: id})
	equal(t, first, storage.Organization{ID: id, Issuer: issuer, CreatedAt: start})
	all, err := b.Organizations(ctx)
	noError(t, err)
	if !slices.Contains(all, first) || !slices.IsSortedFunc(all, func(a, b storage.Organization) int { return strings.Compare(a.ID, b.ID) }) {
		t.Errorf("%+v", all)
	}
	later, err := b.ResolveOrganization(ctx, storage.OrganizationClaim{Issuer: issuer, ID: id}, start.Add(time.Hour))
	noError(t, err)
	equal(t, later, first)

	_, err = resolve(storage.OrganizationClaim{Issuer: otherIssuer, ID: id})
	wantError(t, err, storage.ErrForeignOrganization)
	shared := must(storage.OrganizationClaim{Issuer: otherIssuer, ID: id, Slug: "theirs", DerivedID: newID(), Shared: true})
	equal(t, shared, first) // a slug from an issuer that only shares is not remembered
	equal(t, must(storage.OrganizationClaim{Issuer: otherIssuer, Slug: "theirs", DerivedID: derived}).ID, derived)

	// With both, the id wins, and the slug is remembered for it.
	o := must(storage.OrganizationClaim{Issuer: issuer, ID: id, Slug: "acme", DerivedID: newID()})
	equal(t, o, storage.Organization{ID: id, Issuer: issuer, Slug: "acme", CreatedAt: start})
	equal(t, must(storage.OrganizationClaim{Issuer: issuer, Slug: "acme", DerivedID: newID()}), o)

	// The same slug under another issuer is another organization.
	derived = newID()
	foreign := must(storage.OrganizationClaim{Issuer: otherIssuer, Slug: "acme", DerivedID: derived})
	equal(t, foreign, storage.Organization{ID: derived, Issuer: otherIssuer, Slug: "acme", CreatedAt: start})

	// A slug that another organization of the issuer has stays there; the id still wins.
	second := newID()
	equal(t, must(storage.OrganizationClaim{Issuer: issuer, ID: second, Slug: "acme", DerivedID: newID()}).ID, second)
	equal(t, must(storage.OrganizationClaim{Issuer: issuer, Slug: "acme", DerivedID: newID()}).ID, id)

	// For a renamed organization the new slug is remembered, and the old one is free.
	equal(t, must(storage.OrganizationClaim{Issuer: issuer, ID: id, Slug: "acme-2", DerivedID: newID()}).Slug, "acme-2")
	equal(t, must(storage.OrganizationClaim{Issuer: issuer, ID: second, Slug: "acme", DerivedID: newID()}).Slug, "acme")

	// Slug only, then the derived id with another slug, then the old slug again: still the same organization.
	derived = newID()
	equal(t, must(storage.OrganizationClaim{Issuer: issuer, Slug: "first", DerivedID: derived}).ID, derived)
	equal(t, must(storage.OrganizationClaim{Issuer: issuer, ID: derived, Slug: "moved", DerivedID: newID()}).Slug, "moved")
	equal(t, must(storage.OrganizationClaim{Issuer: issuer, Slug: "first", DerivedID: derived}).Slug, "moved")

	// A derived id that another issuer has named first is not given away.
	derived = newID()
	must(storage.OrganizationClaim{Issuer: otherIssuer, ID: derived})
	_, err = resolve(storage.OrganizationClaim{Issuer: issuer, Slug: "squatted", DerivedID: derived})
	wantError(t, err, storage.ErrForeignOrganization)

	for _, c := range []storage.OrganizationClaim{{}, {Issuer: issuer}, {ID: id}, {Issuer: issuer, Slug: "no-derived-id"}} {
		if _, err := resolve(c); err == nil {
			t.Errorf("%+v named an organization", c)
		}
	}
}

func testOrganizationRace(t *testing.T, b *bundle) {
	id := newID()
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			o, err := b.ResolveOrganization(t.Context(), storage.OrganizationClaim{Issuer: issuer, ID: id, Slug: "race", DerivedID: newID()}, start)
			if err != nil || o.ID != id || o.Slug != "race" {
				t.Errorf("got %+v, %v", o, err)
			}
		})
	}
	all.Wait()
}

// testUserFacts checks that the facts of the newest token are kept, whatever the order in which tokens come, and that
// a list that it does not contain stays as the last one that did left it. A change is reported to holders of the
// user's keys.
func testUserFacts(t *testing.T, b *bundle) {
	ctx := t.Context()
	at := func(seconds int) time.Time { return start.Add(time.Duration(seconds) * time.Second) }
	groups := func(seconds int, names ...string) storage.UserFacts {
		return storage.UserFacts{Groups: storage.Fact{Names: names, At: at(seconds)}}
	}
	claim := storage.UserClaim{OrganizationID: b.orgA, Issuer: issuer, Subject: "facts", DerivedID: newID(), Kind: storage.UserPerson}
	told := 0
	defer b.OnChange(func(string) { told++ })()
	for i, step := range []struct {
		issued time.Time
		groups []string
		want   storage.UserFacts
		at     time.Time
		told   int
	}{
		{time.Time{}, []string{"sales"}, storage.UserFacts{}, time.Time{}, 0}, // the age of these facts is unknown
		{at(0), []string{"sales", "ops", "sales"}, groups(0, "ops", "sales"), at(0), 0},
		{at(-3600), []string{}, groups(0, "ops", "sales"), at(0), 0},
		{time.Time{}, []string{}, groups(0, "ops", "sales"), at(0), 0},
		{at(0), []string{}, groups(0, "ops", "sales"), at(0), 0},
		{at(2), []string{"ops", "sales"}, groups(0, "ops", "sales"), at(0), 0}, // nothing new: about once a minute
		{at(60), []string{"sales", "ops"}, groups(60, "ops", "sales"), at(60), 0},
		{at(61), []string{}, groups(61), at(61), 0}, // there is no key
		{at(62), []string{"sales"}, groups(62, "sales"), at(62), 1},
		{at(122), []string{"sales"}, groups(122, "sales"), at(122), 1},
		{at(200), nil, groups(122, "sales"), at(200), 1}, // unchanged, but uncertain
		{at(201), []string{}, groups(201), at(201), 2},
	} {
		claim.IssuedAt, claim.Groups = step.issued, step.groups
		u, err := b.ResolveUser(ctx, claim, start)
		noError(t, err)
		read, err := b.User(ctx, b.orgA, u.ID)
		noError(t, err)
		equal(t, read.Facts, step.want)
		equal(t, read.FactsAt, step.at)
		equal(t, told, step.told)
		if i == 7 {
			b.apiKey(t, b.orgA, u.ID)
			told = 0
		}
	}
}

func testUsers(t *testing.T, b *bundle) {
	ctx := t.Context()
	id := newID()
	claim := storage.UserClaim{OrganizationID: b.orgA, Issuer: issuer, Subject: id, ID: id, DerivedID: newID(),
		Kind: storage.UserPerson, Name: "Ada", Email: "ada@example.com"}
	resolve := func(c storage.UserClaim, now time.Time) storage.User {
		t.Helper()
		u, err := b.ResolveUser(ctx, c, now)
		noError(t, err)
		read, err := b.User(ctx, c.OrganizationID, u.ID)
		noError(t, err)
		equal(t, read, u)
		return u
	}
	want := storage.User{ID: id, OrganizationID: b.orgA, Issuer: issuer, Subject: id, Kind: storage.UserPerson, Name: "Ada",
		Email: "ada@example.com", CreatedAt: start, SeenAt: start}
	equal(t, resolve(claim, start), want)

	// Seen again: written at most about once a minute.
	equal(t, resolve(claim, start.Add(5*time.Second)), want)
	want.SeenAt = start.Add(5 * time.Minute)
	equal(t, resolve(claim, want.SeenAt), want)

	// Name and address follow the token; a token without them says nothing about them.
	claim.Name, claim.Email = "Ada L.", "ada@example.org"
	want.Name, want.Email = claim.Name, claim.Email
	equal(t, resolve(claim, want.SeenAt), want)
	silent := claim
	silent.Name, silent.Email = "", ""
	equal(t, resolve(silent, want.SeenAt), want)

	// The same person in another organization has the same id there too.
	other := claim
	other.OrganizationID = b.orgB
	equal(t, resolve(other, start).ID, id)

	// The id already belongs to another issuer's user, even of another organization.
	foreign := claim
	foreign.Issuer, foreign.DerivedID = otherIssuer, newID()
	equal(t, resolve(foreign, start).ID, foreign.DerivedID)
	equal(t, resolve(foreign, start.Add(time.Hour)).ID, foreign.DerivedID)

	// Subjects are compared exactly: another spelling of the same uuid is another user.
	spelled := claim
	spelled.Subject, spelled.DerivedID = "{"+id+"}", newID()
	equal(t, resolve(spelled, start).ID, spelled.DerivedID)

	// A subject that is no uuid takes the derived id; a subject that is made to collide with that gets none.
	plain := claim
	plain.Subject, plain.ID, plain.DerivedID = "auth0|ada", "", newID()
	equal(t, resolve(plain, start).ID, plain.DerivedID)
	hostile := claim
	hostile.Subject, hostile.ID, hostile.DerivedID = plain.DerivedID, plain.DerivedID, plain.DerivedID
	_, err := b.ResolveUser(ctx, hostile, start)
	wantError(t, err, storage.ErrConflict)

	machine := claim
	machine.Subject, machine.ID, machine.DerivedID, machine.Kind = "ci", "", newID(), storage.UserMachine
	equal(t, resolve(machine, start).Kind, storage.UserMachine)

	unknown := claim
	unknown.OrganizationID, unknown.Subject, unknown.ID, unknown.DerivedID = b.unknown, "nobody", "", newID()
	_, err = b.ResolveUser(ctx, unknown, start)
	wantError(t, err, storage.ErrNotFound)
}

func testUserRace(t *testing.T, b *bundle) {
	id := newID()
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			u, err := b.ResolveUser(t.Context(), storage.UserClaim{OrganizationID: b.orgA, Issuer: issuer, Subject: id, ID: id,
				DerivedID: newID(), Kind: storage.UserPerson}, start)
			if err != nil || u.ID != id {
				t.Errorf("got %+v, %v", u, err)
			}
		})
	}
	all.Wait()
}

// testUserLists checks that pages by key reach every user once, also those that come while somebody reads.
func testUserLists(t *testing.T, b *bundle) {
	ctx := t.Context()
	named := func(subject, name, email string) string {
		u, err := b.ResolveUser(ctx, storage.UserClaim{
			OrganizationID: b.orgA, Issuer: issuer, Subject: subject, DerivedID: newID(), Kind: storage.UserPerson, Name: name, Email: email,
		}, start)
		noError(t, err)
		return u.ID
	}
	ada := named("auth0|ADA", "Ada Lovelace", "ada@acme.test")
	grace := named("auth0|grace", "Grace 100% Ünal", "Grace_H@acme.test")
	var pages [][]string
	after := ""
	for len(pages) == 0 || after != "" {
		page, err := b.Users(ctx, storage.UserFilter{OrganizationID: b.orgA, After: after, Limit: 1})
		noError(t, err)
		var ids []string
		after = ""
		for _, u := range page {
			ids, after = append(ids, u.ID), u.ID
		}
		if pages = append(pages, ids); len(pages) == 1 {
			named("late", "Late", "") // before or behind what was read
		}
	}
	read := slices.Concat(pages...)
	if !slices.IsSorted(read) || len(slices.Compact(slices.Clone(read))) != len(read) || len(read) < 4 {
		t.Errorf("pages %v", pages)
	}
	for _, id := range []string{b.userA1, b.userA2, ada, grace} {
		if !slices.Contains(read, id) {
			t.Errorf("user %s is on no page of %v", id, pages)
		}
	}
	whole, err := b.Users(ctx, storage.UserFilter{OrganizationID: b.orgA, Limit: 100})
	noError(t, err)
	for _, u := range whole {
		one, err := b.User(ctx, b.orgA, u.ID)
		noError(t, err)
		equal(t, u, one)
	}
	equal(t, len(whole), 5)
	for search, want := range map[string][]string{
		"lovelace": {ada}, "ACME.TEST": {ada, grace}, "auth0|ad": {ada}, "100%": {grace}, "_h@": {grace}, "%": {grace}, "Ünal": {grace}, "nobody": nil, "\x00": nil,
	} {
		found, err := b.Users(ctx, storage.UserFilter{OrganizationID: b.orgA, Search: search, Limit: 100})
		noError(t, err)
		var ids []string
		for _, u := range found {
			ids = append(ids, u.ID)
		}
		slices.Sort(want)
		equal(t, strings.Join(ids, " "), strings.Join(want, " "))
	}
	others, err := b.Users(ctx, storage.UserFilter{OrganizationID: b.orgB, Limit: 100})
	noError(t, err)
	if len(others) != 1 || others[0].ID != b.userB1 {
		t.Errorf("O01 organization B has %v", others)
	}
}

// testRemovedOrganizations checks W25: organizations that tokens named by mistake can be removed, but none with
// anything that somebody made.
func testRemovedOrganizations(t *testing.T, b *bundle) {
	ctx := t.Context()
	claim := storage.OrganizationClaim{Issuer: issuer, Slug: "gamil", DerivedID: newID()}
	mistaken, err := b.ResolveOrganization(ctx, claim, start)
	noError(t, err)
	user := b.user(t, mistaken.ID)
	client, err := b.RegisterAgent(ctx, newAgent(mistaken.ID, "Client"), 10)
	noError(t, err)
	credential := agentCredential(client) // which somebody made, unlike the agent
	noError(t, b.CreateAgentCredential(ctx, credential))
	empty, err := b.EmptyOrganizations(ctx)
	noError(t, err)
	equal(t, len(empty), 0)
	noError(t, b.DeleteAgentCredential(ctx, mistaken.ID, client.ID, credential.ID))

	empty, err = b.EmptyOrganizations(ctx)
	noError(t, err)
	equal(t, empty, []storage.Organization{mistaken})
	_, err = b.DeleteOrganization(ctx, b.unknown)
	wantError(t, err, storage.ErrNotFound)
	_, err = b.DeleteOrganization(ctx, b.orgA)
	wantConflict(t, err, "organization")

	changed := make(chan string, 10)
	defer b.OnChange(func(organization string) { changed <- organization })()
	recorded, _ := b.audited(t, b.orgA, "organization.removed") // of the organization of the caller
	removed, err := b.DeleteOrganization(recorded, mistaken.ID)
	noError(t, err)
	equal(t, removed, mistaken)
	if events := b.chain(t, b.orgA); !slices.Contains(events, "organization.removed") {
		t.Errorf("recorded: %v", events)
	}
	for <-changed != mistaken.ID {
	}
	_, err = b.User(ctx, mistaken.ID, user)
	wantError(t, err, storage.ErrNotFound)
	all, err := b.Organizations(ctx)
	noError(t, err)
	equal(t, len(all), 2)
	_, err = b.User(ctx, b.orgA, b.userA1)
	noError(t, err)
	_, err = b.DeleteOrganization(ctx, mistaken.ID)
	wantError(t, err, storage.ErrNotFound)
	again, err := b.ResolveOrganization(ctx, claim, start)
	noError(t, err)
	equal(t, again, mistaken)
}
