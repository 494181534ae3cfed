package storagetest

import (
	"errors"
	"testing"
	"time"

	"github.com/durward-gateway/durward/storage"
)

// newAssertion returns a login of userA1 that came of an assertion, not stored.
func (b *bundle) newAssertion() storage.Login {
	l := b.newLogin()
	l.RedirectURI, l.Challenge, l.SealedRefresh = "", "", nil
	l.ExpiresAt = start.Add(15 * time.Minute)
	l.EndsAt, l.RedeemedAt, l.RotatedAt = l.ExpiresAt, l.CreatedAt, l.CreatedAt
	return l
}

// testAssertLogin logs a user in by assertions of an identity provider.
func testAssertLogin(t *testing.T, b *bundle) {
	ctx := t.Context()
	want := b.newAssertion()
	var got storage.Login
	var err error
	equal(t, b.changes(func() { got, err = b.AssertLogin(ctx, want, start) }), 0)
	noError(t, err)
	equal(t, got, want)
	got, err = b.Login(ctx, b.orgA, want.ID, start) // at once, without a code
	noError(t, err)
	equal(t, got, want)
	equal(t, got.Asserted(), true)
	_, err = b.RedeemLogin(ctx, b.orgA, b.newLogin().ID, start, start)
	wantError(t, err, storage.ErrNotFound)

	// The next assertion goes on with it, for as long again.
	later := func(change func(*storage.Login)) storage.Login {
		l := b.newAssertion()
		l.CreatedAt = start.Add(10 * time.Minute)
		l.UsedAt, l.FactsAt, l.ExpiresAt, l.EndsAt = l.CreatedAt, l.CreatedAt, l.CreatedAt.Add(15*time.Minute), l.CreatedAt.Add(15*time.Minute)
		l.RedeemedAt, l.RotatedAt = l.CreatedAt, l.CreatedAt
		if change != nil {
			change(&l)
		}
		return l
	}
	next := later(func(l *storage.Login) { l.ClientName, l.Subject = "Its new name", "alice2" })
	want.ClientName, want.Subject, want.UsedAt, want.FactsAt, want.ExpiresAt, want.EndsAt = next.ClientName, next.Subject, next.UsedAt, next.FactsAt, next.ExpiresAt, next.EndsAt
	equal(t, b.changes(func() { got, err = b.AssertLogin(ctx, next, start) }), 0)
	noError(t, err)
	equal(t, got, want)
	got, err = b.Login(ctx, b.orgA, want.ID, next.ExpiresAt.Add(-time.Microsecond))
	noError(t, err)
	equal(t, got, want)
	// Other facts are a change: tokens were verified with the former ones.
	want.Facts = storage.LoginFacts{Groups: []string{"support"}, RolesUnknown: true, Claims: `{}`}
	equal(t, b.changes(func() { got, err = b.AssertLogin(ctx, later(func(l *storage.Login) { l.Facts = want.Facts }), start) }), 1)
	noError(t, err)
	equal(t, got.Facts, want.Facts)
	got, err = b.Login(ctx, b.orgA, want.ID, start)
	noError(t, err)
	equal(t, got.Facts, want.Facts)

	for name, change := range map[string]func(*storage.Login){
		"user":     func(l *storage.Login) { l.UserID = b.userA2 },
		"client":   func(l *storage.Login) { l.ClientID = "other" },
		"resource": func(l *storage.Login) { l.Resource += "2" },
		"issuer":   func(l *storage.Login) { l.Issuer += "2" },
		"audience": func(l *storage.Login) { l.Audience += "2" },
	} {
		l := later(change)
		got, err := b.AssertLogin(ctx, l, start)
		noError(t, err)
		if got.ID != l.ID {
			t.Errorf("another %s goes on with the login", name)
		}
	}
	// One that has ended does not come back: its tokens would be good again.
	ended, err := b.EndLogin(ctx, b.orgA, want.ID, false)
	noError(t, err)
	got, err = b.AssertLogin(ctx, later(nil), start)
	noError(t, err)
	if got.ID == ended.ID {
		t.Error("a login that was ended goes on")
	}
	expired := later(func(l *storage.Login) { l.UsedAt = got.ExpiresAt; l.CreatedAt = l.UsedAt })
	after, err := b.AssertLogin(ctx, expired, start)
	noError(t, err)
	if after.ID == got.ID {
		t.Error("a login that has expired goes on")
	}
	// A login that the user began is another one.
	b.login(t, nil)
	got, err = b.AssertLogin(ctx, later(nil), start)
	noError(t, err)
	equal(t, got.Asserted(), true)
}

// testAssertLoginRefused asserts people who may not come in.
func testAssertLoginRefused(t *testing.T, b *bundle) {
	ctx := t.Context()
	for _, user := range []string{b.unknown, b.userB1} {
		l := b.newAssertion()
		l.UserID = user
		_, err := b.AssertLogin(ctx, l, start)
		wantError(t, err, storage.ErrNotFound)
	}
	l := b.newAssertion()
	l.Facts.Groups = []string{"\xff"}
	_, err := b.AssertLogin(ctx, l, start)
	wantError(t, err, storage.ErrText)

	// A revocation ends the login, and refuses assertions that were made before it.
	made, err := b.AssertLogin(ctx, b.newAssertion(), start)
	noError(t, err)
	revoked := start.Add(time.Minute)
	_, err = b.RevokeUser(ctx, b.orgA, b.userA1, revoked)
	noError(t, err)
	_, err = b.Login(ctx, b.orgA, made.ID, start)
	wantError(t, err, storage.ErrNotFound)
	for after, want := range map[time.Duration]error{-time.Second: storage.ErrNotFound, 0: storage.ErrNotFound, time.Microsecond: nil} {
		if _, err := b.AssertLogin(ctx, b.newAssertion(), revoked.Add(after)); !errors.Is(err, want) {
			t.Errorf("an assertion %s after the revocation: %v, want %v", after, err, want)
		}
	}
}

// testAssertedLoginsBounded asks for more logins than a user may have by assertions. They push out each other, and nothing
// that the user began.
func testAssertedLoginsBounded(t *testing.T, b *bundle) {
	ctx := t.Context()
	begun := b.login(t, nil)
	waiting := b.newLogin()
	waiting.ClientID, waiting.ClientName, waiting.Resource, waiting.RedirectURI, waiting.Challenge = "", "", "", "", ""
	noError(t, b.CreateLogin(ctx, waiting))
	var ids []string
	for i := range storage.MaxAssertedLogins + 1 {
		l := b.newAssertion()
		l.CreatedAt = start.Add(time.Duration(i) * time.Second / 10)
		l.ClientID = l.ID // another client each time
		var err error
		ended := b.changes(func() { _, err = b.AssertLogin(ctx, l, start) })
		noError(t, err)
		equal(t, ended, max(0, i+1-storage.MaxAssertedLogins))
		ids = append(ids, l.ID)
	}
	agreed := b.newLogin()
	agreed.ID = waiting.ID
	noError(t, b.AgreeLogin(ctx, agreed)) // and it pushes none of the others out
	for i, id := range append([]string{begun.ID}, ids...) {
		if _, err := b.Login(ctx, b.orgA, id, start); (err == nil) != (i != 1) {
			t.Errorf("login %d: %v", i, err)
		}
	}
}
