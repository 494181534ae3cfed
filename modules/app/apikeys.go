package app

import (
	"context"
	"crypto/sha256"
	"errors"
	"sync/atomic"
	"time"

	"github.com/durward-gateway/durward/internal/apikey"
	"github.com/durward-gateway/durward/internal/cache"
	"github.com/durward-gateway/durward/internal/guesses"
	"github.com/durward-gateway/durward/internal/rules"
	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/internal/token"
	"github.com/durward-gateway/durward/storage"
)

// APIKey is the key that a caller proved themself with. The raw key is nowhere in it.
type APIKey struct {
	ID     string
	Name   string
	Scopes apikey.Scopes
}

// apiKeys is what is known of API keys: neither the raw ones nor anything that they could be found from.
type apiKeys struct {
	// homes are keys by their HMAC, of whatever organization. What they hold never changes.
	homes *cache.Cache[*keyHome]
	// states are how keys are at the time. They end with the epochs of their organizations: once a revocation is committed,
	// nobody is served what was true before it.
	states *cache.Cache[*knownKey]
	// wrong counts credentials that were none.
	wrong *guesses.Guesses
}

const (
	// keptKeys is how many keys are kept in memory, each about 1 KiB.
	keptKeys = 50_000
	// keysKnownFor is how long the store is not asked about a key again, for what its user's tokens say by then.
	keysKnownFor = time.Minute
)

func (r *resources) makeAPIKeys() (err error) {
	r.keys.wrong = guesses.New(time.Now)
	if r.keys.homes, err = newCache(r, "API keys", cache.Options[*keyHome]{Entries: keptKeys}); err != nil {
		return err
	}
	r.keys.states, err = newCache(r, "states of API keys", cache.Options[*knownKey]{Entries: keptKeys, TTL: keysKnownFor})
	return err
}

// keyHome is where a key belongs.
type keyHome struct {
	state cache.Key
	load  func(context.Context) (*knownKey, error)
	// from is the mark of the address from which the key came when it was good last: those who guess there do not lock it
	// out.
	from atomic.Uint64
}

// knownKey is a key as the store has it. Requests share it: nothing of that is ever changed.
type knownKey struct {
	key storage.APIKey
	// userRevoked: the user whom it stands for was revoked after it was made.
	userRevoked bool
	agent       *storage.Agent // that it was made for; nil for none
	caller      Caller
	unknown     rules.Unknown
	principal   *rules.Principal
	matches     modelMatches
}

var (
	errUnknownKey   = &token.Error{Kind: token.ErrInvalid, Reason: "the API key is not known"}
	errNoAgent      = &token.Error{Kind: token.ErrInvalid, Reason: "the API key's agent is gone", Over: true}
	errMalformedKey = &token.Error{Kind: token.ErrInvalid, Reason: "the API key does not have the form of one"}
)

// good is an error that is token.ErrInvalid when the key is not good at a time.
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

// TooManyFailures refuses a credential unseen, because too many were wrong.
type TooManyFailures struct{ Wait time.Duration }

func (*TooManyFailures) Error() string { return "too many wrong credentials" }

// AuthenticateKey proves the call's caller with an API key that came from a peer (http.Request.RemoteAddr). What the key is
// good for is not looked at. Errors are token.ErrInvalid, *TooManyFailures, and the store's.
func (c *Call) AuthenticateKey(ctx context.Context, raw, remote string) error {
	from := guesses.Address(remote)
	if apikey.Check(raw) != nil {
		if err := c.Core.wrongCredential(guesses.Attempt{From: from, Credential: sha256.Sum256([]byte(raw))}); err != nil {
			return err
		}
		return errMalformedKey
	}
	r := c.Core.resources
	key := seal.NewSecret(raw)
	digests := c.Core.digester.Lookup(key)
	attempt := guesses.Attempt{From: from, Prefix: apikey.Prefix(key), Credential: [sha256.Size]byte(digests[0])}
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

// enterWith sets the call's caller to a key's, when it is good now.
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

// keyState is the key as it is now. Its error is token.ErrInvalid when it is no longer good.
func (c *Core) keyState(ctx context.Context, home *keyHome) (*knownKey, error) {
	known, err := c.resources.keys.states.Get(ctx, home.state, home.load)
	switch {
	case errors.Is(err, storage.ErrNotFound):
		return nil, errUnknownKey
	case err != nil:
		return nil, err
	}
	if err := known.good(time.Now()); err != nil {
		return nil, &bearerError{err, &known.caller}
	}
	return known, nil
}

func mayTry(wrong *guesses.Guesses, attempt guesses.Attempt) error {
	if wait := wrong.Wait(attempt); wait > 0 {
		return &TooManyFailures{wait}
	}
	return nil
}

func (c *Core) wrongCredential(attempt guesses.Attempt) error {
	if wait := c.resources.keys.wrong.Failed(attempt); wait > 0 {
		return &TooManyFailures{wait}
	}
	return nil
}

// WrongToken counts a token that was refused, and is *TooManyFailures when there were too many of the peer's. Tokens that
// are good are never refused for it: unlike a look-up, a signature tells the guesser nothing.
func (c *Core) WrongToken(raw, remote string, refusal error) error {
	if token.IsOver(refusal) {
		return nil // clients have to learn of it, and renew it
	}
	return c.wrongCredential(guesses.Attempt{From: guesses.Address(remote), Credential: sha256.Sum256([]byte(raw))})
}

// findKey finds where a key belongs by what can be stored of it. One that nobody has costs the same look-ups whatever it
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
