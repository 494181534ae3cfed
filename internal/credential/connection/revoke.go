package connection

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

	"github.com/durward-gateway/durward/internal/credential/directory"
	"github.com/durward-gateway/durward/internal/credential/oauth"
	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/storage"
)

// Times and limits for repeating revocations that failed.
const (
	firstRevokeWait = time.Second
	lastRevokeWait  = time.Hour
	revokeEvery     = 30 * time.Second
	// revokeLease is the time for which one process alone may try a revocation. It is longer than a try lasts.
	revokeLease = revokeDeadline + 5*time.Second
	revokeBatch = 100
	revokeShare = 16 // of one organization: in a batch, and waiting at one time
)

// sealedRevocation holds a request to a provider in the form that is sealed into a row. Its secrets are plain, so it
// exists only while it is sealed or opened. It is complete, because the connection, its client and its server may be
// gone by then.
type sealedRevocation struct {
	Server    string `json:"server"` // for the log
	Endpoint  string `json:"endpoint"`
	ClientID  string `json:"client_id"`
	Secret    string `json:"secret,omitempty"`
	Method    string `json:"method,omitempty"`
	TrustedCA string `json:"trusted_ca,omitempty"`
	Access    string `json:"access_token,omitempty"`
	Refresh   string `json:"refresh_token,omitempty"`

	// Owner of the tokens, who may have connected again before the provider is told. An older version has not stored
	// it.
	UserID      string                  `json:"user_id,omitempty"`
	ServerID    string                  `json:"server_id,omitempty"`
	Kind        storage.OAuthClientKind `json:"client_kind,omitempty"`
	Issuer      string                  `json:"issuer,omitempty"`
	Provider    string                  `json:"provider,omitempty"`    // origins of its endpoints, as in issued
	Independent bool                    `json:"independent,omitempty"` // ending one token of the provider ends no others
}

// request makes the request to the provider.
func (s *sealedRevocation) request() (oauth.RevokeRequest, error) {
	roots, err := directory.TrustedRoots(s.TrustedCA)
	return oauth.RevokeRequest{
		Endpoint: s.Endpoint, Access: seal.NewSecret(s.Access), Refresh: seal.NewSecret(s.Refresh),
		Client: oauth.ClientAuth{ID: s.ClientID, Secret: seal.NewSecret(s.Secret), Method: s.Method, Roots: roots},
	}, err
}

// revoke sends the request in the background, even if ctx ends.
func (b *Broker) revoke(ctx context.Context, of tokensOf, auth oauth.ClientAuth, g grant) {
	ctx = context.WithoutCancel(ctx)
	if v, told := b.keepRevocation(ctx, of, auth, g); told != nil {
		b.tellSoon(v, told)
	}
}

// keepRevocation stores the message for the provider before it is sent, so that it outlives this process. told is nil
// when there is nothing to tell, or no way to tell it.
func (b *Broker) keepRevocation(ctx context.Context, of tokensOf, auth oauth.ClientAuth, g grant) (v storage.Revocation, told *sealedRevocation) {
	told, err := toldOf(of, of.client.Endpoints.RevocationEndpoint, auth, g)
	if err == nil && told == nil {
		return v, nil
	}
	if err == nil {
		v, err = b.sealRevocation(of.key.OrganizationID, told)
	}
	if err != nil {
		b.notRevoked(storage.Connection{ConnectionKey: of.key}, err)
		return v, nil
	}
	if err := b.store.AddRevocation(ctx, v); err != nil {
		b.unstored.put(v)
		b.log.Error("tokens that are to be revoked are in memory alone", "organization", v.OrganizationID, "server", of.server.Slug, "error", err.Error())
	}
	return v, told
}

// tokensOf identifies the owner of tokens, and the client that got them.
type tokensOf struct {
	key    storage.ConnectionKey
	server storage.Server
	client storage.OAuthClient
}

// toldOf returns the message for the provider about a grant. endpoint is the revocation endpoint of its client now. The
// message is nil when there is nothing to tell.
func toldOf(of tokensOf, endpoint string, auth oauth.ClientAuth, g grant) (*sealedRevocation, error) {
	if g.Access.Empty() && g.Refresh.Empty() {
		return nil, nil //nolint:nilnil // there is nothing, which is no error
	}
	endpoint, err := g.Issued.revokeAt(endpoint, &of.server.Entry)
	if err != nil {
		return nil, err
	}
	return &sealedRevocation{
		Server: of.server.Slug, Endpoint: endpoint, ClientID: auth.ID, Secret: auth.Secret.Reveal(), Method: auth.Method,
		TrustedCA: of.server.Entry.Options.TrustedCA, Access: g.Access.Reveal(), Refresh: g.Refresh.Reveal(),
		UserID: of.key.UserID, ServerID: of.key.ServerID, Kind: of.client.Kind, Issuer: of.client.Issuer,
		Provider: g.Issued.Origins, Independent: of.server.Entry.Options.IndependentTokens,
	}, nil
}

// sealRevocation makes the row of a revocation. The process that makes it also tries it first.
func (b *Broker) sealRevocation(organization string, told *sealedRevocation) (storage.Revocation, error) {
	now := b.now().UTC()
	v := storage.Revocation{ID: uuid.Must(uuid.NewV7()).String(), OrganizationID: organization, CreatedAt: now, NextAt: now.Add(revokeLease)}
	plain, err := json.Marshal(told)
	if err != nil {
		return v, fmt.Errorf("encoding a revocation: %w", err)
	}
	defer clear(plain)
	v.Sealed, err = b.keyring.Seal(plain, seal.RevocationPlace(v.OrganizationID, v.ID))
	return v, err
}

// tellSoon tells the provider in the background. If too many revocations of the organization wait already, the stored
// one is found when it is due.
func (b *Broker) tellSoon(v storage.Revocation, told *sealedRevocation) {
	if !b.turns.reserve(v.OrganizationID, v.ID) {
		return
	}
	if !b.background(func() {
		defer b.turns.release(v.OrganizationID, v.ID)
		b.tryRevocation(b.ctx, v, told)
	}) {
		b.turns.release(v.OrganizationID, v.ID)
	}
}

// tryRevocation tells the provider once, when it is the organization's turn. A revocation that the provider does not
// accept is tried again.
func (b *Broker) tryRevocation(ctx context.Context, v storage.Revocation, told *sealedRevocation) {
	leave, ok := b.turns.enter(b.ctx, v.OrganizationID) //nolint:contextcheck // a turn is waited for as long as the broker is open
	if !ok {
		return
	}
	defer leave()
	ctx, cancel := b.apart(ctx, revokeDeadline)
	defer cancel()
	if !b.claim(ctx, &v) {
		return
	}
	err := b.tell(ctx, v, told)
	b.triedRevocation(context.WithoutCancel(ctx), v, told.Server, err)
}

// errConnectedAnew: the tokens are not revoked, because that may end the tokens of a new connection too.
var errConnectedAnew = errors.New("their user has connected anew meanwhile, and to revoke them may end the new connection")

func (b *Broker) tell(ctx context.Context, v storage.Revocation, told *sealedRevocation) error {
	if told.UserID != "" {
		c, err := b.store.Connection(ctx, storage.ConnectionKey{OrganizationID: v.OrganizationID, UserID: told.UserID, ServerID: told.ServerID})
		client := storage.OAuthClient{Kind: told.Kind, ClientID: told.ClientID, Issuer: told.Issuer}
		switch {
		case err != nil && !errors.Is(err, storage.ErrNotFound):
			return fmt.Errorf("reading connection: %w", err)
		case err == nil && c.SealedCredential != nil && !b.spares(&c, client, issued{Origins: told.Provider}, told.Independent):
			return errConnectedAnew
		}
	}
	request, err := told.request()
	if err != nil {
		return err
	}
	at, began := endpointOf{v.OrganizationID, told.Endpoint}, b.now()
	if b.silences.has(at, began) {
		return errSilent
	}
	if err = b.oauth.Revoke(ctx, request); err != nil {
		b.silences.note(at, began, b.now())
	}
	return err
}

// claim keeps all other processes from trying a revocation for a while. It returns false when another process tries it,
// or when the store does not answer. The revocation is then tried later.
func (b *Broker) claim(ctx context.Context, v *storage.Revocation) bool {
	now := b.now().UTC()
	if v.NextAt.Sub(now) >= revokeDeadline {
		return true // it was made just now, for this try
	}
	next := now.Add(revokeLease)
	err := b.store.PostponeRevocation(ctx, *v, next, 0)
	if err != nil && !errors.Is(err, storage.ErrNotFound) {
		b.log.Warn("claiming a revocation", "organization", v.OrganizationID, "error", err.Error())
	}
	v.NextAt = next
	return err == nil
}

// triedRevocation handles the result of one try.
func (b *Broker) triedRevocation(ctx context.Context, v storage.Revocation, server string, err error) {
	log := b.log.With("organization", v.OrganizationID, "server", server)
	over := b.now().Sub(v.CreatedAt) >= storage.RevocationLifetime
	switch {
	case err == nil:
		b.count(Revoked)
	case errors.Is(err, errConnectedAnew):
		b.count(NotRevoked)
		log.Warn("tokens cannot be revoked", "error", err.Error())
	case over:
		b.count(NotRevoked)
		log.Error("tokens were not revoked for a day, and are given up", "attempts", v.Attempts+1, "error", err.Error())
	default:
		if !errors.Is(err, errSilent) {
			b.count(RevokeFailed)
			log.Warn("revoking tokens; they are tried again", "error", err.Error())
		}
		if err := b.postpone(ctx, v); err != nil {
			log.Warn("revoking tokens; they are tried again later than meant", "error", err.Error())
		}
		return
	}
	b.unstored.forget(v.ID)
	if err := b.store.DeleteRevocation(ctx, v.OrganizationID, v.ID); err != nil {
		log.Warn("a revocation that is over is still stored", "error", err.Error())
	}
}

// postpone counts a failed attempt. The wait before the next one is as long as the time since the first one: 1 s, 2 s,
// 4 s, and so on.
func (b *Broker) postpone(ctx context.Context, v storage.Revocation) error {
	now := b.now().UTC()
	next := now.Add(min(max(now.Sub(v.CreatedAt), firstRevokeWait), lastRevokeWait))
	err := b.store.PostponeRevocation(ctx, v, next, 1)
	if errors.Is(err, storage.ErrNotFound) {
		return nil // another node has it, or it is only in memory
	}
	if err == nil {
		b.alarm.set(next)
	}
	return err
}

// KeepRevoking repeats revocations that providers did not accept yet, until the broker is closed. It starts with those
// that an earlier process left. It must be called once. It waits for no provider: a provider that does not answer does
// not delay the others.
func (b *Broker) KeepRevoking() {
	b.background(func() {
		for {
			if _, err := b.revokeDue(b.ctx); err != nil && !errors.Is(err, context.Canceled) {
				b.log.Warn("revoking tokens again", "error", err.Error())
			}
			if !b.alarm.wait(b.ending, revokeEvery, b.now) {
				return
			}
		}
	})
}

// RevokeDue repeats revocations that providers did not accept before and that are due now. It also revokes the tokens
// that this process keeps of connections that ended elsewhere. It waits until the providers are told.
func (b *Broker) RevokeDue(ctx context.Context) error {
	told, err := b.revokeDue(ctx)
	if err != nil {
		return err
	}
	return told.Wait()
}

// revokeDue starts to tell the providers. Each organization has its share of the revocations sent at one time.
func (b *Broker) revokeDue(ctx context.Context) (told *errgroup.Group, err error) {
	b.endUnsaved(ctx)
	b.storeRevocations(ctx)
	now := b.now().UTC()
	soon, err := b.store.DueRevocations(ctx, now.Add(revokeEvery), revokeBatch, revokeShare)
	if err != nil {
		return nil, fmt.Errorf("reading what is to be revoked: %w", err)
	}
	told = new(errgroup.Group)
	of := make(map[string]int) // by organization
	for _, v := range soon {
		if v.NextAt.After(now) {
			b.alarm.set(v.NextAt)
			continue
		}
		if of[v.OrganizationID]++; of[v.OrganizationID] == revokeShare || len(soon) == revokeBatch {
			b.alarm.set(now.Add(firstRevokeWait)) // there may be more
		}
		if !b.turns.reserve(v.OrganizationID, v.ID) {
			continue // it waits already, or too many do
		}
		if !b.begin() {
			b.turns.release(v.OrganizationID, v.ID)
			break
		}
		told.Go(func() error {
			defer b.work.Done()
			defer b.turns.release(v.OrganizationID, v.ID)
			return b.revokeAgain(ctx, v)
		})
	}
	return told, nil
}

// storeRevocations stores the revocations that the store could not take when they were made.
func (b *Broker) storeRevocations(ctx context.Context) {
	for _, v := range b.unstored.list() {
		if err := b.store.AddRevocation(ctx, v); err == nil || errors.Is(err, storage.ErrConflict) {
			b.unstored.forget(v.ID)
		}
	}
}

// revokeAgain tries a stored revocation. One that cannot be read does not keep others from being tried.
func (b *Broker) revokeAgain(ctx context.Context, v storage.Revocation) error {
	told, err := b.openRevocation(v)
	if err == nil {
		b.tryRevocation(ctx, v, told)
		return nil
	}
	b.log.Error("what is to be revoked cannot be read", "organization", v.OrganizationID, "error", err.Error())
	if b.now().Sub(v.CreatedAt) < storage.RevocationLifetime {
		return b.postpone(ctx, v)
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

// revokeUnsaved revokes tokens that this process got for a connection that ended before they could be stored.
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
	b.revoke(ctx, tokensOf{key, late.server, late.client}, auth, grant{Access: late.tokens.Access, Refresh: late.tokens.Refresh, Issued: late.issued})
}

// dropUnsaved forgets unsaved tokens of a connection that another one has replaced. It revokes them if that cannot end
// the new connection.
func (b *Broker) dropUnsaved(ctx context.Context, by storage.Connection) {
	late, ok := b.unsaved.get(by.ConnectionKey)
	switch {
	case !ok:
	case b.spares(&by, late.client, late.issued, late.server.Entry.Options.IndependentTokens):
		b.revokeUnsaved(ctx, by.ConnectionKey)
	default:
		b.unsaved.forget(by.ConnectionKey)
	}
}

// endUnsaved ends unsaved tokens of connections that another node ended or replaced.
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
			b.dropUnsaved(ctx, c)
		}
	}
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
