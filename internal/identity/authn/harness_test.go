package authn

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/durward-gateway/durward/internal/cache"
	"github.com/durward-gateway/durward/internal/identity/authn/authntest"
	"github.com/durward-gateway/durward/storage"
	"github.com/durward-gateway/durward/storage/sqlite/sqlitetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// watchedStore counts look-ups, and fails or answers otherwise where a test wants it.
type watchedStore struct {
	storage.Store
	resolved, users, agents, keys, noted atomic.Int64
	revokedAt                            time.Time // of every user; zero: the store's
	agentsFail, keysFail                 error
	keysOf                               string // the organization of every key; "": the store's
	full                                 bool   // there is no room for another agent
	registered                           int
	resolving                            func() // is called before a user is resolved; nil: nothing
}

func (s *watchedStore) ResolveUser(ctx context.Context, c storage.UserClaim, now time.Time) (storage.User, error) {
	if s.resolved.Add(1); s.resolving != nil {
		s.resolving()
	}
	return s.Store.ResolveUser(ctx, c, now)
}

func (s *watchedStore) User(ctx context.Context, organization, id string) (storage.User, error) {
	s.users.Add(1)
	u, err := s.Store.User(ctx, organization, id)
	if !s.revokedAt.IsZero() {
		u.RevokedAt = s.revokedAt
	}
	return u, err
}

func (s *watchedStore) AgentByClient(ctx context.Context, organization, issuer, externalID string) (storage.Agent, error) {
	if s.agents.Add(1); s.agentsFail != nil {
		return storage.Agent{}, s.agentsFail
	}
	return s.Store.AgentByClient(ctx, organization, issuer, externalID)
}

func (s *watchedStore) RegisterAgent(ctx context.Context, a storage.Agent, limit int) (storage.Agent, error) {
	s.registered++
	switch {
	case limit != 1000:
		return storage.Agent{}, errors.New("no limit")
	case s.full:
		return storage.Agent{}, storage.ErrNotFound
	}
	return s.Store.RegisterAgent(ctx, a, limit)
}

func (s *watchedStore) APIKeyByHMAC(ctx context.Context, hmac []byte) (storage.APIKeyHolder, error) {
	if s.keys.Add(1); s.keysFail != nil {
		return storage.APIKeyHolder{}, s.keysFail
	}
	if len(hmac) != storage.APIKeyHMACSize {
		panic("a look-up by less than the whole HMAC")
	}
	holder, err := s.Store.APIKeyByHMAC(ctx, hmac)
	if s.keysOf != "" {
		holder.OrganizationID = s.keysOf
	}
	return holder, err
}

func (s *watchedStore) NoteAPIKey(ctx context.Context, organization, id string, at time.Time) error {
	s.noted.Add(1)
	return s.Store.NoteAPIKey(ctx, organization, id, at)
}

// notes stands for what the package's user notes about a bearer. It has a size, so that two of them are told apart.
type notes struct{ _ int }

// door is an authenticator with a store, an issuer, and a clock that can be turned.
type door struct {
	*Authenticator
	t      testing.TB
	store  *watchedStore
	epochs *cache.Epochs
	issuer *authntest.Issuer
	turned atomic.Int64 // by how much the clock is ahead
}

// newDoor makes a door; change may be nil.
func newDoor(t testing.TB, change func(*Options)) *door {
	t.Helper()
	d := &door{t: t, store: &watchedStore{Store: sqlitetest.Open(t)}, epochs: new(cache.Epochs), issuer: authntest.NewIssuer(t, time.Now())}
	t.Cleanup(d.store.OnChange(d.epochs.Bump))
	memory, err := NewMemory(MemoryOptions{Epochs: d.epochs, Store: d.store, Now: d.now, NewNotes: func() any { return new(notes) }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(memory.Close)
	o := Options{Memory: memory, Issuers: map[string]Issuer{authntest.IssuerID: d.issuer}, RulesID: "rules"}
	if change != nil {
		change(&o)
	}
	d.Authenticator = New(o)
	return d
}

func (d *door) now() time.Time { return time.Now().Add(time.Duration(d.turned.Load())) }

// other returns an authenticator of another configuration with the same memory.
func (d *door) other(change func(*Options)) *Authenticator {
	o := Options{Memory: d.memory, Issuers: d.issuers, RulesID: d.rulesID, Digester: d.digester, RegisterAgents: d.registerAgents, RequireAgents: d.requireAgents, Provisioning: d.provisioning}
	change(&o)
	return New(o)
}

// bearer lets a token in.
func (d *door) bearer(raw string) *Bearer {
	d.t.Helper()
	b, err := d.Token(d.t.Context(), raw, "")
	if err != nil {
		d.t.Fatal(err)
	}
	return &b
}

// refused returns the error for a token that is not let in, and checks that it proves nobody.
func (d *door) refused(raw, resource string) error {
	d.t.Helper()
	b, err := d.Token(d.t.Context(), raw, resource)
	if err == nil || b != (Bearer{}) {
		d.t.Errorf("%v: %+v", err, b)
	}
	return err
}

// settles asks until a look-up that is counted is not made any more: caches store in the background.
func (d *door) settles(looks *atomic.Int64, ask func()) {
	d.t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for {
		before := looks.Load()
		if ask(); looks.Load() == before {
			return
		}
		if time.Now().After(deadline) {
			d.t.Fatal("it is never kept")
		}
	}
}

// settled lets a token in until it and its bearer's standing are kept.
func (d *door) settled(raw string) (b *Bearer) {
	d.t.Helper()
	d.settles(&d.issuer.Verdicts, func() { b = d.bearer(raw) })
	d.settles(&d.store.users, func() { b = d.bearer(raw) })
	return b
}
