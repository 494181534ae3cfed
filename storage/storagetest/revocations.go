package storagetest

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/durward-gateway/durward/storage"
)

func testRevocations(t *testing.T, b *bundle) {
	ctx := t.Context()
	first := storage.Revocation{ID: newID(), OrganizationID: b.orgA, Sealed: []byte("sealed"), CreatedAt: start, NextAt: start}
	other := storage.Revocation{ID: newID(), OrganizationID: b.orgB, Sealed: []byte("other"), CreatedAt: start, NextAt: start.Add(time.Minute)}
	noError(t, b.AddRevocation(ctx, first))
	noError(t, b.AddRevocation(ctx, other))
	// Suites share a store: this ignores the due revocations of other tests.
	due := func(now time.Time) []storage.Revocation {
		t.Helper()
		all, err := b.DueRevocations(ctx, now, 1000, 1000)
		noError(t, err)
		return slices.DeleteFunc(all, func(v storage.Revocation) bool { return v.ID != first.ID && v.ID != other.ID })
	}
	equal(t, due(start.Add(-time.Second)), nil)
	equal(t, due(start), []storage.Revocation{first})
	equal(t, due(start.Add(time.Hour)), []storage.Revocation{first, other})
	one, err := b.DueRevocations(ctx, start.Add(time.Hour), 1, 1000)
	noError(t, err)
	equal(t, len(one), 1)
	second, third := first, first
	second.ID, second.NextAt, third.ID, third.NextAt = newID(), start.Add(time.Second), newID(), start.Add(2*time.Second)
	noError(t, b.AddRevocation(ctx, second))
	noError(t, b.AddRevocation(ctx, third))
	shared := func(share int) (ids []string) {
		t.Helper()
		all, err := b.DueRevocations(ctx, start.Add(time.Hour), 1000, share)
		noError(t, err)
		for _, v := range all {
			if slices.Contains([]string{first.ID, second.ID, third.ID, other.ID}, v.ID) {
				ids = append(ids, v.ID)
			}
		}
		return ids
	}
	equal(t, shared(1), []string{first.ID, other.ID})
	equal(t, shared(2), []string{first.ID, other.ID, second.ID})
	equal(t, shared(9), []string{first.ID, other.ID, second.ID, third.ID})
	noError(t, b.DeleteRevocation(ctx, b.orgA, second.ID))
	noError(t, b.DeleteRevocation(ctx, b.orgA, third.ID))

	// Of two nodes that have read it, one may try, and that one reports the result.
	claimed := first
	claimed.NextAt = start.Add(30 * time.Second)
	noError(t, b.PostponeRevocation(ctx, first, claimed.NextAt, 0))
	wantError(t, b.PostponeRevocation(ctx, first, start.Add(3*time.Minute), 1), storage.ErrNotFound)
	equal(t, due(start.Add(time.Hour)), []storage.Revocation{claimed, other})
	noError(t, b.PostponeRevocation(ctx, claimed, start.Add(2*time.Minute), 1))
	first.Attempts, first.NextAt = 1, start.Add(2*time.Minute)
	equal(t, due(start.Add(time.Hour)), []storage.Revocation{other, first})

	foreign := first
	foreign.OrganizationID = b.orgB
	wantError(t, b.PostponeRevocation(ctx, foreign, start, 0), storage.ErrNotFound)
	noError(t, b.DeleteRevocation(ctx, b.orgB, first.ID))
	equal(t, due(start.Add(time.Hour)), []storage.Revocation{other, first})
	noError(t, b.DeleteRevocation(ctx, b.orgA, first.ID))
	noError(t, b.DeleteRevocation(ctx, b.orgA, first.ID))
	equal(t, due(start.Add(time.Hour)), []storage.Revocation{other})
	noError(t, b.DeleteRevocation(ctx, b.orgB, other.ID))
}

// announcing returns announcements of an approval to receivers: of the call and of its end when it is pending, and of the
// decision.
func announcing(receivers ...string) storage.Announcing {
	return func(a storage.Approval) (all []storage.Announcement) {
		for _, receiver := range receivers {
			made := func(event string, number int, at time.Time) {
				all = append(all, storage.Announcement{
					ID: newID(), OrganizationID: a.OrganizationID, ApprovalID: a.ID, Event: event, Receiver: receiver, Number: number,
					Text: "<é>", State: storage.AnnouncementWaiting, CreatedAt: at, NextAt: at,
				})
			}
			if a.Status != storage.ApprovalPending {
				made(storage.EventDecided, 1, a.DecidedAt)
				continue
			}
			made(storage.EventHeld, 0, a.CreatedAt)
			made(storage.EventExpired, 1, a.ExpiresAt)
		}
		return all
	}
}

func (b *bundle) due(t *testing.T, receiver string, now time.Time) []storage.Announcement {
	t.Helper()
	due, err := b.DueAnnouncements(t.Context(), receiver, now, 100, 100)
	noError(t, err)
	return due
}

func events(all []storage.Announcement) (names []string) {
	for _, a := range all {
		names = append(names, a.Event)
	}
	return names
}

// testAnnouncements checks the life of announcements: stored with the call, in order, sent by one node, and ended.
func testAnnouncements(t *testing.T, b *bundle) {
	ctx := storage.WithAnnouncing(t.Context(), announcing("one", "two"))
	a := b.newApproval("announced")
	_, err := b.CreateApproval(ctx, a, storage.AskLimits{Pending: 10})
	noError(t, err)
	again := b.newApproval("announced")
	_, err = b.CreateApproval(ctx, again, storage.AskLimits{Pending: 10}) // the same call: nobody is told twice
	noError(t, err)

	equal(t, events(b.due(t, "one", start)), []string{storage.EventHeld})
	equal(t, events(b.due(t, "one", a.ExpiresAt)), []string{storage.EventHeld}) // the end comes after the beginning
	equal(t, b.due(t, "three", a.ExpiresAt), nil)
	_, err = b.DecideApproval(ctx, b.orgA, a.ID, b.word(true))
	noError(t, err)

	first := b.due(t, "one", start)[0]
	until := start.Add(time.Minute)
	noError(t, b.ClaimAnnouncement(ctx, first, until))
	wantError(t, b.ClaimAnnouncement(ctx, first, until), storage.ErrNotFound)
	equal(t, b.due(t, "one", start.Add(2*time.Second)), nil) // neither the claimed one, nor the next
	tried := first
	tried.NextAt, tried.Attempts, tried.LastError = start.Add(2*time.Minute), 1, "status 500 <é>"
	wantError(t, b.TriedAnnouncement(ctx, start, tried, nil), storage.ErrNotFound) // the claim is not this one
	noError(t, b.TriedAnnouncement(ctx, until, tried, nil))
	equal(t, b.due(t, "one", start.Add(3*time.Minute)), []storage.Announcement{tried})
	tried.State, tried.EndedAt, tried.Attempts, tried.LastError = storage.AnnouncementDelivered, start.Add(4*time.Minute), 2, ""
	more := tried
	more.ID, more.Recipient, more.State, more.EndedAt, more.Attempts, more.Event = newID(), "bob@example.test", storage.AnnouncementWaiting, time.Time{}, 0, "more"
	noError(t, b.TriedAnnouncement(ctx, tried.NextAt, tried, []storage.Announcement{more}))
	wantError(t, b.TriedAnnouncement(ctx, tried.NextAt, tried, nil), storage.ErrNotFound)
	equal(t, events(b.due(t, "one", a.ExpiresAt)), []string{storage.EventDecided, "more"})
	equal(t, events(b.due(t, "two", a.ExpiresAt)), []string{storage.EventHeld})

	list := func(f storage.AnnouncementFilter) []string {
		t.Helper()
		f.OrganizationID = b.orgA
		if f.Limit == 0 {
			f.Limit = 100
		}
		all, err := b.Announcements(ctx, f)
		noError(t, err)
		return events(all)
	}
	equal(t, len(list(storage.AnnouncementFilter{})), 5)
	equal(t, list(storage.AnnouncementFilter{State: storage.AnnouncementDelivered}), []string{storage.EventHeld})
	equal(t, list(storage.AnnouncementFilter{ApprovalID: b.unknown}), nil)
	all, err := b.Announcements(ctx, storage.AnnouncementFilter{OrganizationID: b.orgA, Limit: 2})
	noError(t, err)
	next, err := b.Announcements(ctx, storage.AnnouncementFilter{OrganizationID: b.orgA, Limit: 10, Before: all[1].ID})
	noError(t, err)
	equal(t, len(all)+len(next), 5)
	none, err := b.Announcements(ctx, storage.AnnouncementFilter{OrganizationID: b.orgB, Limit: 10})
	noError(t, err)
	equal(t, none, nil)

	// The log forgets.
	late := b.newApproval("a week later")
	late.CreatedAt, late.ExpiresAt = start.Add(8*24*time.Hour), start.Add(8*24*time.Hour+time.Minute)
	_, err = b.CreateApproval(ctx, late, storage.AskLimits{Pending: 10})
	noError(t, err)
	equal(t, len(list(storage.AnnouncementFilter{})), 4)
}

// testAnnouncementRace checks that of several nodes one gets an announcement.
func testAnnouncementRace(t *testing.T, b *bundle) {
	ctx := storage.WithAnnouncing(t.Context(), announcing("one"))
	_, err := b.CreateApproval(ctx, b.newApproval("race"), storage.AskLimits{})
	noError(t, err)
	due := b.due(t, "one", start)
	var got atomic.Int32
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if b.ClaimAnnouncement(t.Context(), due[0], start.Add(time.Minute)) == nil {
				got.Add(1)
			}
		})
	}
	all.Wait()
	equal(t, got.Load(), 1)
}

// testAnnouncementShare checks that an organization with many announcements leaves room for the others, and that no
// approval is announced for another organization.
func testAnnouncementShare(t *testing.T, b *bundle) {
	ctx := storage.WithAnnouncing(t.Context(), announcing("one"))
	for i := range 5 {
		_, err := b.CreateApproval(ctx, b.newApproval(fmt.Sprint(i)), storage.AskLimits{})
		noError(t, err)
	}
	theirs := b.newApproval("theirs")
	theirs.OrganizationID, theirs.UserID, theirs.ServerID, theirs.CreatedAt = b.orgB, b.userB1, b.serverB.ID, start.Add(time.Second)
	_, err := b.CreateApproval(ctx, theirs, storage.AskLimits{})
	noError(t, err)
	due, err := b.DueAnnouncements(t.Context(), "one", start.Add(time.Minute), 3, 2)
	noError(t, err)
	equal(t, len(due), 3)
	equal(t, due[1].OrganizationID, b.orgB)
	foreign := func(a storage.Approval) []storage.Announcement {
		a.OrganizationID = b.orgB
		return announcing("one")(a)
	}
	_, err = b.CreateApproval(storage.WithAnnouncing(t.Context(), foreign), b.newApproval("foreign"), storage.AskLimits{})
	wantError(t, err, storage.ErrNotFound)
}

// testAddressees checks that people with an address are listed with the facts about them.
func testAddressees(t *testing.T, b *bundle) {
	ctx := t.Context()
	made := func(subject, email string, kind storage.UserKind) storage.User {
		t.Helper()
		u, err := b.ResolveUser(ctx, storage.UserClaim{
			OrganizationID: b.orgA, Issuer: issuer, Subject: subject, DerivedID: newID(), Kind: kind, Email: email, Groups: []string{"leads"}, IssuedAt: start,
		}, start)
		noError(t, err)
		return u
	}
	want := map[string]storage.Addressee{}
	for _, u := range []storage.User{made("p", "p@example.test", storage.UserPerson), made("q", "q@example.test", storage.UserPerson)} {
		want[u.ID] = storage.Addressee{User: u}
		if u.Subject == "q" {
			facts := storage.SessionFacts{Groups: []string{"x"}, At: start}
			noError(t, b.PutSessionFacts(ctx, b.orgA, u.ID, facts))
			want[u.ID] = storage.Addressee{User: u, Session: facts}
		}
	}
	made("no address", "", storage.UserPerson)
	made("machine", "m@example.test", storage.UserMachine)
	got := map[string]storage.Addressee{}
	for after := ""; ; {
		page, err := b.Addressees(ctx, b.orgA, after, 1)
		noError(t, err)
		if len(page) == 0 {
			break
		}
		after = page[0].User.ID
		got[after] = page[0]
	}
	for id := range got { // the bundle's users have addresses or none
		if _, ok := want[id]; !ok && id != b.userA1 && id != b.userA2 {
			t.Errorf("%+v is listed", got[id])
		}
	}
	for id, a := range want {
		equal(t, got[id], a)
	}
}
