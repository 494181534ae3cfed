package evaluator

import (
	"context"
	"errors"
	"testing"

	"github.com/durward-gateway/durward/internal/mcp/sighting"
	"github.com/durward-gateway/durward/storage"
)

func TestServer(t *testing.T) {
	f := newFixture(t)
	f.store.addServer(acme, "one", "git")
	f.store.grant(acme, "one", "read")
	found := f.find(Asker{Organization: acme}, "git")
	if s := found.Server(); s == nil || s.ID != "one" || !f.allows(found, "read") || f.allows(found, "write") {
		t.Errorf("%+v, read %v, write %v", s, f.allows(found, "read"), f.allows(found, "write"))
	}
	if at, err := found.URL(); err != nil || at.String() != "https://one.example/mcp" {
		t.Errorf("at %v, %v", at, err)
	}
	f.store.write(acme, func() { f.store.servers[0].Modern = true })
	found = f.find(Asker{Organization: acme}, "git")
	if is, err := sighting.New(sighting.Options{}).KnownModern(t.Context(), found.Server(), found.Sight()); err != nil || !is {
		t.Errorf("the store's notes are not known: %v, %v", is, err)
	}
	if _, err := f.Server(t.Context(), Asker{Organization: acme}, "none"); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("an unknown name: %v", err)
	}
}

// TestServerOfAnotherOrganization checks that servers of one name, with policies of one id, are kept apart by their
// organizations.
func TestServerOfAnotherOrganization(t *testing.T) {
	f := newFixture(t)
	f.store.addServer(acme, "one", "git")
	f.store.grant(acme, "one", "read")
	f.settle(Asker{Organization: acme}, "git")
	if _, err := f.Server(t.Context(), Asker{Organization: rival}, "git"); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("another organization's server: %v", err)
	}
	f.store.addServer(rival, "one", "git")
	f.store.grant(rival, "one", "write")
	if found := f.find(Asker{Organization: rival}, "git"); found.Server().OrganizationID != rival || f.allows(found, "read") || !f.allows(found, "write") {
		t.Errorf("%+v judged by another organization's policies", found.Server())
	}
}

// TestNothingIsAllowed checks that calls are denied to a server without policies, and to one whose policies cannot be
// used, or of which nothing is known.
func TestNothingIsAllowed(t *testing.T) {
	f := newFixture(t)
	f.store.addServer(acme, "bare", "bare")
	if found := f.find(Asker{Organization: acme}, "bare"); f.allows(found, "read") {
		t.Error("allowed without a policy")
	}
	f.store.addServer(acme, "odd", "odd")
	f.store.grant(acme, "odd", "read")
	f.store.grant(acme, "odd", "write") // two active policies for all agents
	if set, err := f.find(Asker{Organization: acme}, "odd").Rules(); err == nil || set != nil {
		t.Errorf("policies that contradict each other: %v, %v", set, err)
	}
	var nothing Known
	if set, err := nothing.Rules(); err == nil || set != nil {
		t.Errorf("no server: %v, %v", set, err)
	}
	if _, err := nothing.URL(); err == nil || nothing.Server() != nil || nothing.Sight() != nil {
		t.Error("no server has facts")
	}
	if _, err := f.Renew(t.Context(), Asker{Organization: acme}, nothing); err == nil {
		t.Error("no server is renewed")
	}
}

// TestServerThatCannotBeRead checks that the store's failures are errors, and are not kept.
func TestServerThatCannotBeRead(t *testing.T) {
	f := newFixture(t)
	f.store.addServer(acme, "one", "git")
	f.store.fails = storage.ErrUnavailable
	if found, err := f.Server(t.Context(), Asker{Organization: acme}, "git"); !errors.Is(err, storage.ErrUnavailable) || found != (Known{}) {
		t.Errorf("%v", err)
	}
	f.store.fails = nil
	f.find(Asker{Organization: acme}, "git")
}

// TestDeletedWhileRead checks that a server whose policies are gone is not served without them when it is gone itself
// (Z-N01): its policies are deleted with it.
func TestDeletedWhileRead(t *testing.T) {
	f := newFixture(t)
	f.store.addServer(acme, "one", "git")
	f.store.grant(acme, "one", "read")
	f.store.between = func() { f.store.write(acme, func() { f.store.servers, f.store.policies = nil, nil }) }
	if _, err := f.Server(t.Context(), Asker{Organization: acme}, "git"); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("served: %v", err)
	}
}

// TestWrittenWhileRead checks that a server that was read during a write is renewed with the next call: its epoch is the
// one before it was read.
func TestWrittenWhileRead(t *testing.T) {
	f := newFixture(t)
	f.store.addServer(acme, "one", "git")
	f.store.grant(acme, "one", "read")
	who := Asker{Organization: acme, History: f.store.epochs.Of(acme), Recent: new(Recent)}
	f.store.afterwards = func() { f.store.write(acme, func() { f.store.policies = nil }) }
	found := f.find(who, "git")
	if !f.allows(found, "read") || found.At() == f.store.epochs.Current(acme) {
		t.Fatal("it counts as read after the write")
	}
	renewed, err := f.Renew(t.Context(), who, found)
	if err != nil || f.allows(renewed, "read") {
		t.Errorf("%v: allowed by what was", err)
	}
	for _, later := range []Asker{who, {Organization: acme}} {
		if again := f.find(later, "git"); f.allows(again, "read") {
			t.Error("a later call is allowed by what was")
		}
	}
}

func TestRecent(t *testing.T) {
	f := newFixture(t)
	f.store.addServer(acme, "one", "git")
	f.store.addServer(acme, "two", "mail")
	f.store.grant(acme, "one", "read")
	who := Asker{Organization: acme, History: f.store.epochs.Of(acme), Recent: new(Recent)}
	first := f.find(who, "git")
	before := f.store.looks()
	if again := f.find(who, "git"); again != first || f.store.looks() != before {
		t.Error("the last call's server is read again")
	}
	if other := f.find(who, "mail"); other.Server().ID != "two" || f.allows(other, "read") {
		t.Errorf("another name leads to %s", other.Server().ID)
	}
	f.find(who, "git")
	f.store.write(acme, func() { f.store.policies = nil })
	if now := f.find(who, "git"); f.allows(now, "read") {
		t.Error("the last call's rules outlive a write")
	}
	f.store.write(acme, func() { f.store.servers = nil })
	if _, err := f.Server(t.Context(), who, "git"); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("the last call's server outlives its deletion: %v", err)
	}
}

func TestRenew(t *testing.T) {
	f := newFixture(t)
	f.store.addServer(acme, "one", "git")
	who := Asker{Organization: acme}
	found := f.find(who, "git")
	before := f.store.looks()
	if now, err := f.Renew(t.Context(), who, found); err != nil || now != found || f.store.looks() != before {
		t.Errorf("nothing was written: %v, %d reads", err, f.store.looks()-before)
	}
	f.store.grant(acme, "one", "read")
	now, err := f.Renew(t.Context(), who, found)
	if err != nil || !f.allows(now, "read") || f.allows(found, "read") {
		t.Errorf("%v: the new policy grants %v", err, f.allows(now, "read"))
	}
	f.store.fails = storage.ErrUnavailable
	f.store.epochs.Bump("")
	if same, err := f.Renew(t.Context(), who, now); !errors.Is(err, storage.ErrUnavailable) || same != now {
		t.Errorf("the store is away: %v", err)
	}
	f.store.fails = nil
	f.store.write(acme, func() { f.store.servers = nil })
	if same, err := f.Renew(t.Context(), who, now); !errors.Is(err, storage.ErrNotFound) || same != now {
		t.Errorf("it is gone: %v", err)
	}
	f.store.addServer(acme, "two", "git") // the name of the former server
	if same, err := f.Renew(t.Context(), who, now); !errors.Is(err, storage.ErrNotFound) || same != now {
		t.Errorf("its name belongs to another one: %v", err)
	}
}

func TestRulesNow(t *testing.T) {
	f := newFixture(t)
	f.store.addServer(acme, "one", "git")
	rules := f.RulesNow(Asker{Organization: acme}, f.find(Asker{Organization: acme}, "git"))
	grants := func() bool {
		t.Helper()
		set, err := rules(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return f.grants(set, "read")
	}
	if grants() {
		t.Error("granted without a policy")
	}
	f.store.grant(acme, "one", "read")
	if !grants() {
		t.Error("the rules are those of before")
	}
	f.store.grant(acme, "one", "write") // contradicts the other
	if set, err := rules(t.Context()); err == nil {
		t.Errorf("policies that contradict each other: %v", set)
	}
	f.store.write(acme, func() { f.store.servers = nil })
	if _, err := rules(t.Context()); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("its server is gone: %v", err)
	}
	if set, err := f.RulesNow(Asker{Organization: acme}, Known{})(t.Context()); err == nil {
		t.Errorf("no server: %v", set)
	}
}

// TestClosedMemory checks that nothing is allowed any more when the store is closed.
func TestClosedMemory(t *testing.T) {
	f := newFixture(t)
	f.store.addServer(acme, "one", "git")
	f.options.Memory.Close()
	if _, err := f.Server(t.Context(), Asker{Organization: acme}, "git"); err == nil {
		t.Error("found")
	}
	if _, err := f.Compile(context.Background(), &storage.Server{ID: "one"}, nil); err == nil {
		t.Error("compiled")
	}
}
