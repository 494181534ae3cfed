package evaluator

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/durward-gateway/durward/internal/cache"
	"github.com/durward-gateway/durward/internal/policy/engine"
	"github.com/durward-gateway/durward/storage"
)

// These are two organizations.
const (
	acme  = "acme"
	rival = "rival"
)

// memoryStore holds servers and policies, and tells of its writes.
type memoryStore struct {
	mu       sync.Mutex
	epochs   *cache.Epochs
	servers  []storage.Server
	policies []storage.Policy
	// fails is the error of every read; nil: none.
	fails error
	reads int // of servers
	// between runs once, after a server was read and before its policies are; afterwards runs once, after both.
	between, afterwards func()
}

func (s *memoryStore) ServerBySlug(_ context.Context, organization, slug string) (storage.Server, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.reads++; s.fails != nil {
		return storage.Server{}, s.fails
	}
	for _, server := range s.servers {
		if server.OrganizationID == organization && server.Slug == slug {
			return server, nil
		}
	}
	return storage.Server{}, storage.ErrNotFound
}

func (s *memoryStore) ServerPolicies(_ context.Context, organization, serverID string) (found []storage.Policy, err error) {
	s.once(&s.between)
	defer s.once(&s.afterwards)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.policies {
		if p.OrganizationID == organization && p.ServerID == serverID {
			p.Rules = slices.Clone(p.Rules)
			found = append(found, p)
		}
	}
	return found, s.fails
}

// once runs a function that is set, and clears it.
func (s *memoryStore) once(set *func()) {
	s.mu.Lock()
	run := *set
	*set = nil
	s.mu.Unlock()
	if run != nil {
		run()
	}
}

// write changes the store, and starts a new epoch of an organization.
func (s *memoryStore) write(organization string, change func()) {
	s.mu.Lock()
	change()
	s.mu.Unlock()
	s.epochs.Bump(organization)
}

// looks returns the number of servers that were read.
func (s *memoryStore) looks() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reads
}

// addServer stores a server with an id and a name.
func (s *memoryStore) addServer(organization, id, slug string) {
	s.write(organization, func() {
		s.servers = append(s.servers, storage.Server{
			ID: id, OrganizationID: organization, Slug: slug, Entry: storage.DirectoryEntry{URL: "https://" + id + ".example/mcp"},
		})
	})
}

// grant stores a policy of a server that lets everybody call tools.
func (s *memoryStore) grant(organization, server string, tools ...string) {
	s.write(organization, func() { s.policies = append(s.policies, grant(organization, server, tools...)) })
}

func grant(organization, server string, tools ...string) storage.Policy {
	rule := storage.Rule{Name: "r", Active: true, Authorized: true, RolesGroups: []string{"*"}}
	for _, tool := range tools {
		rule.Actions = append(rule.Actions, "tools/call:"+tool)
	}
	return storage.Policy{
		ID: "policy-of-" + server, OrganizationID: organization, ServerID: server, Name: "p", Description: "for people", Revision: 1,
		Status: storage.PolicyActive, Rules: []storage.Rule{rule},
	}
}

// fixture holds an evaluator over such a store.
type fixture struct {
	*Evaluator
	t     *testing.T
	store *memoryStore
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	epochs := new(cache.Epochs)
	memory, err := NewMemory(epochs)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(memory.Close)
	store := &memoryStore{epochs: epochs}
	return &fixture{New(Options{Memory: memory, Store: store}), t, store}
}

// find looks up a server that is there.
func (f *fixture) find(who Asker, slug string) Known {
	f.t.Helper()
	found, err := f.Server(f.t.Context(), who, slug)
	if err != nil {
		f.t.Fatal(err)
	}
	return found
}

// settle looks up a server until the cache, which stores in the background, has it.
func (f *fixture) settle(who Asker, slug string) Known {
	f.t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for {
		before := f.store.looks()
		if found := f.find(who, slug); f.store.looks() == before {
			return found
		}
		if time.Now().After(deadline) {
			f.t.Fatal("the server is never kept")
		}
	}
}

// allows reports whether the rules for calls to a server allow a tool. Rules that cannot be used allow nothing.
func (f *fixture) allows(k Known, tool string) bool {
	f.t.Helper()
	set, err := k.Rules()
	return err == nil && f.grants(set, tool)
}

func (f *fixture) grants(set *engine.Set, tool string) bool {
	f.t.Helper()
	who := engine.NewPrincipal("alice", nil, nil, "", nil)
	return set.Decide(f.t.Context(), engine.Call{Principal: who, Kind: engine.ToolsCall, Name: tool}).Effect == engine.Allow
}
