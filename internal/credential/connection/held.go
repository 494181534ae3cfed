package connection

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"sync/atomic"
	"time"

	"github.com/durward-gateway/durward/internal/cache"
	"github.com/durward-gateway/durward/internal/credential/directory"
	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/storage"
)

// held is a connection in memory: the unsealed credential, or the reason for its absence.
type held struct {
	connected bool
	reason    string // the reason for not being connected
	cred      Credential
	// known is the discovered data about the server's authorization.
	known storage.OAuthEndpoints
	// clientRefused reports that the provider does not accept our client.
	clientRefused bool
	site          site // a site that the credential fits; zero: not determined yet
	refreshable   bool
	refreshAt     time.Time // zero: never
	// params are the parameters with which placed, the credential, goes on a request. They are set when the connection
	// is read.
	params storage.AuthParams
	placed Credential
}

// Times at which a token is refreshed: a minute before it ends, or in the last quarter of a short life.
const (
	earliest     = time.Minute
	lifeFraction = 4
)

// Recent remembers the connection of a caller who asks for the same one again and again, such as the bearer of a token.
// It remembers it as long as nothing of the organization is written. The zero value is ready, and safe for concurrent
// use.
type Recent struct{ last atomic.Pointer[lastHeld] }

// lastHeld is a connection that existed, for a server that its credential fitted.
type lastHeld struct {
	epoch  cache.Epoch
	key    storage.ConnectionKey
	server *storage.Server
	held   *held
	cred   Credential
}

// of returns the remembered connection. It returns nil when there is none, or when it may not be valid any more.
func (r *Recent) of(epoch cache.Epoch, key *storage.ConnectionKey, server *storage.Server) *lastHeld {
	if r == nil {
		return nil
	}
	if last := r.last.Load(); last != nil && last.epoch == epoch && last.server == server && last.key == *key {
		return last
	}
	return nil
}

// Credential returns the credential that the user of key presents to server. It refreshes a credential that is due.
// Errors are *NotConnectedError, *UnavailableError (worth trying again) and the store's. On a warm node it reads
// nothing from the store.
func (b *Broker) Credential(ctx context.Context, key storage.ConnectionKey, server *storage.Server) (Credential, error) {
	return b.CredentialOf(ctx, key, server, nil)
}

// CredentialOf returns a credential as Credential does, for a caller who may have asked before. recent remembers the
// answer for that caller, and may be nil. server is then shared, and nobody changes it.
func (b *Broker) CredentialOf(ctx context.Context, key storage.ConnectionKey, server *storage.Server, recent *Recent) (Credential, error) {
	if server.OrganizationID != key.OrganizationID || server.ID != key.ServerID {
		return Credential{}, storage.ErrNotFound
	}
	switch kind := KindOf(&server.Entry); {
	case kind == storage.ProviderNone:
		return None(), nil
	case kind.Obtained():
		return Credential{}, errObtained
	}
	if server.Status == storage.ServerPending {
		return Credential{}, errAdministrator
	}
	if b.ctx.Err() != nil {
		return Credential{}, ErrClosed
	}
	last, err := b.recall(ctx, key, server, recent)
	if err != nil {
		return Credential{}, err
	}
	h, cred := last.held, last.cred
	if server.Status == storage.ServerError {
		return h.inError(cred, b.now())
	}
	if h.refreshAt.IsZero() {
		return cred, nil
	}
	return b.refreshed(ctx, key, server, last)
}

// recall returns the connection that recent remembers. If there is none, it looks for the connection, which recent then
// remembers.
func (b *Broker) recall(ctx context.Context, key storage.ConnectionKey, server *storage.Server, recent *Recent) (*lastHeld, error) {
	epoch := b.epochs.Current(key.OrganizationID)
	if last := recent.of(epoch, &key, server); last != nil {
		return last, nil
	}
	last, err := b.look(ctx, key, server)
	if err != nil {
		return nil, err
	}
	if recent != nil {
		last.epoch, last.key, last.server = epoch, key, server
		recent.last.Store(last)
	}
	return last, nil
}

// refreshed returns the credential of a connection that has a time to refresh it. It refreshes a credential that is due.
func (b *Broker) refreshed(ctx context.Context, key storage.ConnectionKey, server *storage.Server, last *lastHeld) (Credential, error) {
	h, cred, now := last.held, last.cred, b.now()
	expired := !cred.expires.IsZero() && !now.Before(cred.expires)
	switch {
	case now.Before(h.refreshAt):
		return cred, nil
	case !h.refreshable && !expired:
		return cred, nil
	case !h.refreshable:
		return Credential{}, b.end(ctx, key, cred.version, "the access has expired")
	}
	fresh, err := b.refresh(ctx, key, *server, cred.version, false, !expired)
	if err != nil && !expired && (errors.Is(err, errAdministrator) || !errors.Is(err, ErrNotConnected)) && ctx.Err() == nil {
		return cred, nil // valid for a while yet, whether or not the provider answers (Z-A01)
	}
	return fresh, err
}

// inError returns the credential for a server that is out of order. If the provider only refuses our client, tokens are
// good until they expire. If the server itself is in doubt, they are not.
func (h *held) inError(cred Credential, now time.Time) (Credential, error) {
	if !h.clientRefused || (!cred.expires.IsZero() && !now.Before(cred.expires)) {
		return Credential{}, errAdministrator
	}
	return cred, nil
}

// look finds a connection, and its credential for a server that it fits.
func (b *Broker) look(ctx context.Context, key storage.ConnectionKey, server *storage.Server) (*lastHeld, error) {
	where := siteOf(&server.Entry)
	h, err := b.known(ctx, key, server, where)
	if err != nil {
		return nil, err
	}
	if !h.connected {
		return nil, &NotConnectedError{Reason: h.reason}
	}
	if !h.fits(where) {
		return nil, b.moved(ctx, key, h)
	}
	cred, err := h.on(server.Entry.AuthParams)
	if err != nil {
		return nil, &NotConnectedError{Reason: err.Error()}
	}
	return &lastHeld{held: h, cred: cred}, nil
}

// known returns a connection from memory. It reads the connection if it is not there.
func (b *Broker) known(ctx context.Context, key storage.ConnectionKey, server *storage.Server, where site) (*held, error) {
	return b.held.Get(ctx, cache.NewKey(key.OrganizationID, key.UserID, key.ServerID), func(ctx context.Context) (*held, error) {
		h, err := b.load(ctx, key)
		if err == nil && h.fits(where) {
			h.site = where
			h.place(server.Entry.AuthParams)
		}
		return &h, err
	})
}

// Gone reports whether the user of key has no connection any more, to a server that needs one. A connection that was
// taken away is gone. One that just broke is not. Errors are the store's.
func (b *Broker) Gone(ctx context.Context, key storage.ConnectionKey, server *storage.Server) (bool, error) {
	if !NeedsAccount(&server.Entry) {
		return false, nil
	}
	if b.ctx.Err() != nil {
		return false, ErrClosed
	}
	h, err := b.known(ctx, key, server, siteOf(&server.Entry))
	if err != nil {
		return false, err
	}
	return !h.connected && h.reason == "", nil
}

// Connected reports whether the user of key has a credential for server, as far as is known without asking the
// provider. A connection whose refresh was refused is not connected. Errors are the store's.
func (b *Broker) Connected(ctx context.Context, key storage.ConnectionKey, server *storage.Server) (bool, error) {
	switch {
	case KindOf(&server.Entry) == storage.ProviderNone:
		return true, nil
	case server.Status == storage.ServerPending, server.Status == storage.ServerError:
		return false, nil
	case !NeedsAccount(&server.Entry):
		return true, nil
	case b.ctx.Err() != nil:
		return false, ErrClosed
	}
	where := siteOf(&server.Entry)
	h, err := b.known(ctx, key, server, where)
	if err != nil {
		return false, err
	}
	return h.connected && h.fits(where), nil
}

// load reads a connection. The absence of a connection is kept in memory, too.
func (b *Broker) load(ctx context.Context, key storage.ConnectionKey) (held, error) {
	c, err := b.store.Connection(ctx, key)
	if errors.Is(err, storage.ErrNotFound) {
		return held{}, nil
	}
	if err != nil {
		return held{}, fmt.Errorf("reading connection: %w", err)
	}
	g, err := b.openGrant(c)
	if errors.Is(err, errNothingStored) {
		return held{reason: c.Reason}, nil
	}
	if err != nil && !errors.Is(err, seal.ErrOpen) {
		return held{}, fmt.Errorf("opening stored credential: %w", err) // its key cannot be looked up: nobody has to connect again for that
	}
	if err != nil {
		// Z-F08: only this connection suffers. The ciphertext stays, for a person who examines it.
		b.log.Error("stored credential cannot be opened", "organization", key.OrganizationID, "user", key.UserID,
			"server", key.ServerID, "error", err.Error())
		const reason = "the stored credential cannot be read"
		if err := b.mark(ctx, key, c.Version, reason, true); err != nil {
			return held{}, err
		}
		return held{reason: reason}, nil
	}
	h := b.hold(c, g)
	if c.Kind == storage.ProviderOAuth2 {
		client, err := b.store.OAuthClient(ctx, key.OrganizationID, key.ServerID)
		if err != nil && !errors.Is(err, storage.ErrNotFound) {
			return held{}, fmt.Errorf("reading OAuth client: %w", err)
		}
		h.known, h.clientRefused = client.Endpoints, client.Refused
	}
	return h, nil
}

func (b *Broker) hold(c storage.Connection, g grant) held {
	h := held{
		connected: true,
		cred: Credential{
			kind: c.Kind, value: g.value(c.Kind), place: place{c.Origin, c.Resource, c.Issuer}, version: c.Version, expires: c.ExpiresAt,
		},
		refreshable: !g.Refresh.Empty(),
	}
	if !c.ExpiresAt.IsZero() {
		early := min(earliest, max(0, c.ExpiresAt.Sub(c.UpdatedAt))/lifeFraction)
		h.refreshAt = c.ExpiresAt.Add(-early - jitter(c, early/2))
	}
	return h
}

// jitter spreads refreshes that would otherwise happen at one moment, in the same way on every node.
func jitter(c storage.Connection, most time.Duration) time.Duration {
	if most <= 0 {
		return 0
	}
	h := fnv.New32a()
	_, _ = fmt.Fprint(h, c.ID, c.Version)
	return time.Duration(int64(most) * int64(h.Sum32()>>16) >> 16)
}

// fits reports whether the server is still at the place that the credential was made for.
func (h *held) fits(s site) bool {
	if s.url != "" && h.site == s {
		return true // determined when the connection was read
	}
	where, err := placeOf(s, h.known)
	return err == nil && where == h.cred.place && s.kind == h.cred.kind
}

// on returns the credential for a server with those parameters.
func (h *held) on(p storage.AuthParams) (Credential, error) {
	if h.placed.kind != "" && h.params == p {
		return h.placed, nil
	}
	return h.cred.on(p)
}

// place determines where on a request the credential goes. Wrong parameters cause an error later, for the caller who
// asks.
func (h *held) place(p storage.AuthParams) {
	if cred, err := h.cred.on(p); err == nil {
		h.params, h.placed = p, cred
	}
}

// on sets where on a request the credential goes.
func (c Credential) on(p storage.AuthParams) (Credential, error) {
	if err := directory.CheckAuthParams(p); err != nil {
		return Credential{}, err
	}
	c.params = directory.PlaceCredential(c.kind, p)
	return c, nil
}

// moved ends a connection whose server is at another place than before: old tokens never go to a new place.
func (b *Broker) moved(ctx context.Context, key storage.ConnectionKey, h *held) error {
	// The caller may know the server from before the connection was made.
	s, err := b.store.Server(ctx, key.OrganizationID, key.ServerID)
	if err != nil {
		return fmt.Errorf("reading server: %w", err)
	}
	if h.fits(siteOf(&s.Entry)) {
		return &UnavailableError{RetryAfter: time.Second, Cause: errors.New("the server is just being changed")}
	}
	return b.end(ctx, key, h.cred.version, "the server's address or issuer has changed since you connected")
}

// end marks the connection as broken, forgets and revokes its tokens, and returns the error for the user.
func (b *Broker) end(ctx context.Context, key storage.ConnectionKey, version int64, reason string) error {
	if err := b.mark(ctx, key, version, reason, false); err != nil {
		return err
	}
	return &NotConnectedError{Reason: reason}
}

// mark writes status error, unless the connection has changed since version.
func (b *Broker) mark(ctx context.Context, key storage.ConnectionKey, version int64, reason string, keep bool) error {
	ctx, cancel := b.apart(ctx, providerDeadline)
	defer cancel()
	e := b.newEnding()
	_, err := b.store.UpdateConnection(e.in(ctx), key, func(_ context.Context, c *storage.Connection) error {
		if c.Version != version {
			return errUnchanged
		}
		sealed := c.SealedCredential
		fallen(c, reason, b.now())
		if keep {
			c.SealedCredential = sealed
		}
		return nil
	})
	switch {
	case errors.Is(err, errUnchanged), errors.Is(err, storage.ErrNotFound):
		return nil
	case err != nil:
		return fmt.Errorf("noting connection status: %w", err)
	}
	b.count(Broken)
	b.log.Warn("connection is broken", "organization", key.OrganizationID, "user", key.UserID, "server", key.ServerID, "reason", reason)
	if !keep {
		e.told()
		b.revokeUnsaved(ctx, key)
	}
	return nil
}

// fallen sets status error. It does not keep tokens that are worthless (A14).
func fallen(c *storage.Connection, reason string, now time.Time) {
	c.Status, c.Reason, c.UpdatedAt = storage.ConnectionError, reason, now.UTC()
	c.SealedCredential, c.ExpiresAt = nil, time.Time{}
}
