package storagetest

import (
	"slices"
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
