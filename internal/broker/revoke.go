package broker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/durward-gateway/durward/internal/directory"
	"github.com/durward-gateway/durward/internal/oauthflow"
	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/storage"
)

// Times of revocations that failed.
const (
	firstRevokeWait = time.Minute // doubled for each attempt
	lastRevokeWait  = time.Hour
	revokeEvery     = 30 * time.Second
	revokeBatch     = 100
)

// sealedRevocation holds a request to a provider in the form that is sealed into a row. Its secrets are plain: it lives while it is
// sealed or opened. It says everything: the connection, its client and its server may be gone by then.
type sealedRevocation struct {
	Server    string `json:"server"` // for the log
	Endpoint  string `json:"endpoint"`
	ClientID  string `json:"client_id"`
	Secret    string `json:"secret,omitempty"`
	Method    string `json:"method,omitempty"`
	TrustedCA string `json:"trusted_ca,omitempty"`
	Access    string `json:"access_token,omitempty"`
	Refresh   string `json:"refresh_token,omitempty"`
}

// request makes the request to the provider.
func (s *sealedRevocation) request() (oauthflow.RevokeRequest, error) {
	roots, err := directory.TrustedRoots(s.TrustedCA)
	return oauthflow.RevokeRequest{
		Endpoint: s.Endpoint, Access: seal.NewSecret(s.Access), Refresh: seal.NewSecret(s.Refresh),
		Client: oauthflow.ClientAuth{ID: s.ClientID, Secret: seal.NewSecret(s.Secret), Method: s.Method, Roots: roots},
	}, err
}

// revoke asks in the background, whatever becomes of ctx.
func (b *Broker) revoke(ctx context.Context, s storage.Server, client storage.OAuthClient, auth oauthflow.ClientAuth, g grant) {
	ctx = context.WithoutCancel(ctx)
	v, told := b.keepRevocation(ctx, s, client, auth, g)
	if told != nil {
		b.background(func() { b.tryRevocation(ctx, v, told) })
	}
}

// keepRevocation stores what the provider is to be told before it is: it outlives this process. told is nil when there is nothing to
// tell, or no way to.
func (b *Broker) keepRevocation(ctx context.Context, s storage.Server, client storage.OAuthClient, auth oauthflow.ClientAuth, g grant) (v storage.Revocation, told *sealedRevocation) {
	if g.Access.Empty() && g.Refresh.Empty() {
		return v, nil
	}
	if client.Endpoints.RevocationEndpoint == "" {
		b.count(NotRevoked)
		b.log.Info("tokens stay good until they run out: their provider has no address to revoke them at", "organization", client.OrganizationID, "server", s.Slug)
		return v, nil
	}
	told = &sealedRevocation{
		Server: s.Slug, Endpoint: client.Endpoints.RevocationEndpoint, ClientID: auth.ID, Secret: auth.Secret.Reveal(), Method: auth.Method,
		TrustedCA: s.Entry.Options.TrustedCA, Access: g.Access.Reveal(), Refresh: g.Refresh.Reveal(),
	}
	now := b.now().UTC()
	v = storage.Revocation{ID: uuid.Must(uuid.NewV7()).String(), OrganizationID: client.OrganizationID, CreatedAt: now, NextAt: now.Add(firstRevokeWait)}
	plain, err := json.Marshal(told)
	if err == nil {
		defer clear(plain)
		v.Sealed, err = b.keyring.Seal(plain, seal.RevocationPlace(v.OrganizationID, v.ID))
	}
	if err != nil {
		b.count(NotRevoked)
		b.log.Error("tokens cannot be kept until they are revoked", "organization", v.OrganizationID, "server", s.Slug, "error", err.Error())
		return v, told
	}
	if err := b.store.AddRevocation(ctx, v); err != nil {
		b.unstored.put(v)
		b.log.Error("tokens that are to be revoked are in memory alone", "organization", v.OrganizationID, "server", s.Slug, "error", err.Error())
	}
	return v, told
}

// tryRevocation tells the provider once. What it does not take is told again.
func (b *Broker) tryRevocation(ctx context.Context, v storage.Revocation, told *sealedRevocation) {
	select {
	case b.revokeSem <- struct{}{}:
		defer func() { <-b.revokeSem }()
	case <-b.ctx.Done():
		return
	}
	ctx, cancel := b.apart(ctx, revokeDeadline)
	defer cancel()
	request, err := told.request()
	if err == nil {
		err = b.oauth.Revoke(ctx, request)
	}
	log := b.log.With("organization", v.OrganizationID, "server", told.Server)
	over := b.now().Sub(v.CreatedAt) >= storage.RevocationLifetime
	switch {
	case err == nil:
		b.count(Revoked)
	case over:
		b.count(NotRevoked)
		log.Error("tokens were not revoked for a day, and are given up", "attempts", v.Attempts+1, "error", err.Error())
	default:
		b.count(RevokeFailed)
		log.Warn("revoking tokens; they are tried again", "error", err.Error())
		return
	}
	b.unstored.forget(v.ID)
	if err := b.store.DeleteRevocation(context.WithoutCancel(ctx), v.OrganizationID, v.ID); err != nil {
		log.Warn("a revocation that is over is still stored", "error", err.Error())
	}
}

// KeepRevoking tells providers again what they did not take, until the broker is closed. It is to be called once.
func (b *Broker) KeepRevoking() {
	b.background(func() {
		ticker := time.NewTicker(revokeEvery)
		defer ticker.Stop()
		for {
			select {
			case <-b.ending:
				return
			case <-ticker.C:
				if err := b.RevokeDue(b.ctx); err != nil && !errors.Is(err, context.Canceled) {
					b.log.Warn("revoking tokens again", "error", err.Error())
				}
			}
		}
	})
}

// RevokeDue tells providers what they did not take before and is due now, and what this process keeps of connections that ended
// elsewhere.
func (b *Broker) RevokeDue(ctx context.Context) error {
	b.endUnsaved(ctx)
	b.storeRevocations(ctx)
	due, err := b.store.DueRevocations(ctx, b.now().UTC(), revokeBatch)
	if err != nil {
		return fmt.Errorf("reading what is to be revoked: %w", err)
	}
	var all errgroup.Group
	for _, v := range due {
		wait := min(firstRevokeWait<<min(v.Attempts, 10), lastRevokeWait)
		err := b.store.PostponeRevocation(ctx, v, b.now().UTC().Add(wait))
		if errors.Is(err, storage.ErrNotFound) {
			continue // another node has it
		}
		if err != nil {
			return errors.Join(fmt.Errorf("postponing a revocation: %w", err), all.Wait())
		}
		all.Go(func() error { return b.revokeAgain(ctx, v) })
	}
	return all.Wait()
}

// storeRevocations stores what the store did not take when it was to be revoked.
func (b *Broker) storeRevocations(ctx context.Context) {
	for _, v := range b.unstored.list() {
		if err := b.store.AddRevocation(ctx, v); err == nil || errors.Is(err, storage.ErrConflict) {
			b.unstored.forget(v.ID)
		}
	}
}

// revokeAgain tries one that was stored. One that cannot be read keeps no other one from being tried.
func (b *Broker) revokeAgain(ctx context.Context, v storage.Revocation) error {
	told, err := b.openRevocation(v)
	if err == nil {
		b.tryRevocation(ctx, v, told)
		return nil
	}
	b.log.Error("what is to be revoked cannot be read", "organization", v.OrganizationID, "error", err.Error())
	if b.now().Sub(v.CreatedAt) < storage.RevocationLifetime {
		return nil
	}
	b.count(NotRevoked)
	return b.store.DeleteRevocation(ctx, v.OrganizationID, v.ID)
}

func (b *Broker) openRevocation(v storage.Revocation) (*sealedRevocation, error) {
	plain, err := b.keyring.Open(v.Sealed, seal.RevocationPlace(v.OrganizationID, v.ID))
	if err != nil {
		return nil, err
	}
	defer clear(plain)
	told := new(sealedRevocation)
	return told, json.Unmarshal(plain, told)
}

// revokeUnsaved ends tokens that this process got for a connection that ended before they could be stored.
func (b *Broker) revokeUnsaved(ctx context.Context, key storage.ConnectionKey) {
	late, ok := b.unsaved.forget(key)
	if !ok {
		return
	}
	auth, err := b.auth(late.server, late.client)
	if err != nil {
		b.notRevoked(storage.Connection{ConnectionKey: key}, err)
		return
	}
	b.revoke(ctx, late.server, late.client, auth, grant{Access: late.tokens.Access, Refresh: late.tokens.Refresh})
}

// dropUnsaved forgets such tokens of a connection that another one, of that kind, took the place of. They are revoked where that
// cannot end the new one.
func (b *Broker) dropUnsaved(ctx context.Context, key storage.ConnectionKey, by storage.Provider) {
	late, ok := b.unsaved.get(key)
	switch {
	case !ok:
	case by != storage.ProviderOAuth2, late.server.Entry.Options.IndependentTokens:
		b.revokeUnsaved(ctx, key)
	default:
		b.unsaved.forget(key)
	}
}

// endUnsaved ends such tokens of connections that another node ended or replaced.
func (b *Broker) endUnsaved(ctx context.Context) {
	for _, key := range b.unsaved.keys() {
		late, ok := b.unsaved.get(key)
		if !ok {
			continue // stored meanwhile
		}
		c, err := b.store.Connection(ctx, key)
		var g grant
		if err == nil {
			g, err = b.openGrant(c)
		}
		switch {
		case errors.Is(err, storage.ErrNotFound), errors.Is(err, errNothingStored):
			b.revokeUnsaved(ctx, key)
		case err == nil && g.ID != late.grant:
			b.dropUnsaved(ctx, key, c.Kind)
		}
	}
}

// replaced returns the grant that a new connection takes the place of, where it may be revoked. Most providers end all tokens of a user and
// client with one of them, the new ones too: only where the entry says that they do not there is one.
func (b *Broker) replaced(ctx context.Context, s storage.Server, client storage.OAuthClient, key storage.ConnectionKey) (grant, error) {
	if !s.Entry.Options.IndependentTokens {
		return grant{}, nil
	}
	former, err := b.store.Connection(ctx, key)
	if errors.Is(err, storage.ErrNotFound) || err == nil && !issuedTo(former, client) {
		return grant{}, nil
	}
	if err != nil {
		return grant{}, err
	}
	g, err := b.openGrant(former)
	if err != nil { // nothing is stored, or nobody can read it any more
		return grant{}, nil //nolint:nilerr // that must not keep its user from connecting anew
	}
	return g, nil
}

// unstored keeps revocations that the store could not take, until it can. The zero value is ready.
type unstored struct {
	mu  sync.Mutex
	all map[string]storage.Revocation // by id
}

func (u *unstored) put(v storage.Revocation) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.all == nil {
		u.all = make(map[string]storage.Revocation)
	}
	u.all[v.ID] = v
}

func (u *unstored) forget(id string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.all, id)
}

func (u *unstored) list() []storage.Revocation {
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.Collect(maps.Values(u.all))
}
