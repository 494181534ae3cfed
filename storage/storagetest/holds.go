package storagetest

import (
	"testing"
	"time"

	"github.com/durward-gateway/durward/storage"
)

func testHolds(t *testing.T, b *bundle) {
	ctx := t.Context()
	hold := func(userID, call string) storage.Hold {
		t.Helper()
		h := storage.Hold{ID: newID(), OrganizationID: b.orgA, UserID: userID, ServerID: b.serverA.ID, Call: call, ExpiresAt: start.Add(time.Hour)}
		noError(t, b.AddHold(ctx, h, start))
		return h
	}
	stands := func(h storage.Hold) bool {
		t.Helper()
		is, err := b.HoldStands(ctx, h.OrganizationID, h.ID)
		noError(t, err)
		return is
	}
	taken, too, twice := hold(b.userA1, "a"), hold(b.userA1, "b"), hold(b.userA1, "a")
	another, others := hold(b.userA1, "c"), hold(b.userA2, "a")
	noError(t, b.TakeBackCalls(ctx, b.orgB, b.userA1, []string{"c"}))
	noError(t, b.TakeBackCalls(ctx, b.orgA, b.userA1, []string{"nothing"}))
	noError(t, b.TakeBackCalls(ctx, b.orgA, b.userA1, []string{"a", "nothing", "b"}))
	equal(t, []bool{stands(taken), stands(too), stands(twice), stands(another), stands(others)}, []bool{false, false, false, true, true})
	foreign := another
	foreign.OrganizationID = b.orgB
	equal(t, stands(foreign), false)
	noError(t, b.DeleteHold(ctx, b.orgB, another.ID))
	equal(t, stands(another), true)
	for range 2 {
		noError(t, b.DeleteHold(ctx, b.orgA, another.ID))
	}
	equal(t, stands(another), false)

	// A hold for another organization's server is refused, and expired holds make room.
	foreign = storage.Hold{ID: newID(), OrganizationID: b.orgA, UserID: b.userA1, ServerID: b.serverB.ID, Call: "a", ExpiresAt: start.Add(time.Hour)}
	wantError(t, b.AddHold(ctx, foreign, start), storage.ErrNotFound)
	foreign.ServerID, foreign.ExpiresAt = b.serverA.ID, start.Add(2*time.Hour)
	noError(t, b.AddHold(ctx, foreign, start.Add(time.Hour)))
	equal(t, []bool{stands(others), stands(foreign)}, []bool{false, true})
	_, err := b.DeleteServer(ctx, b.orgA, b.serverA.ID, b.userA1, start)
	noError(t, err)
	equal(t, stands(foreign), false)
}

// testForeignApprovals checks approvals on which other people than the caller decide.
func testForeignApprovals(t *testing.T, b *bundle) {
	ctx := t.Context()
	lists := [][]string{{"group:léads", "user:" + b.userA2}, {"role:<boss>"}}
	made := func(binding string, at time.Time, approvers [][]string) storage.Approval {
		t.Helper()
		a := b.newApproval(binding)
		a.Approvers, a.CreatedAt = approvers, at
		got, err := b.CreateApproval(ctx, a, storage.AskLimits{Pending: 100})
		noError(t, err)
		equal(t, got, a)
		return a
	}
	first, second := made("first", start, lists), made("second", start.Add(time.Second), [][]string{{"group:x"}})
	made("own", start.Add(time.Second), nil)
	again, err := b.CreateApproval(ctx, b.withApprovers("first", lists), storage.AskLimits{Pending: 100})
	noError(t, err)
	equal(t, again.ID, first.ID)

	foreign := func(organization string, now time.Time) (ids []string) {
		t.Helper()
		all, err := b.ForeignApprovals(ctx, organization, now)
		noError(t, err)
		for _, f := range all {
			ids = append(ids, f.ID)
			one, err := b.Approval(ctx, organization, f.ID, now)
			noError(t, err)
			equal(t, f, storage.ForeignApproval{ID: one.ID, UserID: one.UserID, Approvers: one.Approvers})
		}
		return ids
	}
	equal(t, foreign(b.orgA, start), []string{second.ID, first.ID})
	equal(t, foreign(b.orgB, start), nil)
	equal(t, foreign(b.orgA, first.ExpiresAt), nil)

	for _, approve := range []bool{true, false} {
		_, err = b.DecideApproval(ctx, b.orgA, first.ID, b.word(approve)) // by its own user
		wantError(t, err, storage.ErrNotFound)
	}
	word := b.word(true)
	word.UserID = b.userA2
	decided, err := b.DecideApproval(ctx, b.orgA, first.ID, word)
	noError(t, err)
	equal(t, decided.DecidedBy, b.userA2)
	equal(t, decided.Approvers, lists)
	_, err = b.DecideApproval(ctx, b.orgA, first.ID, word)
	wantError(t, err, storage.ErrConflict)
	equal(t, foreign(b.orgA, start.Add(2*time.Minute)), []string{second.ID})
	taken, err := b.take(t, decided, start.Add(2*time.Minute))
	noError(t, err)
	equal(t, taken.DecidedBy, b.userA2)

	late := word
	late.At = second.ExpiresAt
	_, err = b.DecideApproval(ctx, b.orgA, second.ID, late)
	wantError(t, err, storage.ErrConflict)
	bad := b.withApprovers("no text", [][]string{{"group:\xff"}})
	_, err = b.CreateApproval(ctx, bad, storage.AskLimits{})
	wantError(t, err, storage.ErrText)
}

func (b *bundle) withApprovers(binding string, approvers [][]string) storage.Approval {
	a := b.newApproval(binding)
	a.Approvers = approvers
	return a
}

// testSessionFacts checks that the facts of a user's last login with a browser are kept, and that an older login does not
// replace them.
func testSessionFacts(t *testing.T, b *bundle) {
	ctx := t.Context()
	_, err := b.SessionFacts(ctx, b.orgA, b.userA1)
	wantError(t, err, storage.ErrNotFound)
	last := storage.SessionFacts{Roles: []string{"<editor>", "é"}, Groups: []string{"a b"}, At: start.Add(time.Hour)}
	for _, f := range []storage.SessionFacts{{Groups: []string{"former"}, At: start}, last, {Roles: []string{"older"}, At: start.Add(time.Minute)}} {
		noError(t, b.PutSessionFacts(ctx, b.orgA, b.userA1, f))
	}
	got, err := b.SessionFacts(ctx, b.orgA, b.userA1)
	noError(t, err)
	equal(t, got, last)
	noError(t, b.PutSessionFacts(ctx, b.orgA, b.userA1, storage.SessionFacts{At: start.Add(2 * time.Hour)}))
	got, err = b.SessionFacts(ctx, b.orgA, b.userA1)
	noError(t, err)
	equal(t, got, storage.SessionFacts{At: start.Add(2 * time.Hour)})

	for _, user := range []string{b.unknown, b.userB1} {
		wantError(t, b.PutSessionFacts(ctx, b.orgA, user, last), storage.ErrNotFound)
	}
	_, err = b.SessionFacts(ctx, b.orgB, b.userA1)
	wantError(t, err, storage.ErrNotFound)
	wantError(t, b.PutSessionFacts(ctx, b.orgA, b.userA1, storage.SessionFacts{Groups: []string{"\xff"}}), storage.ErrText)
}
