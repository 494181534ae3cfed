package storagetest

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/durward-gateway/durward/storage"
)

// These are the limits with which the cases exchange refresh tokens.
const (
	idle  = 7 * 24 * time.Hour
	grace = 30 * time.Second
)

// newLogin returns a login of userA1 with every member set whose code is good for a minute, not stored.
func (b *bundle) newLogin() storage.Login {
	return storage.Login{
		ID: newID(), OrganizationID: b.orgA, UserID: b.userA1, ClientID: "https://client.example.com/id.json", ClientName: "An editor",
		Resource: "https://gateway.example.com/mcp/notes", Issuer: issuer, Audience: "durward", Subject: "alice", CreatedAt: start, UsedAt: start,
		ExpiresAt: start.Add(time.Minute), EndsAt: start.Add(30 * 24 * time.Hour), RedirectURI: "http://127.0.0.1:1/back", Challenge: "challenge",
		Facts: storage.LoginFacts{Roles: []string{"admin"}, Groups: []string{"sales", "Zürich"}, Teams: []string{"a"}, Projects: []string{"p"}, Claims: `{"department":"Zürich"}`}, FactsAt: start, SealedRefresh: []byte{0, 1, 0xff},
		SealedIDToken: []byte{0xfe, 0, 2}, IDTokenExpiresAt: start.Add(time.Hour),
	}
}

// agree stores a login to which its user has agreed.
func (b *bundle) agree(ctx context.Context, l storage.Login) error {
	waiting := l
	waiting.ClientID, waiting.ClientName, waiting.Resource, waiting.RedirectURI, waiting.Challenge = "", "", "", "", ""
	if err := b.CreateLogin(ctx, waiting); err != nil {
		return err
	}
	return b.AgreeLogin(ctx, l)
}

// login stores a login whose code was redeemed at start.
func (b *bundle) login(t *testing.T, change func(*storage.Login)) storage.Login {
	t.Helper()
	l := b.newLogin()
	if change != nil {
		change(&l)
	}
	noError(t, b.agree(t.Context(), l))
	l, err := b.RedeemLogin(t.Context(), l.OrganizationID, l.ID, l.CreatedAt, l.CreatedAt.Add(idle))
	noError(t, err)
	return l
}

// changes counts the changes of orgA that a call reports.
func (b *bundle) changes(call func()) (n int) {
	var mu sync.Mutex
	cancel := b.OnChange(func(organization string) {
		mu.Lock()
		defer mu.Unlock()
		if organization == b.orgA {
			n++
		}
	})
	defer cancel()
	call()
	mu.Lock()
	defer mu.Unlock()
	return n
}

func testLogins(t *testing.T, b *bundle) {
	ctx := t.Context()
	want := b.newLogin()
	noError(t, b.agree(ctx, want))
	// Before its code is redeemed a login is none.
	_, err := b.Login(ctx, b.orgA, want.ID, start)
	wantError(t, err, storage.ErrNotFound)
	_, _, err = b.RefreshLogin(ctx, b.orgA, want.ID, 0, start, idle, grace)
	wantError(t, err, storage.ErrNotFound)
	page, err := b.Logins(ctx, storage.LoginFilter{OrganizationID: b.orgA, Now: start})
	noError(t, err)
	equal(t, page, storage.Page[storage.Login]{})

	at := want.ExpiresAt.Add(-time.Microsecond)
	_, err = b.RedeemLogin(ctx, b.orgB, want.ID, at, at.Add(idle))
	wantError(t, err, storage.ErrNotFound)
	_, err = b.RedeemLogin(ctx, b.orgA, want.ID, want.ExpiresAt, at.Add(idle))
	wantError(t, err, storage.ErrNotFound)
	var got storage.Login
	equal(t, b.changes(func() { got, err = b.RedeemLogin(ctx, b.orgA, want.ID, at, at.Add(idle)) }), 0)
	noError(t, err)
	want.RedeemedAt, want.UsedAt, want.RotatedAt, want.ExpiresAt = at, at, at, at.Add(idle)
	equal(t, got, want)
	got, err = b.Login(ctx, b.orgA, want.ID, want.ExpiresAt.Add(-time.Microsecond))
	noError(t, err)
	equal(t, got, want)
	_, err = b.Login(ctx, b.orgA, want.ID, want.ExpiresAt)
	wantError(t, err, storage.ErrNotFound)
	_, err = b.Login(ctx, b.orgB, want.ID, start)
	wantError(t, err, storage.ErrNotFound)

	// A code that comes a second time ends the login.
	equal(t, b.changes(func() { _, err = b.RedeemLogin(ctx, b.orgA, want.ID, at, at.Add(idle)) }), 1)
	wantError(t, err, storage.ErrReplayed)
	_, err = b.Login(ctx, b.orgA, want.ID, at)
	wantError(t, err, storage.ErrNotFound)

	// No login outlives its end, whatever its code is exchanged for.
	short := b.newLogin()
	short.EndsAt = start.Add(time.Hour)
	noError(t, b.agree(ctx, short))
	got, err = b.RedeemLogin(ctx, b.orgA, short.ID, start, start.Add(idle))
	noError(t, err)
	equal(t, got.ExpiresAt, short.EndsAt)
	got, err = b.Login(ctx, b.orgA, short.ID, start)
	noError(t, err)
	equal(t, got.ExpiresAt, short.EndsAt)

	// Nobody logs in who is unknown, or in another organization.
	for _, user := range []string{b.unknown, b.userB1} {
		l := b.newLogin()
		l.UserID = user
		wantError(t, b.agree(ctx, l), storage.ErrNotFound)
	}
	l := b.newLogin()
	l.Facts.Groups = []string{"\xff"}
	wantError(t, b.agree(ctx, l), storage.ErrText)
}

func testRefreshLogin(t *testing.T, b *bundle) {
	ctx := t.Context()
	l := b.login(t, nil)
	refresh := func(generation int, now time.Time) (storage.Login, error) {
		got, _, err := b.RefreshLogin(ctx, b.orgA, l.ID, generation, now, idle, grace)
		return got, err
	}
	now := start.Add(15 * time.Minute)
	got, err := refresh(0, now)
	noError(t, err)
	l.Generation, l.RotatedAt, l.UsedAt, l.ExpiresAt = 1, now, now, now.Add(idle)
	equal(t, got, l)
	// The same request once more, a little later, gets the same generation, and moves nothing.
	got, err = refresh(0, now.Add(grace))
	noError(t, err)
	equal(t, got, l)
	read, err := b.Login(ctx, b.orgA, l.ID, now)
	noError(t, err)
	equal(t, read, l)
	// A token that did not reach its client: the one before stays good until it is used again, and then for grace.
	noError(t, b.LostRefresh(ctx, b.orgA, l.ID, 0))
	noError(t, b.LostRefresh(ctx, b.orgB, l.ID, 1))
	equal(t, b.changes(func() { noError(t, b.LostRefresh(ctx, b.orgA, l.ID, 1)) }), 0)
	now = now.Add(time.Hour)
	got, err = refresh(0, now)
	noError(t, err)
	l.RotatedAt, l.UsedAt, l.ExpiresAt = now, now, now.Add(idle)
	equal(t, got, l)
	got, err = refresh(0, now.Add(grace))
	noError(t, err)
	equal(t, got, l)
	// No login outlives its end.
	late := l.EndsAt.Add(-time.Hour)
	inBetween := now
	for inBetween.Before(late) {
		inBetween = inBetween.Add(idle - time.Minute)
		if inBetween.After(late) {
			inBetween = late
		}
		got, err = refresh(got.Generation, inBetween)
		noError(t, err)
	}
	equal(t, got.ExpiresAt, l.EndsAt)
	_, err = refresh(got.Generation, l.EndsAt)
	wantError(t, err, storage.ErrNotFound)

	// Tokens that were replaced before the grace, and tokens that nobody has been given, end the login.
	for name, c := range map[string]struct {
		generation int
		later      time.Duration
	}{
		"after the grace":           {1, grace + time.Microsecond},
		"of another's loss":         {1, grace + time.Minute},
		"two generations ago":       {0, 0},
		"of a generation to come":   {3, 0},
		"of a negative generation":  {-1, 0},
		"of the highest generation": {1 << 62, 0},
	} {
		t.Run(name, func(t *testing.T) {
			l = b.login(t, nil)
			for generation := range 2 {
				_, err := refresh(generation, now)
				noError(t, err)
			}
			noError(t, b.LostRefresh(ctx, b.orgA, l.ID, 1)) // that was long before
			equal(t, b.changes(func() { got, err = refresh(c.generation, now.Add(c.later)) }), 1)
			wantError(t, err, storage.ErrReplayed)
			equal(t, got.ID, l.ID)
			_, err = b.Login(ctx, b.orgA, l.ID, now)
			wantError(t, err, storage.ErrNotFound)
			_, err = refresh(2, now)
			wantError(t, err, storage.ErrNotFound)
		})
	}
	l = b.login(t, nil)
	_, err = refresh(-1, start) // the one before the first
	wantError(t, err, storage.ErrReplayed)
	l = b.login(t, nil)
	_, _, err = b.RefreshLogin(ctx, b.orgB, l.ID, 0, now, idle, grace)
	wantError(t, err, storage.ErrNotFound)
	_, err = refresh(0, now)
	noError(t, err)
}

// testRefreshLoginRace sends one refresh token many times at one moment: all get the next generation, which is one.
func testRefreshLoginRace(t *testing.T, b *bundle) {
	l := b.login(t, nil)
	renewed := make(chan bool, 16)
	var wg sync.WaitGroup
	for i := range cap(renewed) {
		wg.Go(func() {
			got, renews, err := b.RefreshLogin(t.Context(), b.orgA, l.ID, 0, start.Add(time.Duration(i)*time.Millisecond), idle, grace)
			if err != nil || got.Generation != 1 {
				t.Errorf("generation %d, error %v", got.Generation, err)
			}
			renewed <- renews
		})
	}
	wg.Wait()
	asks := 0
	for range cap(renewed) {
		if <-renewed {
			asks++
		}
	}
	equal(t, asks, 1)
}

// testRenewLogin asks the identity provider for new facts, which one node does at a time.
func testRenewLogin(t *testing.T, b *bundle) {
	ctx := t.Context()
	l := b.login(t, nil)
	generation := 0
	renews := func(now time.Time) bool {
		t.Helper()
		got, is, err := b.RefreshLogin(ctx, b.orgA, l.ID, generation, now, idle, grace)
		noError(t, err)
		generation = got.Generation
		return is
	}
	equal(t, []bool{renews(start), renews(start.Add(storage.RenewalLimit - 1000)), renews(start.Add(storage.RenewalLimit)), renews(start.Add(storage.RenewalLimit))},
		[]bool{true, false, true, false})
	facts, at := storage.LoginFacts{Groups: []string{"support"}}, start.Add(time.Hour)
	var err error
	renewed := storage.Login{
		ID: l.ID, OrganizationID: b.orgA, Facts: facts, FactsAt: at, SealedRefresh: []byte("next"), SealedIDToken: []byte("id"), IDTokenExpiresAt: at.Add(time.Minute),
	}
	equal(t, b.changes(func() { err = b.RenewLogin(ctx, renewed) }), 1)
	noError(t, err)
	got, err := b.Login(ctx, b.orgA, l.ID, start)
	noError(t, err)
	equal(t, got.Facts, facts)
	equal(t, got.FactsAt, at)
	equal(t, got.SealedRefresh, []byte("next"))
	equal(t, got.SealedIDToken, []byte("id"))
	equal(t, got.IDTokenExpiresAt, at.Add(time.Minute))
	equal(t, renews(start.Add(storage.RenewalLimit)), true)
	// The same facts are no change, whatever else is new. Without a refresh token there is nobody to ask.
	renewed.Facts.Roles, renewed.SealedRefresh = []string{}, nil
	equal(t, b.changes(func() { err = b.RenewLogin(ctx, renewed) }), 0)
	noError(t, err)
	equal(t, renews(start.Add(time.Hour)), false)

	for want, change := range map[error]func(*storage.Login){
		storage.ErrNotFound: func(l *storage.Login) { l.OrganizationID = b.orgB },
		storage.ErrText:     func(l *storage.Login) { l.Facts.Teams = []string{"\xff"} },
	} {
		wrong := renewed
		change(&wrong)
		wantError(t, b.RenewLogin(ctx, wrong), want)
	}
	renewed.ID = b.unknown
	wantError(t, b.RenewLogin(ctx, renewed), storage.ErrNotFound)
}

// testBeginRenewal has several nodes renew an ID token, which one of them does, and none when it is good by then.
func testBeginRenewal(t *testing.T, b *bundle) {
	ctx := t.Context()
	l := b.login(t, nil)
	begin := func(now, until time.Time) bool {
		t.Helper()
		var got storage.Login
		var renews bool
		var err error
		equal(t, b.changes(func() { got, renews, err = b.BeginRenewal(ctx, b.orgA, l.ID, now, until) }), 0)
		noError(t, err)
		equal(t, got.SealedRefresh, l.SealedRefresh)
		equal(t, got.Generation, 0)
		return renews
	}
	ends := l.IDTokenExpiresAt
	equal(t, []bool{begin(start, ends.Add(-1000)), begin(start, ends), begin(start, ends), begin(start.Add(storage.RenewalLimit), ends)},
		[]bool{false, true, false, true})
	// A client that refreshes meanwhile does not ask too.
	_, renews, err := b.RefreshLogin(ctx, b.orgA, l.ID, 0, start.Add(storage.RenewalLimit), idle, grace)
	noError(t, err)
	equal(t, renews, false)

	_, _, err = b.BeginRenewal(ctx, b.orgB, l.ID, start, ends)
	wantError(t, err, storage.ErrNotFound)
	_, _, err = b.BeginRenewal(ctx, b.orgA, b.unknown, start, ends)
	wantError(t, err, storage.ErrNotFound)
	_, err = b.EndLogin(ctx, b.orgA, l.ID, false)
	noError(t, err)
	_, _, err = b.BeginRenewal(ctx, b.orgA, l.ID, start, ends)
	wantError(t, err, storage.ErrNotFound)
}

func testLoginLists(t *testing.T, b *bundle) {
	ctx := t.Context()
	of := func(user string, used time.Duration) string {
		l := b.login(t, func(l *storage.Login) { l.UserID, l.CreatedAt = user, start.Add(-used) })
		return l.ID
	}
	first, second, others := of(b.userA1, time.Hour), of(b.userA1, 2*time.Hour), of(b.userA2, 3*time.Hour)
	list := func(f storage.LoginFilter) (ids []string, total int) {
		t.Helper()
		f.OrganizationID, f.Now = b.orgA, start
		page, err := b.Logins(ctx, f)
		noError(t, err)
		for _, l := range page.Items {
			ids = append(ids, l.ID)
		}
		return ids, page.Total
	}
	ids, total := list(storage.LoginFilter{})
	equal(t, ids, []string{first, second, others})
	equal(t, total, 3)
	ids, total = list(storage.LoginFilter{UserID: b.userA1, Page: storage.PageRequest{Number: 2, Limit: 1}})
	equal(t, ids, []string{second})
	equal(t, total, 2)
	foreign, err := b.Logins(ctx, storage.LoginFilter{OrganizationID: b.orgB, Now: start})
	noError(t, err)
	equal(t, foreign.Total, 0)

	// A login ends by hand, and with its user's tokens.
	_, err = b.EndLogin(ctx, b.orgB, first, false)
	wantError(t, err, storage.ErrNotFound)
	var ended storage.Login
	equal(t, b.changes(func() { ended, err = b.EndLogin(ctx, b.orgA, first, false) }), 1)
	noError(t, err)
	equal(t, ended.ID, first)
	_, err = b.EndLogin(ctx, b.orgA, first, false)
	wantError(t, err, storage.ErrNotFound)
	_, err = b.RevokeUser(ctx, b.orgA, b.userA1, start)
	noError(t, err)
	ids, _ = list(storage.LoginFilter{})
	equal(t, ids, []string{others})
	// A later login is ended by a repeated revocation, which is a change although its time is the same.
	again := of(b.userA1, 0)
	equal(t, b.changes(func() { _, err = b.RevokeUser(ctx, b.orgA, b.userA1, start) }), 1)
	noError(t, err)
	_, err = b.Login(ctx, b.orgA, again, start)
	wantError(t, err, storage.ErrNotFound)
}

// testLoginsBounded makes more logins than a user may have. Those that have ended are forgotten with the next login.
func testLoginsBounded(t *testing.T, b *bundle) {
	ctx := t.Context()
	forgotten := b.newLogin()
	forgotten.ClientID, forgotten.CreatedAt, forgotten.ExpiresAt = "", start.Add(-time.Hour), start
	noError(t, b.CreateLogin(ctx, forgotten))
	others := b.login(t, func(l *storage.Login) { l.UserID = b.userA2 })
	_, err := b.EndLogin(ctx, b.orgA, forgotten.ID, false)
	wantError(t, err, storage.ErrNotFound)
	var ids []string
	for i := range storage.MaxLogins + 1 {
		l := b.newLogin()
		l.CreatedAt = start.Add(time.Duration(i) * time.Second / 10)
		ended := b.changes(func() { err = b.agree(ctx, l) })
		noError(t, err)
		equal(t, ended, max(0, i+1-storage.MaxLogins))
		ids = append(ids, l.ID)
	}
	for i, id := range ids {
		_, err := b.RedeemLogin(ctx, b.orgA, id, start, start.Add(idle))
		if (err == nil) != (i > 0) {
			t.Errorf("login %d: %v", i, err)
		}
	}
	_, err = b.Login(ctx, b.orgA, others.ID, start)
	noError(t, err)
}

// testWaitingLogins begins logins to which nobody has agreed yet.
func testWaitingLogins(t *testing.T, b *bundle) {
	ctx := t.Context()
	used := b.login(t, nil)
	agreed := b.newLogin()
	waiting := agreed
	waiting.ClientID, waiting.ClientName, waiting.Resource, waiting.RedirectURI, waiting.Challenge = "", "", "", "", ""
	waiting.ExpiresAt, waiting.EndsAt = start.Add(10*time.Minute), start.Add(10*time.Minute)
	noError(t, b.CreateLogin(ctx, waiting))
	_, err := b.RedeemLogin(ctx, b.orgA, waiting.ID, start, start.Add(idle))
	wantError(t, err, storage.ErrNotFound)
	for name, change := range map[string]func(*storage.Login){
		"another organization": func(l *storage.Login) { l.OrganizationID = b.orgB },
		"another user":         func(l *storage.Login) { l.UserID = b.userA2 },
		"another login":        func(l *storage.Login) { l.ID = newID() },
		"too late":             func(l *storage.Login) { l.UsedAt = waiting.ExpiresAt },
	} {
		l := agreed
		change(&l)
		if err := b.AgreeLogin(ctx, l); !errors.Is(err, storage.ErrNotFound) {
			t.Errorf("%s: %v", name, err)
		}
	}
	equal(t, b.changes(func() { err = b.AgreeLogin(ctx, agreed) }), 0)
	noError(t, err)
	wantError(t, b.AgreeLogin(ctx, agreed), storage.ErrNotFound) // a second time
	got, err := b.RedeemLogin(ctx, b.orgA, agreed.ID, start, start.Add(idle))
	noError(t, err)
	agreed.RedeemedAt, agreed.RotatedAt, agreed.ExpiresAt = start, start, start.Add(idle)
	equal(t, got, agreed)

	// Those that wait push out each other, and no others.
	var ids []string
	for i := range storage.MaxWaitingLogins + 1 {
		waiting.ID, waiting.CreatedAt = newID(), start.Add(time.Duration(i)*time.Second)
		noError(t, b.CreateLogin(ctx, waiting))
		ids = append(ids, waiting.ID)
	}
	for i, id := range ids {
		l := b.newLogin()
		l.ID = id
		if err := b.AgreeLogin(ctx, l); (err == nil) != (i > 0) {
			t.Errorf("login %d: %v", i, err)
		}
	}
	for _, l := range []storage.Login{used, agreed} {
		_, err = b.Login(ctx, b.orgA, l.ID, start)
		noError(t, err)
	}
}

func testConsents(t *testing.T, b *bundle) {
	ctx := t.Context()
	want := storage.Consent{
		OrganizationID: b.orgA, UserID: b.userA1, ClientID: "client", Resource: "https://gateway.example.com/mcp/notes",
		RedirectOrigin: "http://127.0.0.1", ClientName: "An editor", CreatedAt: start,
	}
	noError(t, b.PutConsent(ctx, want))
	got, err := b.Consent(ctx, want)
	noError(t, err)
	equal(t, got, want)
	for name, change := range map[string]func(*storage.Consent){
		"organization": func(c *storage.Consent) { c.OrganizationID = b.orgB },
		"user":         func(c *storage.Consent) { c.UserID = b.userA2 },
		"client":       func(c *storage.Consent) { c.ClientID = "other" },
		"resource":     func(c *storage.Consent) { c.Resource += "2" },
		"origin":       func(c *storage.Consent) { c.RedirectOrigin = "https://127.0.0.1" },
	} {
		other := want
		change(&other)
		if _, err := b.Consent(ctx, other); !errors.Is(err, storage.ErrNotFound) {
			t.Errorf("another %s: %v", name, err)
		}
	}
	again := want
	again.ClientName, again.CreatedAt = "A new name", start.Add(time.Hour)
	noError(t, b.PutConsent(ctx, again))
	later := again
	later.RedirectOrigin, later.CreatedAt = "https://client.example.com", start.Add(2*time.Hour)
	noError(t, b.PutConsent(ctx, later))
	all, err := b.Consents(ctx, b.orgA, b.userA1)
	noError(t, err)
	equal(t, all, []storage.Consent{later, again})
	all, err = b.Consents(ctx, b.orgB, b.userA1)
	noError(t, err)
	equal(t, len(all), 0)
	for _, user := range []string{b.unknown, b.userB1} {
		c := want
		c.UserID = user
		wantError(t, b.PutConsent(ctx, c), storage.ErrNotFound)
	}

	// A login that its user ends takes the consents to its client with it, others stay.
	ended, other := b.login(t, func(l *storage.Login) { l.ClientID = "client" }), again
	other.ClientID = "other"
	noError(t, b.PutConsent(ctx, other))
	_, err = b.EndLogin(ctx, b.orgA, ended.ID, true)
	noError(t, err)
	all, err = b.Consents(ctx, b.orgA, b.userA1)
	noError(t, err)
	equal(t, all, []storage.Consent{other})
	noError(t, b.PutConsent(ctx, again))

	// Whoever takes a consent back ends the logins that came of it.
	with, without := b.login(t, func(l *storage.Login) { l.ClientID = "client" }), b.login(t, nil)
	noError(t, b.EndConsents(ctx, b.orgB, b.userA1, "client"))
	equal(t, b.changes(func() { err = b.EndConsents(ctx, b.orgA, b.userA1, "client") }), 1)
	noError(t, err)
	equal(t, b.changes(func() { err = b.EndConsents(ctx, b.orgA, b.userA1, "client") }), 0)
	noError(t, err)
	all, err = b.Consents(ctx, b.orgA, b.userA1)
	noError(t, err)
	equal(t, all, []storage.Consent{other})
	_, err = b.Login(ctx, b.orgA, with.ID, start)
	wantError(t, err, storage.ErrNotFound)
	_, err = b.Login(ctx, b.orgA, without.ID, start)
	noError(t, err)
	_, err = b.RevokeUser(ctx, b.orgA, b.userA1, start)
	noError(t, err)
	all, err = b.Consents(ctx, b.orgA, b.userA1)
	noError(t, err)
	equal(t, len(all), 0)

	for i := range storage.MaxConsents + 2 {
		c := want
		c.ClientID, c.CreatedAt = strconv.Itoa(i), start.Add(time.Duration(i)*time.Second)
		noError(t, b.PutConsent(ctx, c))
	}
	all, err = b.Consents(ctx, b.orgA, b.userA1)
	noError(t, err)
	equal(t, len(all), storage.MaxConsents)
	equal(t, all[len(all)-1].ClientID, "2")
}

func testRegisteredClients(t *testing.T, b *bundle) {
	ctx := t.Context()
	want := storage.RegisteredClient{
		ID: newID(), Name: "An editor", AuthMethod: "client_secret_basic", SecretHash: []byte{0, 1, 0xff}, RedirectURIs: []string{"http://127.0.0.1/back", "https://client.example.com/back"},
		GrantTypes: []string{"authorization_code", "refresh_token"}, CreatedAt: start,
	}
	noError(t, b.RegisterClient(ctx, want))
	got, err := b.RegisteredClient(ctx, want.ID)
	noError(t, err)
	equal(t, got, want)
	_, err = b.RegisteredClient(ctx, b.unknown)
	wantError(t, err, storage.ErrNotFound)
	noError(t, b.ClientLoggedIn(ctx, b.unknown, start))

	// register stores a public client, and returns its id.
	register := func(at time.Time) string {
		t.Helper()
		c := storage.RegisteredClient{ID: newID(), AuthMethod: "none", RedirectURIs: []string{"http://localhost/"}, GrantTypes: []string{"authorization_code"}, CreatedAt: at}
		noError(t, b.RegisterClient(ctx, c))
		return c.ID
	}
	known := func(id string) bool {
		t.Helper()
		_, err := b.RegisteredClient(ctx, id)
		if err != nil {
			wantError(t, err, storage.ErrNotFound)
		}
		return err == nil
	}
	unused, used := register(start), register(start)
	login := start.Add(time.Hour)
	noError(t, b.ClientLoggedIn(ctx, used, login))
	noError(t, b.ClientLoggedIn(ctx, used, start)) // it does not move back
	got, err = b.RegisteredClient(ctx, used)
	noError(t, err)
	equal(t, got.LoggedInAt, login)
	register(start.Add(storage.UnusedClientLifetime - time.Microsecond))
	equal(t, []bool{known(unused), known(used)}, []bool{true, true})
	register(start.Add(storage.UnusedClientLifetime))
	equal(t, []bool{known(unused), known(used), known(want.ID)}, []bool{false, true, false})
	register(login.Add(storage.IdleClientLifetime - time.Microsecond))
	equal(t, known(used), true)
	register(login.Add(storage.IdleClientLifetime))
	equal(t, known(used), false)

	bad := want
	bad.ID, bad.RedirectURIs = newID(), []string{"\xff"}
	wantError(t, b.RegisterClient(ctx, bad), storage.ErrText)
	bad.RedirectURIs, bad.GrantTypes = nil, []string{"\xff"}
	wantError(t, b.RegisterClient(ctx, bad), storage.ErrText)
}

func testSigningKeys(t *testing.T, b *bundle) {
	ctx := t.Context()
	key := func(id string, at time.Time) storage.SigningKey {
		return storage.SigningKey{ID: id, Sealed: []byte{0, 0xff}, CreatedAt: at, ExpiresAt: at.Add(time.Hour)}
	}
	list := func(want ...storage.SigningKey) {
		t.Helper()
		keys, err := b.SigningKeys(ctx)
		noError(t, err)
		equal(t, keys, want)
	}
	list()
	first, second, third := key("first", start), key("second", start.Add(30*time.Minute)), key("third", start.Add(time.Hour))
	wantError(t, b.AddSigningKey(ctx, first, "other"), storage.ErrConflict)
	noError(t, b.AddSigningKey(ctx, first, ""))
	wantError(t, b.AddSigningKey(ctx, second, ""), storage.ErrConflict)
	noError(t, b.AddSigningKey(ctx, second, "first"))
	list(second, first)
	wantError(t, b.AddSigningKey(ctx, third, "first"), storage.ErrConflict)
	noError(t, b.AddSigningKey(ctx, third, "second"))
	list(third, second)
}

// testSigningKeyRace lets several nodes make the first key.
func testSigningKeyRace(t *testing.T, b *bundle) {
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			k := storage.SigningKey{ID: strconv.Itoa(i), Sealed: []byte{1}, CreatedAt: start, ExpiresAt: start.Add(time.Hour)}
			if err := b.AddSigningKey(t.Context(), k, ""); err != nil && !errors.Is(err, storage.ErrConflict) {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	keys, err := b.SigningKeys(t.Context())
	noError(t, err)
	equal(t, len(keys), 1)
}

func testAssertions(t *testing.T, b *bundle) {
	ctx := t.Context()
	use := func(issuer, id string, at time.Time) error {
		return b.UseAssertion(ctx, issuer, id, at, start.Add(time.Minute))
	}
	noError(t, use("issuer", "a", start))
	wantError(t, use("issuer", "a", start.Add(time.Minute-time.Microsecond)), storage.ErrReplayed)
	noError(t, use("other", "a", start))
	noError(t, use("issuer", "b", start))
	noError(t, b.UseAssertion(ctx, "issuer", "c", start.Add(time.Minute), start.Add(time.Hour)))
	// The others have expired, so that only their expiry can refuse them.
	noError(t, use("issuer", "a", start.Add(time.Minute)))
	wantError(t, b.UseAssertion(ctx, "issuer", "c", start.Add(time.Minute), start.Add(time.Hour)), storage.ErrReplayed)
}

// testAssertionRace presents one assertion to several nodes at once.
func testAssertionRace(t *testing.T, b *bundle) {
	var wg sync.WaitGroup
	var first atomic.Int32
	for range 8 {
		wg.Go(func() {
			switch err := b.UseAssertion(t.Context(), "issuer", "a", start, start.Add(time.Hour)); {
			case err == nil:
				first.Add(1)
			case !errors.Is(err, storage.ErrReplayed):
				t.Error(err)
			}
		})
	}
	wg.Wait()
	equal(t, int(first.Load()), 1)
}
