package evaluator

import (
	"testing"
	"time"

	"github.com/durward-gateway/durward/storage"
)

// TestCompiledOnce checks that policies are compiled once until one of them changes, whatever else is written. The cache
// stores in the background.
func TestCompiledOnce(t *testing.T) {
	f := newFixture(t)
	server := &storage.Server{ID: "one", OrganizationID: acme, Slug: "git"}
	policies := []storage.Policy{grant(acme, "one", "read")}
	deadline := time.Now().Add(30 * time.Second)
	for {
		first, err := f.Compile(t.Context(), server, policies)
		if err != nil {
			t.Fatal(err)
		}
		f.store.epochs.Bump(acme)
		again, err := f.Compile(t.Context(), server, policies)
		if err != nil {
			t.Fatal(err)
		}
		if first == again {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("compiled for each write")
		}
	}
	known, err := f.Compile(t.Context(), server, policies)
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*storage.Server, *storage.Policy){
		"revision":     func(_ *storage.Server, p *storage.Policy) { p.Revision++ },
		"status":       func(_ *storage.Server, p *storage.Policy) { p.Status = storage.PolicyArchived },
		"id":           func(_ *storage.Server, p *storage.Policy) { p.ID = "other" },
		"server":       func(s *storage.Server, p *storage.Policy) { s.ID, p.ServerID = "two", "two" },
		"slug":         func(s *storage.Server, _ *storage.Policy) { s.Slug = "mail" },
		"organization": func(s *storage.Server, p *storage.Policy) { s.OrganizationID, p.OrganizationID = rival, rival },
	} {
		t.Run(name, func(t *testing.T) {
			s, p := *server, policies[0]
			change(&s, &p)
			set, err := f.Compile(t.Context(), &s, []storage.Policy{p})
			if err != nil || set == known {
				t.Errorf("the set of before: %v", err)
			}
		})
	}
	if set, err := f.Compile(t.Context(), server, append(policies, policies[0])); err == nil {
		t.Errorf("policies that contradict each other: %v", set)
	}
}

// TestOnlyWhatDecidesIsKept checks that texts for people take no memory.
func TestOnlyWhatDecidesIsKept(t *testing.T) {
	p := grant(acme, "one", "read")
	p.SupportContact, p.Tags, p.Rules[0].Description = "help@example.test", []string{"a"}, "why"
	compactDeciding(&p)
	if p.Description != "" || p.SupportContact != "" || p.Tags != nil || p.Rules[0].Description != "" {
		t.Errorf("%+v", p)
	}
	if p.Name != "p" || p.Rules[0].Actions[0] != "tools/call:read" {
		t.Errorf("%+v", p)
	}
}
