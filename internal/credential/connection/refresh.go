package connection

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/durward-gateway/durward/internal/credential/oauth"
	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/storage"
)

// rejectedTwice is the time within which a second refusal breaks the connection: the upstream refuses a token so soon
// after its predecessor. A third token would not help either.
const rejectedTwice = 5 * time.Minute

// Rejected handles a 401 answer of the upstream to credential. Once per token it asks the provider for another token
// and returns it. A caller gets a token that another caller has received meanwhile. If a new token cannot help, the
// connection is broken and the error is *NotConnectedError. That is so when the kind has no refresh, when the provider
// refuses, or when the previous token was refused just now. If there is no connection to break, the error is
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

// refresh gets a newer credential than version. All callers with the same version share one refresh, which continues
// when they leave. hurried callers have a token that still works, and do not wait long.
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
			// A panic in singleflight would end the process.
			if r := recover(); r != nil {
				// The panic value could be a secret (L02).
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
		cred, err := h.cred.on(s.Entry.AuthParams)
		return cred.Renewed(), err
	case <-late:
		return Credential{}, &UnavailableError{RetryAfter: time.Second, Cause: errors.New("the provider is slow")}
	case <-ctx.Done():
		return Credential{}, context.Cause(ctx)
	}
}

// storePauses are the pauses between tries of a refresh whose store does not answer in time. Without further tries one
// slow answer would refuse everybody who waits for the refresh: hundreds of calls at the moment of an expiry.
var storePauses = []time.Duration{250 * time.Millisecond, 500 * time.Millisecond, time.Second}

// notAskedError is the failure of a refresh that sent nothing to the provider. It can be tried again.
type notAskedError struct{ error }

func (e notAskedError) Unwrap() error { return e.error }

// refreshPatiently refreshes, and tries again if the store was unavailable before the provider was asked.
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
		r.asking.keep(ctx) // the lock on the connection is free again
	}
	if err != nil && r.got != nil {
		r.notStored(ctx, err)
	}
	switch {
	case errors.Is(err, errUnchanged):
		// Another node, or an earlier caller, was faster.
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
	b.unsaved.forget(key) // they are stored now
	if r.unusable != nil {
		b.count(RefreshFailed)
		return held{}, &UnavailableError{RetryAfter: b.retries.failed(key, b.now()), Cause: r.unusable}
	}
	b.count(Refreshed)
	h := b.hold(stored, r.grant)
	h.known = client.Endpoints
	return h, nil
}

// refresher is one refresh in progress.
type refresher struct {
	b       *Broker
	key     storage.ConnectionKey
	server  storage.Server
	client  storage.OAuthClient // zero: no client is stored
	version int64
	forced  bool

	was     storage.Connection // before the refresh
	grant   grant              // after the refresh
	asked   bool               // the provider may have been asked
	got     *oauth.Tokens      // tokens from the provider, stored or not
	broken  string             // reason for which the connection is over
	ending  *ending            // tokens to revoke when the connection is over
	refused error              // the error when the provider refuses our client
	asking  *asking            // facts learned about the form of requests; nil: nobody was asked
	// unusable is the error of an answer with a refresh token, but without a usable access token.
	unusable error
}

// edit runs while nobody else, on any node, can change the connection. The contents of c afterwards are durable before
// anyone uses them.
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
	if hopeless, err := r.giveUp(c, g); hopeless {
		return err
	}
	t, err := r.ask(ctx, g)
	switch {
	case oauth.ClientRefused(err):
		r.refused = err
		return err
	case oauth.ClassOf(err) == oauth.Refused:
		return r.answered(c, g, err)
	case err != nil:
		wait := b.retries.failed(r.key, b.now())
		b.log.Warn("refreshing", "organization", r.key.OrganizationID, "user", r.key.UserID, "server", r.server.Slug,
			"error", err.Error(), "retry_after", wait)
		return &UnavailableError{RetryAfter: wait, Cause: err}
	}
	return r.take(c, g, t)
}

// giveUp handles a connection for which the provider cannot be asked any more. It reports whether it is one.
func (r *refresher) giveUp(c *storage.Connection, g grant) (hopeless bool, err error) {
	where, err := placeOf(siteOf(&r.server.Entry), r.client.Endpoints)
	switch {
	case err != nil || where != (place{c.Origin, c.Resource, c.Issuer}):
		return true, r.fall(c, "the server's address or issuer has changed since you connected")
	case r.client.ClientID != c.ClientID || !sameClient(r.server, r.client) || (r.client.Kind == storage.ClientRegistered && r.client.Refused):
		return true, r.changed(c, "the server's OAuth client has changed")
	case !g.Issued.mayGoTo(r.client.Endpoints.TokenEndpoint, &r.server.Entry), r.withholds(g):
		return true, r.changed(c, "the server's token endpoint has changed")
	case g.Refresh.Empty(): // a credential without a refresh token comes here only when the server refuses it
		return true, r.fall(c, "the server refuses the credential")
	case r.forced && g.Forced && r.b.now().Sub(c.UpdatedAt) < rejectedTwice:
		return true, r.fall(c, "the server refuses the credential") // A15: more refreshes would not help
	}
	return false, nil
}

// take puts new tokens into the connection.
func (r *refresher) take(c *storage.Connection, g grant, t oauth.Tokens) error {
	b := r.b
	r.got = &t
	g.Access, g.Forced, g.Unusable = t.Access, r.forced, false
	if r.asking != nil {
		g.Issued = g.Issued.again(r.asking.client, r.asking.auth, &r.server.Entry)
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

// withholds reports whether a refresh would send a secret to a former provider that was configured for another one. A
// secret that cannot be read fails later, where it is sent.
func (r *refresher) withholds(g grant) bool {
	if !outdated(r.client, &r.server.Entry) || r.client.Kind != storage.ClientConfigured {
		return false
	}
	auth, err := r.b.auth(r.server, r.client)
	return err == nil && !auth.Secret.Empty() && !g.Issued.had(auth.ID, auth.Secret)
}

// changed handles a change that leaves nobody to ask for the next token. The connection is over when the present token
// is: until then it works, and the change may be taken back.
func (r *refresher) changed(c *storage.Connection, what string) error {
	if now := r.b.now(); c.ExpiresAt.After(now) && !r.forced {
		return &UnavailableError{RetryAfter: r.b.retries.failed(r.key, now), Cause: errors.New(what)}
	}
	return r.fall(c, what+" since you connected")
}

// answered handles an answer without usable tokens. The refresh token that was sent is never sent again. So the
// connection is over, unless the answer holds the next refresh token. That token is kept, and redeemed once. One
// unusable answer may be an accident; two of them are the provider's normal behavior.
func (r *refresher) answered(c *storage.Connection, g grant, cause error) error {
	b, next := r.b, oauth.HandedOut(cause)
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
	r.grant, r.got = g, &oauth.Tokens{Access: g.Access, Refresh: next, ExpiresAt: c.ExpiresAt}
	if again {
		r.ending.sealed = sealed // the tokens to revoke
		return r.fall(c, "the provider's answer could not be used")
	}
	r.unusable = cause
	c.SealedCredential, c.UpdatedAt = sealed, b.now().UTC()
	return nil
}

// clientRefused handles a refusal of the client. If an administrator has to act first, the user is not told to connect
// again: the user's tokens are then as good as those of all others.
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

// ask returns new tokens. These are the tokens that an earlier refresh got and could not store, otherwise the
// provider's. A used refresh token must not be sent again: providers that detect reuse end the whole grant (RFC 9700
// section 4.14).
func (r *refresher) ask(ctx context.Context, g grant) (oauth.Tokens, error) {
	token := g.Refresh
	if t, ok := r.b.unsaved.take(r.key, token); ok {
		return t, nil
	}
	r.asked = true
	asking, err := r.b.asking(r.server, r.client)
	if err != nil {
		return oauth.Tokens{}, err
	}
	r.asking = asking
	where := place{resource: r.was.Resource}
	request := oauth.RefreshRequest{Endpoint: r.client.Endpoints.TokenEndpoint, Token: token, Resource: where.sent(&r.server.Entry)}
	if r.server.Entry.Options.RefreshScope {
		// The granted scopes are not sent: Entra ID lists `.default` among them, and refuses it beside others
		// (AADSTS70011).
		request.Scope = g.Asked
	}
	return asking.refresh(ctx, request)
}

// notStored keeps tokens from the provider that the store did not take.
func (r *refresher) notStored(ctx context.Context, cause error) {
	if errors.Is(cause, storage.ErrNotFound) {
		// The user has disconnected meanwhile: nobody will ever use these tokens.
		if r.asking == nil { // an earlier refresh got them
			r.b.revokeUnsaved(ctx, r.key)
			return
		}
		r.b.revoke(ctx, tokensOf{r.key, r.server, r.client}, r.asking.auth, r.grant)
		return
	}
	g, err := r.b.openGrant(r.was)
	if err != nil {
		return
	}
	r.b.log.Error("refreshed tokens are not stored yet; a crash now loses the connection", "organization", r.key.OrganizationID,
		"user", r.key.UserID, "server", r.server.Slug, "error", cause.Error())
	r.b.unsaved.put(r.key, unsavedTokens{spent: g.Refresh, tokens: *r.got, grant: g.ID, issued: r.grant.Issued, server: r.server, client: r.client})
}
