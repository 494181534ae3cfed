package app

import (
	"context"
	"crypto/sha256"
	"errors"
	"sync/atomic"
	"time"

	"github.com/durward-gateway/durward/internal/audit/record"
	"github.com/durward-gateway/durward/internal/cache"
	"github.com/durward-gateway/durward/internal/identity/apikey"
	"github.com/durward-gateway/durward/internal/identity/bruteforce"
	"github.com/durward-gateway/durward/internal/identity/token"
	"github.com/durward-gateway/durward/internal/policy/engine"
	"github.com/durward-gateway/durward/internal/ratelimit/admission"
	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/storage"
)

// APIKey describes the key with which a caller proved their identity. It does not contain the raw key.
type APIKey struct {
	ID     string
	Name   string
	Scopes apikey.Scopes
}

// apiKeys caches the facts about API keys. It holds neither raw keys nor anything from which they could be found.
type apiKeys struct {
	// homes caches the home of each key by the key's HMAC, for all organizations. The entries never change.
	homes *cache.Cache[*keyHome]
	// states caches the present state of keys. An entry ends with the epoch of its organization: once a revocation is
	// committed, no request is served by an earlier state.
	states *cache.Cache[*knownKey]
	// wrong counts wrong credentials.
	wrong *bruteforce.Guesses
}

const (
	// keptKeys is the number of keys that are kept in memory, each about 1 KiB.
	keptKeys = 50_000
	// keysKnownFor is the time after which the store is asked about a key again, because the tokens of its user may say
	// something new by then.
	keysKnownFor = time.Minute
)

func (r *resources) makeAPIKeys() (err error) {
	r.keys.wrong = bruteforce.New(time.Now)
	if r.keys.homes, err = newCache(r, "API keys", cache.Options[*keyHome]{Entries: keptKeys}); err != nil {
		return err
	}
	r.keys.states, err = newCache(r, "states of API keys", cache.Options[*knownKey]{Entries: keptKeys, TTL: keysKnownFor})
	return err
}

// keyHome names the organization and the record of a key.
type keyHome struct {
	state cache.Key
	load  func(context.Context) (*knownKey, error)
	// from is a mark of the address from which the key was last used successfully: attackers who guess from that address
	// do not lock it out.
	from atomic.Uint64
}

// knownKey holds a key as the store has it. Requests share it: it is never changed.
type knownKey struct {
	key storage.APIKey
	// userRevoked reports whether the key's user was revoked after the key was made.
	userRevoked bool
	agent       *storage.Agent // that it was made for; nil for none
	caller      Caller
	unknown     engine.Unknown
	principal   *engine.Principal
	models      admission.RecentModels
}

var (
	errUnknownKey   = &token.Error{Kind: token.ErrInvalid, Reason: "the API key is not known"}
	errNoAgent      = &token.Error{Kind: token.ErrInvalid, Reason: "the API key's agent is gone", Over: true}
	errMalformedKey = &token.Error{Kind: token.ErrInvalid, Reason: "the API key does not have the form of one"}
)

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

// TooManyFailures refuses a credential without checking it, because too many were wrong.
type TooManyFailures struct{ Wait time.Duration }

func (*TooManyFailures) Error() string { return "too many wrong credentials" }

// AuthenticateKey proves the call's caller with an API key that came from a peer (http.Request.RemoteAddr). The key's
// scopes are not checked. Errors are token.ErrInvalid, *TooManyFailures, and the store's.
func (c *Call) AuthenticateKey(ctx context.Context, raw, remote string) error {
	from := bruteforce.Address(remote)
	if apikey.Check(raw) != nil {
		if err := c.Core.wrongCredential(bruteforce.Attempt{From: from, Credential: sha256.Sum256([]byte(raw))}); err != nil {
			return err
		}
		return errMalformedKey
	}
	r := c.Core.resources
	key := seal.NewSecret(raw)
	digests := c.Core.digester.Lookup(key)
	attempt := bruteforce.Attempt{From: from, Prefix: apikey.Prefix(key), Credential: [sha256.Size]byte(digests[0])}
	mark := r.keys.wrong.Mark(from)
	home, err := r.keys.homes.GetAlone(ctx, cache.NewKey("", "api key", string(digests[0])), func(ctx context.Context) (*keyHome, error) {
		if err := mayTry(r.keys.wrong, attempt); err != nil {
			return nil, err
		}
		return r.findKey(ctx, digests)
	})
	if errors.Is(err, storage.ErrNotFound) {
		if err := c.Core.wrongCredential(attempt); err != nil {
			return err
		}
		return errUnknownKey
	}
	if err == nil && home.from.Load() != mark {
		err = mayTry(r.keys.wrong, attempt)
	}
	if err != nil {
		return err
	}
	return c.enterWith(ctx, home, mark)
}

// enterWith sets the caller of a call to the key's owner, when the key is valid now.
func (c *Call) enterWith(ctx context.Context, home *keyHome, mark uint64) error {
	epoch := c.Core.resources.epochs.Current(home.state.Organization())
	known, err := c.Core.keyState(ctx, home)
	if err != nil {
		return err
	}
	if home.from.Load() != mark {
		home.from.Store(mark)
	}
	c.Caller, c.Agent, c.key, c.home, c.stood = &known.caller, known.agent, known, home, epoch
	return nil
}

// keyState returns the present state of a key. Its error is token.ErrInvalid when the key is no longer valid.
func (c *Core) keyState(ctx context.Context, home *keyHome) (*knownKey, error) {
	known, err := c.resources.keys.states.Get(ctx, home.state, home.load)
	switch {
	case errors.Is(err, storage.ErrNotFound):
		return nil, errUnknownKey
	case err != nil:
		return nil, err
	}
	if err := known.good(time.Now()); err != nil {
		return nil, &record.BearerError{Err: err, Bearer: known.caller.Bearer()}
	}
	return known, nil
}

func mayTry(wrong *bruteforce.Guesses, attempt bruteforce.Attempt) error {
	if wait := wrong.Wait(attempt); wait > 0 {
		return &TooManyFailures{wait}
	}
	return nil
}

func (c *Core) wrongCredential(attempt bruteforce.Attempt) error {
	if wait := c.resources.keys.wrong.Failed(attempt); wait > 0 {
		return &TooManyFailures{wait}
	}
	return nil
}

// WrongToken counts a refused token, and returns *TooManyFailures when the peer had too many. Valid tokens are never
// refused for it: unlike a look-up, checking a signature tells the guesser nothing.
func (c *Core) WrongToken(raw, remote string, refusal error) error {
	if token.IsOver(refusal) {
		return nil // clients have to learn of it, and renew it
	}
	return c.wrongCredential(bruteforce.Attempt{From: bruteforce.Address(remote), Credential: sha256.Sum256([]byte(raw))})
}

// findKey finds the home of a key by its stored digest. A key that does not exist costs the same look-ups whatever it
// looks like (attack K01).
func (r *resources) findKey(ctx context.Context, digests [][]byte) (*keyHome, error) {
	for _, digest := range digests {
		holder, err := r.store.APIKeyByHMAC(ctx, digest)
		if errors.Is(err, storage.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		organization := holder.OrganizationID
		return &keyHome{
			state: cache.NewKey(organization, "api key", string(digest)),
			load:  func(ctx context.Context) (*knownKey, error) { return r.loadKey(ctx, organization, digest) },
		}, nil
	}
	return nil, storage.ErrNotFound
}

func (r *resources) loadKey(ctx context.Context, organization string, digest []byte) (*knownKey, error) {
	holder, err := r.store.APIKeyByHMAC(ctx, digest)
	if err != nil {
		return nil, err
	}
	if holder.OrganizationID != organization {
		return nil, storage.ErrNotFound
	}
	return newKnownKey(holder, time.Now()), nil
}
