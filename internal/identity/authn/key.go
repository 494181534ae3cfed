package authn

import (
	"context"
	"crypto/sha256"
	"errors"
	"sync/atomic"
	"time"

	"github.com/durward-gateway/durward/internal/cache"
	"github.com/durward-gateway/durward/internal/identity/apikey"
	"github.com/durward-gateway/durward/internal/identity/bruteforce"
	"github.com/durward-gateway/durward/internal/identity/token"
	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/storage"
)

// keyHome names the organization and the record of a key.
type keyHome struct {
	state   cache.Key
	history cache.History // of the organization
	load    func(context.Context) (*knownKey, error)
	// from is a mark of the address from which the key was last used successfully: attackers who guess from that address
	// do not lock it out.
	from atomic.Uint64
}

var (
	errUnknownKey   = &token.Error{Kind: token.ErrInvalid, Reason: "the API key is not known"}
	errNoAgent      = &token.Error{Kind: token.ErrInvalid, Reason: "the API key's agent is gone", Over: true}
	errMalformedKey = &token.Error{Kind: token.ErrInvalid, Reason: "the API key does not have the form of one"}
)

// Key finds the owner of an API key that came from a peer (http.Request.RemoteAddr). The key's scopes are not checked.
// Errors are token.ErrInvalid, *TooManyFailures, and the store's.
func (a *Authenticator) Key(ctx context.Context, raw, remote string) (Bearer, error) {
	m, from := a.memory, bruteforce.Address(remote)
	if apikey.Check(raw) != nil {
		if err := m.wrongCredential(bruteforce.Attempt{From: from, Credential: sha256.Sum256([]byte(raw))}); err != nil {
			return Bearer{}, err
		}
		return Bearer{}, errMalformedKey
	}
	key := seal.NewSecret(raw)
	digests := a.digester.Lookup(key)
	attempt := bruteforce.Attempt{From: from, Prefix: apikey.Prefix(key), Credential: [sha256.Size]byte(digests[0])}
	mark := m.wrong.Mark(from)
	home, err := m.homes.GetAlone(ctx, cache.NewKey("", "api key", string(digests[0])), func(ctx context.Context) (*keyHome, error) {
		if err := m.mayTry(attempt); err != nil {
			return nil, err
		}
		return m.findKey(ctx, digests)
	})
	if errors.Is(err, storage.ErrNotFound) {
		if err := m.wrongCredential(attempt); err != nil {
			return Bearer{}, err
		}
		return Bearer{}, errUnknownKey
	}
	if err == nil && home.from.Load() != mark {
		err = m.mayTry(attempt)
	}
	if err != nil {
		return Bearer{}, err
	}
	bearer, err := a.ownerOf(ctx, home, mark)
	if errors.Is(err, errUnknownKey) {
		// The key got a new secret. This one is a guess from now on, and each guess costs a look-up.
		home.from.Store(0)
		if err := m.wrongCredential(attempt); err != nil {
			return Bearer{}, err
		}
	}
	return bearer, err
}

// ownerOf returns the owner of a key, when the key is valid now.
func (a *Authenticator) ownerOf(ctx context.Context, home *keyHome, mark uint64) (Bearer, error) {
	// The epoch is read first: the state read after it is at least as new.
	epoch := home.history.Current()
	known, err := a.keyState(ctx, home)
	if err != nil {
		return Bearer{}, err
	}
	if home.from.Load() != mark {
		home.from.Store(mark)
	}
	return Bearer{key: known, agent: known.agent, provenAt: epoch}, nil
}

// keyState returns the present state of a key. Its error is token.ErrInvalid when the key is no longer valid.
func (a *Authenticator) keyState(ctx context.Context, home *keyHome) (*knownKey, error) {
	known, err := a.memory.states.Get(ctx, home.state, home.load)
	switch {
	case errors.Is(err, storage.ErrNotFound):
		return nil, errUnknownKey
	case err != nil:
		return nil, err
	}
	if err := known.good(a.memory.now()); err != nil {
		return nil, &RefusedError{Err: err, Caller: &known.caller}
	}
	if known.caller.Machine || known.caller.UserID == "" {
		return known, nil
	}
	p, err := a.memory.provisionedOf(ctx, known.key.OrganizationID, known.key.UserID, a.provisioning.Match)
	if err != nil {
		return nil, err
	}
	if err := a.provisioning.refusal(p); err != nil {
		return nil, &RefusedError{Err: err, Caller: &known.caller}
	}
	return a.keyAs(known, p), nil
}

// findKey finds the home of a key by its stored digest. A key that does not exist costs the same look-ups whatever it
// looks like (attack K01).
func (m *Memory) findKey(ctx context.Context, digests [][]byte) (*keyHome, error) {
	for _, digest := range digests {
		holder, err := m.store.APIKeyByHMAC(ctx, digest)
		if errors.Is(err, storage.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		organization := holder.OrganizationID
		home := &keyHome{state: cache.NewKey(organization, "api key", string(digest)), history: m.epochs.Of(organization)}
		home.load = func(ctx context.Context) (*knownKey, error) { return m.loadKey(ctx, home, digest) }
		return home, nil
	}
	return nil, storage.ErrNotFound
}

func (m *Memory) loadKey(ctx context.Context, home *keyHome, digest []byte) (*knownKey, error) {
	holder, err := m.store.APIKeyByHMAC(ctx, digest)
	if err != nil {
		return nil, err
	}
	if holder.OrganizationID != home.state.Organization() {
		return nil, storage.ErrNotFound
	}
	known := newKnownKey(holder, m.now())
	known.home, known.notes = home, m.newNotes()
	m.noteUse(ctx, known)
	return known, nil
}

// noteUse notes the use of a key in the background. It is called where the store is asked about the key anyway, once a minute
// at most: requests that know the key have nothing to do with it.
func (m *Memory) noteUse(ctx context.Context, known *knownKey) {
	now := m.now()
	if known.good(now) != nil || now.Sub(known.key.UsedAt) < keyUsesEvery {
		return
	}
	m.noting.Lock()
	defer m.noting.Unlock()
	if m.closed || now.Sub(m.noted[known.key.ID]) < keyUsesEvery {
		return
	}
	if len(m.noted) >= keptKeys {
		clear(m.noted) // the store has the times
	}
	m.noted[known.key.ID] = now
	m.notes.Go(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), noteTimeout) // the request does not wait for it
		defer cancel()
		// A note that is lost is made up for by the next use.
		_ = m.store.NoteAPIKey(ctx, known.key.OrganizationID, known.key.ID, now)
	})
}

// good returns an error that is token.ErrInvalid when the key is not valid at a time.
func (k *knownKey) good(now time.Time) error {
	reason := "the API key has expired"
	switch {
	case k.key.AgentID != "" && k.agent == nil: // without it the key would be governed by other policies
		return errNoAgent
	case k.userRevoked:
		reason = "the API key's user was revoked"
	case k.key.Valid(now):
		return nil
	case !k.key.RevokedAt.IsZero():
		reason = "the API key was revoked"
	case k.key.Disabled:
		reason = "the API key is disabled"
	}
	return &token.Error{Kind: token.ErrInvalid, Reason: reason, Over: true}
}
