package approval_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/durward-gateway/durward/internal/policy/approval"
	"github.com/durward-gateway/durward/storage"
)

// held keeps holds in memory. Its error is the answer to each new one.
type held struct {
	memory
	all []storage.Hold
	err error
}

func (h *held) AddHold(_ context.Context, added storage.Hold, now time.Time) error {
	if h.err != nil {
		return h.err
	}
	h.all = slices.DeleteFunc(h.all, func(old storage.Hold) bool { return !old.ExpiresAt.After(now) })
	h.all = append(h.all, added)
	return nil
}

func (h *held) HoldStands(_ context.Context, organization, id string) (bool, error) {
	return slices.ContainsFunc(h.all, func(hold storage.Hold) bool { return hold.OrganizationID == organization && hold.ID == id }), nil
}

func (h *held) DeleteHold(_ context.Context, organization, id string) error {
	h.all = slices.DeleteFunc(h.all, func(hold storage.Hold) bool { return hold.OrganizationID == organization && hold.ID == id })
	return nil
}

func (h *held) TakeBackCalls(_ context.Context, organization, userID string, calls []string) error {
	h.all = slices.DeleteFunc(h.all, func(hold storage.Hold) bool {
		return hold.OrganizationID == organization && hold.UserID == userID && slices.Contains(calls, hold.Call)
	})
	return nil
}

// TestHolds checks that a hold stands until it is ended or its asker takes the call back, and that nobody else's
// cancellation with the same id ends it.
func TestHolds(t *testing.T) {
	now := time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)
	store := new(held)
	e := newEngine(store, new(approval.Bell), func() time.Time { return now })
	who := approval.Asker{Organization: "o", User: "alice", Client: "agent-a", Server: "s", Session: "one"}
	hold := func(id string) *approval.Hold {
		t.Helper()
		h, err := e.Hold(t.Context(), who, id)
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	stands := func(h *approval.Hold) bool {
		t.Helper()
		is, err := h.Stands(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return is
	}
	first, second := hold("1"), hold("2")
	if added := store.all[0]; added.OrganizationID != "o" || added.UserID != "alice" || added.ServerID != "s" || !added.ExpiresAt.Equal(now.Add(24*time.Hour)) {
		t.Errorf("%+v is stored", added)
	}
	for name, change := range map[string]func(*approval.Asker){
		"organization": func(a *approval.Asker) { a.Organization = "o2" },
		"user":         func(a *approval.Asker) { a.User = "bob" },
		"client":       func(a *approval.Asker) { a.Client = "agent-b" },
		"issuer":       func(a *approval.Asker) { a.Issuer = "https://other.example" },
		"server":       func(a *approval.Asker) { a.Server = "s2" },
		"session":      func(a *approval.Asker) { a.Session = "two" },
	} {
		other := who
		change(&other)
		if err := e.TakeBack(t.Context(), other, []string{"1", "2"}); err != nil {
			t.Fatal(err)
		}
		if !stands(first) || !stands(second) {
			t.Fatalf("somebody with another %s takes calls back", name)
		}
	}
	if err := e.TakeBack(t.Context(), who, []string{"0", "1"}); err != nil {
		t.Fatal(err)
	}
	if stands(first) || !stands(second) {
		t.Errorf("the call that was taken back stands %v, the other one %v", stands(first), stands(second))
	}
	if err := second.End(t.Context()); err != nil || stands(second) {
		t.Errorf("a hold that was ended stands; error %v", err)
	}
}

// TestHoldNotStored checks that a call is not held when the store does not know of it: nobody could cancel it.
func TestHoldNotStored(t *testing.T) {
	store := &held{err: storage.ErrNotFound}
	if h, err := newEngine(store, new(approval.Bell), nil).Hold(t.Context(), approval.Asker{}, "1"); !errors.Is(err, storage.ErrNotFound) || h != nil {
		t.Errorf("hold %v, error %v", h, err)
	}
}
