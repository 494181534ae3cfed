package broker

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/durward-gateway/durward/internal/oauthflow"
	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/storage"
)

// rejectedTwice: when the upstream refuses a token so soon after its predecessor, a third would not help either.
const rejectedTwice = 5 * time.Minute

// Rejected is told that the upstream answered 401 to credential. Once per token it asks the provider for another, which
// it returns; who has got one meanwhile gets that. When that cannot help (the kind has no refresh, the provider refuses,
// the token before this one was refused just now) the connection is broken: *NotConnectedError. Where there is none to break:
// ErrCredentialWanted.
func (b *Broker) Rejected(ctx context.Context, key storage.ConnectionKey, server storage.Server, credential Credential) (Credential, error) {
	switch credential.kind {
	case storage.ProviderOAuth2:
		return b.refresh(ctx, key, server, credential.version, true, false)
	case storage.ProviderNone, "":
		return Credential{}, ErrCredentialWanted
	}
	return Credential{}, b.end(ctx, key, credential.version, "the server refuses the credential")
}

// refresh gets a newer credential than version. All callers of one version share one refresh, which goes on when they
// leave. hurried callers have a token that will do, and do not wait long.
func (b *Broker) refresh(ctx context.Context, key storage.ConnectionKey, s storage.Server, version int64, forced, hurried bool) (Credential, error) {
	if s.Status == storage.ServerError {
		return Credential{}, errAdministrator
	}
	if wait := b.retries.wait(key, b.now()); wait > 0 {
		return Credential{}, &UnavailableError{RetryAfter: wait}
	}
	name := key.OrganizationID + " " + key.UserID + " " + key.ServerID + " " + strconv.FormatInt(version, 10)
	answer := b.refreshes.DoChan(name, func() (result any, err error) {
		if !b.begin() {
			return nil, ErrClosed
		}
		defer b.work.Done()
		defer func() {
			// singleflight would end the process.
			if r := recover(); r != nil {
				// The value could be a secret (L02).
				b.log.Error("refresh panicked", "type", fmt.Sprintf("%T", r), "stack", string(debug.Stack()))
				err = &UnavailableError{RetryAfter: b.retries.failed(key, b.now()), Cause: errors.New("internal error")}
			}
		}()
		ctx, cancel := b.apart(ctx, providerDeadline)
		defer cancel()
		return b.refreshPatiently(ctx, key, s, version, forced)
	})
	var late <-chan time.Time
	if hurried {
		timer := time.NewTimer(b.patience)
		defer timer.Stop()
		late = timer.C
	}
	select {
	case r := <-answer:
		if r.Err != nil {
			return Credential{}, r.Err
		}
		h := r.Val.(held)
		if !h.connected {
			return Credential{}, &NotConnectedError{Reason: h.reason}
		}
		if !h.fits(siteOf(&s.Entry)) {
			return Credential{}, b.moved(ctx, key, &h)
		}
		return h.cred.on(s.Entry.AuthParams)
	case <-late:
		return Credential{}, &UnavailableError{RetryAfter: time.Second, Cause: errors.New("the provider is slow")}
	case <-ctx.Done():
		return Credential{}, context.Cause(ctx)
	}
}

// storePauses lie between the tries of a refresh whose store does not answer in time. Everybody who waits for the
// refresh, hundreds of calls at the instant of an expiry, would otherwise be refused for one slow answer.
var storePauses = []time.Duration{250 * time.Millisecond, 500 * time.Millisecond, time.Second}

// notAskedError is the failure of a refresh of which nothing was sent to the provider: it can be tried again.
type notAskedError struct{ error }

func (e notAskedError) Unwrap() error { return e.error }

// refreshPatiently refreshes, again while the store was away before the provider was asked.
func (b *Broker) refreshPatiently(ctx context.Context, key storage.ConnectionKey, s storage.Server, version int64, forced bool) (held, error) {
	for n := 0; ; n++ {
		h, err := b.refreshOnce(ctx, key, s, version, forced)
		var early notAskedError
		if !errors.As(err, &early) {
			return h, err
		}
		b.count(RefreshFailed)
		if n == len(storePauses) || !errors.Is(err, storage.ErrUnavailable) {
			return h, err
		}
		select {
		case <-time.After(storePauses[n]):
		case <-ctx.Done():
			return h, err
		}
	}
}

// refreshOnce refreshes under the store's lock on the connection.
func (b *Broker) refreshOnce(ctx context.Context, key storage.ConnectionKey, s storage.Server, version int64, forced bool) (held, error) {
	client, err := b.store.OAuthClient(ctx, key.OrganizationID, key.ServerID)
	if err != nil && !errors.Is(err, storage.ErrNotFound) {
		return held{}, notAskedError{fmt.Errorf("reading OAuth client: %w", err)}
	}
	r := refresher{b: b, key: key, server: s, client: client, version: version, forced: forced, ending: b.newEnding()}
	stored, err := b.store.UpdateConnection(r.ending.in(ctx), key, r.edit)
	if r.asking != nil {
		r.asking.keep(ctx) // the connection's lock is free again
	}
	if err != nil && r.got != nil {
		r.notStored(ctx, err)
	}
	switch {
	case errors.Is(err, errUnchanged):
		// Another node, or a caller before us, was faster.
		return b.load(ctx, key)
	case errors.Is(err, storage.ErrNotFound):
		return held{}, nil
	case r.refused != nil:
		b.count(RefreshFailed)
		return held{}, r.clientRefused(ctx)
	case errors.Is(err, seal.ErrOpen), errors.Is(err, errNothingStored):
		return b.load(ctx, key)
	case err != nil && r.got != nil:
		b.count(RefreshFailed)
		return held{}, &UnavailableError{RetryAfter: time.Second, Cause: err}
	case err != nil && !r.asked:
		return held{}, notAskedError{err}
	case err != nil:
		b.count(RefreshFailed)
		return held{}, err
	}
	b.retries.forget(key)
	if r.broken != "" {
		r.ending.told()
		b.revokeUnsaved(ctx, key)
		b.count(Broken)
		b.log.Warn("connection is broken", "organization", key.OrganizationID, "user", key.UserID, "server", s.Slug, "reason", r.broken)
		return held{reason: r.broken}, nil
	}
	b.unsaved.forget(key) // they are stored
	if r.unusable != nil {
		b.count(RefreshFailed)
		return held{}, &UnavailableError{RetryAfter: b.retries.failed(key, b.now()), Cause: r.unusable}
	}
	b.count(Refreshed)
	h := b.hold(stored, r.grant)
	h.known = client.Endpoints
	return h, nil
}

// refresher is one refresh under way.
type refresher struct {
	b       *Broker
	key     storage.ConnectionKey
	server  storage.Server
	client  storage.OAuthClient // zero: none is stored
	version int64
	forced  bool

	was     storage.Connection // before
	grant   grant              // after
	asked   bool               // the provider knows of it
	got     *oauthflow.Tokens  // what the provider gave, whether or not it is stored yet
	broken  string             // why the connection is over
	ending  *ending            // what is revoked when the connection is over
	refused error              // the provider refuses our client
	asking  *asking            // what was learned about how to ask; nil: nobody was asked
	// unusable: the provider gave a refresh token, and no access token that can be used.
	unusable error
}

// edit runs while nobody else, on any node, can change the connection. What it leaves in c is durable before anyone
// uses it.
func (r *refresher) edit(ctx context.Context, c *storage.Connection) error {
	b := r.b
	if c.Version != r.version {
		return errUnchanged
	}
	r.was = *c
	g, err := b.openGrant(*c)
	if err != nil {
		return err
	}
	where, err := placeOf(siteOf(&r.server.Entry), r.client.Endpoints)
	switch {
	case err != nil || where != (place{c.Origin, c.Resource, c.Issuer}):
		return r.fall(c, "the server's address or issuer has changed since you connected")
	case r.client.ClientID != c.ClientID || !sameClient(r.server, r.client) || (r.client.Kind == storage.ClientRegistered && r.client.Refused):
		if left := c.ExpiresAt.Sub(b.now()); left > 0 && !r.forced {
			return &UnavailableError{RetryAfter: b.retries.failed(r.key, b.now()), Cause: errors.New("the server's OAuth client has changed")} // what there is will do
		}
		return r.fall(c, "the server's OAuth client has changed since you connected")
	case g.Refresh.Empty() && r.forced:
		return r.fall(c, "the server refuses the credential")
	case g.Refresh.Empty():
		return r.fall(c, "the access has expired")
	case r.forced && g.Forced && b.now().Sub(c.UpdatedAt) < rejectedTwice:
		return r.fall(c, "the server refuses the credential") // A15: refreshing more would not help
	}
	t, err := r.ask(ctx, g)
	switch {
	case oauthflow.ClientRefused(err):
		r.refused = err
		return err
	case oauthflow.ClassOf(err) == oauthflow.Refused:
		return r.answered(c, g, err)
	case err != nil:
		wait := b.retries.failed(r.key, b.now())
		b.log.Warn("refreshing", "organization", r.key.OrganizationID, "user", r.key.UserID, "server", r.server.Slug,
			"error", err.Error(), "retry_after", wait)
		return &UnavailableError{RetryAfter: wait, Cause: err}
	}
	r.got = &t
	g.Access, g.Forced, g.Unusable = t.Access, r.forced, false
	if r.asking != nil {
		g.Issued = issuedBy(r.asking.client, r.asking.auth)
	}
	if !t.Refresh.Empty() {
		g.Refresh = t.Refresh
	}
	sealed, err := b.sealGrant(r.key, g)
	if err != nil {
		return fmt.Errorf("sealing credential: %w", err)
	}
	r.grant = g
	c.SealedCredential, c.ExpiresAt, c.UpdatedAt = sealed, b.expiry(t), b.now().UTC()
	if t.Scope != "" {
		c.Scope = t.Scope
	}
	return nil
}

// answered handles an answer without usable tokens. The refresh token that was sent is never sent again: the
// connection is over, unless the answer holds the next one. That is kept, and redeemed once: an answer that cannot be used may
// be a slip, two of them are how the provider is.
func (r *refresher) answered(c *storage.Connection, g grant, cause error) error {
	b, next := r.b, oauthflow.HandedOut(cause)
	b.log.Warn("refreshing", "organization", r.key.OrganizationID, "user", r.key.UserID, "server", r.server.Slug, "error", cause.Error())
	if next.Empty() {
		r.ending.spare = true
		return r.fall(c, "the provider has ended the access")
	}
	again := g.Unusable
	g.Refresh, g.Unusable = next, true
	sealed, err := b.sealGrant(r.key, g)
	if err != nil {
		return fmt.Errorf("sealing credential: %w", err)
	}
	r.grant, r.got = g, &oauthflow.Tokens{Access: g.Access, Refresh: next, ExpiresAt: c.ExpiresAt}
	if again {
		r.ending.sealed = sealed // what is revoked
		return r.fall(c, "the provider's answer could not be used")
	}
	r.unusable = cause
	c.SealedCredential, c.UpdatedAt = sealed, b.now().UTC()
	return nil
}

// clientRefused follows from a refusal of the client. Whose refresh it was is not told to connect anew when an administrator has
// to act first: their tokens are as good as everybody else's then.
func (r *refresher) clientRefused(ctx context.Context) error {
	b := r.b
	switch b.clientRefused(ctx, r.server, r.asking, r.refused) {
	case clientUnknown:
		return &UnavailableError{RetryAfter: b.retries.failed(r.key, b.now()), Cause: r.refused}
	case clientFailed:
		return errAdministrator
	case clientForgotten:
		return b.end(ctx, r.key, r.version, "the provider has forgotten this gateway")
	}
	return b.end(ctx, r.key, r.version, "the provider has ended the access")
}

func (r *refresher) fall(c *storage.Connection, reason string) error {
	r.broken = reason
	fallen(c, reason, r.b.now())
	return nil
}

// ask returns new tokens: those that an earlier refresh got and could not store, else the provider's. A used refresh
// token must not be sent again: providers that detect reuse end the whole grant (RFC 9700 section 4.14).
func (r *refresher) ask(ctx context.Context, g grant) (oauthflow.Tokens, error) {
	token := g.Refresh
	if t, ok := r.b.unsaved.take(r.key, token); ok {
		return t, nil
	}
	r.asked = true
	asking, err := r.b.asking(r.server, r.client)
	if err != nil {
		return oauthflow.Tokens{}, err
	}
	r.asking = asking
	where := place{resource: r.was.Resource}
	request := oauthflow.RefreshRequest{Endpoint: r.client.Endpoints.TokenEndpoint, Token: token, Resource: where.sent(&r.server.Entry)}
	if r.server.Entry.Options.RefreshScope {
		// Not the granted ones: Entra ID names `.default` among them, and refuses it beside others (AADSTS70011).
		request.Scope = g.Asked
	}
	return asking.refresh(ctx, request)
}

// notStored keeps tokens that the provider gave and the store did not take.
func (r *refresher) notStored(ctx context.Context, cause error) {
	g, err := r.b.openGrant(r.was)
	if err != nil {
		return
	}
	if errors.Is(cause, storage.ErrNotFound) {
		// Disconnected meanwhile: nobody will ever use them.
		auth, err := r.b.auth(r.server, r.client)
		if err != nil {
			r.b.notRevoked(r.was, err)
			return
		}
		r.b.revoke(ctx, tokensOf{r.key, r.server, r.client}, auth, r.grant)
		return
	}
	r.b.log.Error("refreshed tokens are not stored yet; a crash now loses the connection", "organization", r.key.OrganizationID,
		"user", r.key.UserID, "server", r.server.Slug, "error", cause.Error())
	r.b.unsaved.put(r.key, unsavedTokens{spent: g.Refresh, tokens: *r.got, grant: g.ID, server: r.server, client: r.client})
}
