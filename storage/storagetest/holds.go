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
