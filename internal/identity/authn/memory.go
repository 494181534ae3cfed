package authn

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/durward-gateway/durward/internal/cache"
	"github.com/durward-gateway/durward/internal/identity/bruteforce"
	"github.com/durward-gateway/durward/storage"
)

// Store is the store's part with the owners of credentials.
type Store interface {
	ResolveOrganization(ctx context.Context, claim storage.OrganizationClaim, now time.Time) (storage.Organization, error)
	ResolveUser(ctx context.Context, claim storage.UserClaim, now time.Time) (storage.User, error)
	User(ctx context.Context, organization, id string) (storage.User, error)
	Login(ctx context.Context, organization, id string, now time.Time) (storage.Login, error)
	AgentCredential(ctx context.Context, organization, id string) (storage.AgentCredentialHolder, error)
	AgentByClient(ctx context.Context, organization, issuer, externalID string) (storage.Agent, error)
	RegisterAgent(ctx context.Context, a storage.Agent, limit int) (storage.Agent, error)
	APIKeyByHMAC(ctx context.Context, hmac []byte) (storage.APIKeyHolder, error)
	ProvisionedStanding(ctx context.Context, organization, userID string, match storage.ProvisionedMatch) (storage.ProvisionedStanding, error)
	NoteAPIKey(ctx context.Context, organization, id string, at time.Time) error
}

// These are the numbers of facts that are kept in memory. A verified token takes about 1 KiB, a key too, and a person
// 2.5 KiB.
const (
	keptTokens = 50_000
	keptPeople = 50_000
	keptAgents = 50_000
	keptKeys   = 50_000
	// peopleKnownFor is the time after which the store is asked about a person again: the store notes when they were last
	// seen.
	peopleKnownFor = time.Minute
	// keysKnownFor is the time after which the store is asked about a key again, because the tokens of its user may say
	// something new by then.
	keysKnownFor = time.Minute
	// keyUsesEvery is the time between two notes of a key's use, and noteTimeout bounds one.
	keyUsesEvery = 5 * time.Minute
	noteTimeout  = 5 * time.Second
)

// MemoryOptions holds the dependencies of a Memory. All but NewNotes are required.
type MemoryOptions struct {
	// Epochs is bumped by the store's OnChange.
	Epochs *cache.Epochs
	Store  Store
	// Now is this machine's clock.
	Now func() time.Time
	// NewNotes makes the notes that the package's user keeps about each bearer, see [Bearer.Notes]; nil: there are none.
	NewNotes func() any
}

// Memory holds the facts about bearers that were proven, and counts wrong credentials. It outlives configurations. It
// holds neither raw tokens and keys nor anything from which they could be found.
type Memory struct {
	epochs   *cache.Epochs
	store    Store
	now      func() time.Time
	newNotes func() any

	// tokens holds verified tokens.
	tokens *cache.Cache[*verified]
	// people holds the people that tokens named: the bearer of a new token is mostly known already.
	people *cache.Cache[*person]
	// agents holds the organizations' agents by issuer and client; standings holds the store's facts about tokens'
	// bearers.
	agents    *cache.Cache[*storage.Agent]
	standings *cache.Cache[standing]
	// provisioned holds what is provisioned about users.
	provisioned *cache.Cache[*storage.ProvisionedStanding]
	// homes holds the home of each key by the key's HMAC, for all organizations. The entries never change.
	homes *cache.Cache[*keyHome]
	// states holds the present state of keys. An entry ends with the epoch of its organization: once a revocation is
	// committed, no request is served by an earlier state.
	states *cache.Cache[*knownKey]
	// wrong counts wrong credentials.
	wrong *bruteforce.Guesses
	// noting guards what is known about notes of keys' uses: when each was noted last, by the key's id, and that none begins
	// any more. notes are those that are being written.
	noting sync.Mutex
	noted  map[string]time.Time
	closed bool
	notes  sync.WaitGroup
	// closers close the caches.
	closers []func()
}

// NewMemory makes a memory.
func NewMemory(o MemoryOptions) (_ *Memory, err error) {
	m := &Memory{epochs: o.Epochs, store: o.Store, now: o.Now, newNotes: o.NewNotes, wrong: bruteforce.New(o.Now), noted: make(map[string]time.Time)}
	if m.newNotes == nil {
		m.newNotes = func() any { return nil }
	}
	defer func() {
		if err != nil {
			m.Close()
		}
	}()
	m.tokens, err = newCache(m, "tokens", cache.Options[*verified]{
		Entries: keptTokens, Expires: func(v *verified) time.Time { return v.vouched.ExpiresAt },
	})
	if err != nil {
		return nil, err
	}
	if m.people, err = newCache(m, "people", cache.Options[*person]{Entries: keptPeople, TTL: peopleKnownFor}); err != nil {
		return nil, err
	}
	if m.agents, err = newCache(m, "agents", cache.Options[*storage.Agent]{Entries: keptAgents}); err != nil {
		return nil, err
	}
	if m.standings, err = newCache(m, "standings", cache.Options[standing]{Entries: keptTokens}); err != nil {
		return nil, err
	}
	if m.provisioned, err = newCache(m, "provisioned users", cache.Options[*storage.ProvisionedStanding]{Entries: keptTokens}); err != nil {
		return nil, err
	}
	if m.homes, err = newCache(m, "API keys", cache.Options[*keyHome]{Entries: keptKeys}); err != nil {
		return nil, err
	}
	m.states, err = newCache(m, "states of API keys", cache.Options[*knownKey]{Entries: keptKeys, TTL: keysKnownFor})
	return m, err
}

func newCache[V any](m *Memory, what string, options cache.Options[V]) (*cache.Cache[V], error) {
	options.Now = m.now
	made, err := cache.New(m.epochs, options)
	if err != nil {
		return nil, fmt.Errorf("making the cache of %s: %w", what, err)
	}
	m.closers = append(m.closers, made.Close)
	return made, nil
}

// Close frees the memory. Authenticators that use it prove nobody afterwards.
func (m *Memory) Close() {
	m.noting.Lock()
	m.closed = true
	m.noting.Unlock()
	m.notes.Wait()
	for _, closeCache := range m.closers {
		closeCache()
	}
}
