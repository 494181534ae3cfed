package connection

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/google/uuid"

	"github.com/durward-gateway/durward/internal/credential/oauth"
	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/storage"
)

// CallbackResult describes the end of an attempt.
type CallbackResult struct {
	storage.ConnectionKey
	Server    storage.Server
	OK        bool
	Reason    string // the reason for a failure, in words for the user; nothing that the provider wrote
	ReturnURL string // the next address of the browser, with the outcome; "": our own page
	Undo      string // for Undo; "" unless OK
	// Refused: the browser belongs to somebody else, and the attempt is spent. Nothing was stored, and no provider was
	// asked.
	Refused bool
	// Held is a handle for Resume. Its attempt waits for its user to log in with this browser. Then only the key and
	// the server are set besides Held.
	Held string
}

// failure is the failed end of an attempt: words for the user, and the cause for the log.
type failure struct {
	public string
	cause  error
}

func (f *failure) Error() string { return f.cause.Error() }
func (f *failure) Unwrap() error { return f.cause }

func fail(public string, cause error) error { return &failure{public: public, cause: cause} }

// Callback ends the attempt that the query's state names, if the browser is found to be the browser of the attempt's
// user. A code that somebody else obtained must not connect their account to a victim, nor a victim's account to them
// (A02, A03). First of all the attempt is spent, so that nothing happens twice. For an unknown attempt the error is
// ErrState, and no provider is asked. A failed attempt is a result, not an error, and does not change an existing
// connection.
func (b *Broker) Callback(ctx context.Context, query url.Values, check BrowserCheck) (CallbackResult, error) {
	state, _ := only(query, "state") // "" if there are several
	if state == "" || len(state) > maxState {
		return CallbackResult{}, ErrState
	}
	return b.finish(ctx, stateHash(state), query, check)
}

// Resume ends an attempt that Callback held, after the browser's user has logged in. It spends the attempt like any
// other: a handle works once, for two minutes.
func (b *Broker) Resume(ctx context.Context, handle string, check BrowserCheck) (CallbackResult, error) {
	if handle == "" || len(handle) > maxState {
		return CallbackResult{}, ErrState
	}
	return b.finish(ctx, heldHash(handle), nil, check)
}

// finish ends an attempt. query is the provider's answer. It is nil for a held attempt, which contains the answer.
func (b *Broker) finish(ctx context.Context, hash []byte, query url.Values, check BrowserCheck) (CallbackResult, error) {
	if !b.begin() {
		return CallbackResult{}, ErrClosed
	}
	defer b.work.Done()
	// From here on we continue even if the browser leaves: the code can be redeemed only once.
	ctx, cancel := b.apart(ctx, providerDeadline)
	defer cancel()
	a, server, err := b.take(ctx, hash)
	if err != nil {
		return CallbackResult{}, err
	}
	r := CallbackResult{ConnectionKey: a.ConnectionKey, Server: server}
	whose, err := check(ctx, a.ConnectionKey)
	if err != nil {
		return CallbackResult{}, fmt.Errorf("finding out whose browser it is: %w", err)
	}
	if whose == Foreign || (whose == Unproven && query == nil) {
		r.Refused = true
		return r, nil
	}
	made, ready, query, err := b.judge(ctx, server, a, query)
	if err == nil && whose == Unproven {
		r.Held, err = b.keepAnswer(ctx, a, made, query)
		return r, err
	}
	var g grant
	if err == nil {
		g, err = b.redeem(ctx, server, a, ready)
	}
	if err != nil {
		r.Reason = b.failAttempt(ctx, server, a, whose, err)
		r.ReturnURL = WithOutcome(made.ReturnURL, false, server.Slug)
		return r, nil
	}
	r.OK, r.ReturnURL = true, WithOutcome(made.ReturnURL, true, server.Slug)
	r.Undo, err = b.undoToken(a.ConnectionKey, g.ID)
	return r, err
}

// take spends an attempt. The attempt and its server must exist.
func (b *Broker) take(ctx context.Context, hash []byte) (storage.Attempt, storage.Server, error) {
	a, err := b.store.TakeAttempt(ctx, hash, b.now().UTC())
	if errors.Is(err, storage.ErrNotFound) {
		return storage.Attempt{}, storage.Server{}, ErrState
	}
	if err != nil {
		return storage.Attempt{}, storage.Server{}, fmt.Errorf("taking attempt: %w", err)
	}
	server, err := b.store.Server(ctx, a.OrganizationID, a.ServerID)
	if errors.Is(err, storage.ErrNotFound) {
		return storage.Attempt{}, storage.Server{}, ErrState
	}
	if err != nil {
		return storage.Attempt{}, storage.Server{}, fmt.Errorf("reading server: %w", err)
	}
	return a, server, nil
}

// judge opens an attempt and prepares the provider's answer for redeeming. If query is nil, it uses the kept answer.
// After an error it returns as much of the attempt as it could open.
func (b *Broker) judge(ctx context.Context, server storage.Server, a storage.Attempt, query url.Values) (attempt, exchange, url.Values, error) {
	made, err := b.openAttempt(a)
	if err != nil {
		return made, exchange{}, nil, err
	}
	if query == nil {
		if query, err = url.ParseQuery(made.Answer.Reveal()); err != nil {
			return made, exchange{}, nil, err
		}
	}
	ready, err := b.prepare(ctx, server, a, made, query)
	return made, ready, query, err
}

// failAttempt notes the reason for a failed attempt and returns the text for its user. The input of an unproven browser
// may come from anybody who has seen the state. It is noted only in the log.
func (b *Broker) failAttempt(ctx context.Context, server storage.Server, a storage.Attempt, whose Whose, err error) (public string) {
	f := &failure{public: "The connection could not be made.", cause: err}
	if errors.Is(err, storage.ErrUnavailable) {
		f.public = "The connection could not be made just now. Please connect again."
	}
	_ = errors.As(err, &f)
	b.log.Warn("connection attempt failed", "organization", a.OrganizationID, "user", a.UserID, "server", server.Slug,
		"reason", f.public, "error", f.cause.Error())
	if whose == Own {
		if oauth.ClientRefused(err) {
			b.doubt(server)
		}
		b.noteFailure(ctx, a, KindOf(&server.Entry), f.public)
	}
	return f.public
}

func (b *Broker) openAttempt(a storage.Attempt) (attempt, error) {
	plain, err := b.keyring.Open(a.Sealed, attemptAD(a.ConnectionKey, a.StateHash))
	if err != nil {
		return attempt{}, fmt.Errorf("opening attempt: %w", err)
	}
	defer clear(plain)
	made, err := decodeAttempt(plain)
	if err != nil {
		return attempt{}, fmt.Errorf("decoding attempt: %w", seal.ErrOpen)
	}
	return made, nil
}

// exchange holds everything that is needed to redeem a code.
type exchange struct {
	client  storage.OAuthClient
	where   place
	asked   string // the requested scopes
	request oauth.ExchangeRequest
}

// prepare checks the provider's answer against the attempt and against the present configuration. It sends no request.
func (b *Broker) prepare(ctx context.Context, s storage.Server, a storage.Attempt, made attempt, query url.Values) (exchange, error) {
	const begin = "The server's configuration has changed meanwhile. Please connect again."
	client, err := b.store.OAuthClient(ctx, a.OrganizationID, a.ServerID)
	if err != nil {
		return exchange{}, fail(begin, fmt.Errorf("reading OAuth client: %w", err))
	}
	where, err := placeOf(siteOf(&s.Entry), client.Endpoints)
	if err != nil {
		return exchange{}, fail(begin, err)
	}
	if KindOf(&s.Entry) != storage.ProviderOAuth2 || client.ClientID != made.ClientID || made.RedirectURI != b.app.RedirectURI ||
		!sameClient(s, client) || where != (place{made.Origin, made.Resource, a.Issuer}) {
		return exchange{}, fail(begin, errors.New("client or upstream is not the one that the attempt began with"))
	}
	if made.TokenEndpoint != "" && made.TokenEndpoint != client.Endpoints.TokenEndpoint {
		// Otherwise an administrator could have the code of a login in progress sent elsewhere, and redeem it.
		return exchange{}, fail(begin, errors.New("the token endpoint is not the one that the attempt began with"))
	}
	if outdated(client, &s.Entry) {
		// Otherwise a secret that is for another provider now would be sent to this one.
		return exchange{}, fail(begin, errors.New("the directory entry names other endpoints than those that the attempt began with"))
	}
	code, err := codeOf(query, a.Issuer, client)
	if err != nil {
		return exchange{}, err
	}
	return exchange{client: client, where: where, asked: made.Scope, request: oauth.ExchangeRequest{
		Endpoint: client.Endpoints.TokenEndpoint, Code: code, RedirectURI: made.RedirectURI, Verifier: made.Verifier,
		Resource: where.sent(&s.Entry),
	}}, nil
}

// redeem exchanges the code and stores the resulting tokens.
func (b *Broker) redeem(ctx context.Context, s storage.Server, a storage.Attempt, ready exchange) (grant, error) {
	client, where := ready.client, ready.where
	asking, err := b.asking(s, client)
	if err != nil {
		return grant{}, err
	}
	tokens, err := asking.exchange(ctx, ready.request)
	asking.keep(ctx)
	_, unusable := errors.AsType[*oauth.UnusableError](err)
	switch {
	case oauth.ClientRefused(err):
		return grant{}, fail(b.clientRefused(ctx, s, asking, err).public(), err)
	case oauth.ResourceRefused(err) && ready.request.Resource != "":
		return grant{}, fail(resourceRefused, err)
	case providerDown(err):
		return grant{}, fail("The provider could not be reached. Please try again.", err)
	case unusable:
		b.revoke(ctx, tokensOf{a.ConnectionKey, s, client}, asking.auth, grant{Refresh: oauth.HandedOut(err)}) // nobody will ever use it
		return grant{}, fail("The provider's answer could not be understood.", err)
	case err != nil:
		return grant{}, fail("The provider refused to connect. Please try again.", err)
	}
	g := grant{ID: uuid.Must(uuid.NewV7()).String(), Access: tokens.Access, Refresh: tokens.Refresh, Asked: ready.asked, Issued: issuedBy(client, asking.auth)}
	c := storage.Connection{
		ConnectionKey: a.ConnectionKey, ID: a.ConnectionID, Kind: storage.ProviderOAuth2, ClientID: client.ClientID,
		// A provider may leave out scope if it grants the requested scope (RFC 6749 section 5.1).
		Scope: cmp.Or(tokens.Scope, ready.asked), Origin: where.origin, Resource: where.resource, Issuer: where.issuer, ExpiresAt: b.expiry(tokens),
	}
	if _, err := b.putConnection(ctx, c, g); err != nil {
		b.revoke(ctx, tokensOf{a.ConnectionKey, s, client}, asking.auth, g) // nobody will ever use them
		return grant{}, fmt.Errorf("storing connection: %w", err)
	}
	if s.Status == storage.ServerError {
		if err := b.activate(ctx, s); err != nil {
			b.log.Error("noting server status", "organization", s.OrganizationID, "server", s.Slug, "error", err.Error())
		}
	}
	return g, nil
}

const resourceRefused = "The provider refuses the parameter resource. An administrator must set resource to off in the server's directory entry."

// codeOf reads the provider's answer. It checks the issuer first, before anything is sent or believed. This keeps a
// code of one provider from being redeemed at another (RFC 9207 section 2.4, mix-up). If endpoints were configured
// without an issuer, an issuer in the answer must be of the origin that the user was sent to. Otherwise a provider that
// sends the user on to another provider would be given the other one's code, and our verifier with it (attack A04).
func codeOf(query url.Values, issuer string, client storage.OAuthClient) (seal.Secret, error) {
	const unclear, foreign = "The provider's answer could not be understood.", "The answer did not come from the expected provider."
	iss, ok := only(query, "iss")
	if !ok {
		return seal.Secret{}, fail(unclear, errors.New("several iss parameters"))
	}
	if err := oauth.ValidateIssuer(iss, issuer, client.IssuerInResponse); err != nil {
		return seal.Secret{}, fail(foreign, err)
	}
	if issuer == "" && iss != "" && !sameOrigin(iss, client.Endpoints.AuthorizationEndpoint) {
		return seal.Secret{}, fail(foreign, errors.New("iss is not of the authorization endpoint's origin, and no issuer is configured"))
	}
	c, err := oauth.ParseCallback(query)
	switch {
	case err != nil:
		return seal.Secret{}, fail(unclear, err)
	case c.Denied != nil && c.Denied.Code == oauth.CodeAccessDenied:
		return seal.Secret{}, fail("Access was denied at the provider.", c.Denied)
	case c.Denied != nil && oauth.ResourceRefused(c.Denied):
		return seal.Secret{}, fail(resourceRefused, c.Denied)
	case c.Denied != nil:
		return seal.Secret{}, fail("The provider refused to connect.", c.Denied)
	}
	return c.Code, nil
}

// only returns the single value of a parameter, and "" when there is none. ok is false when there are several values,
// because two readers could choose different ones.
func only(query url.Values, name string) (value string, ok bool) {
	switch v := query[name]; len(v) {
	case 0:
		return "", true
	case 1:
		return v[0], true
	}
	return "", false
}

// maxTokenLifetime limits the lifetime that providers state. A longer one is as good as no expiry.
const maxTokenLifetime = 365 * 24 * time.Hour

func (b *Broker) expiry(t oauth.Tokens) time.Time {
	if t.ExpiresAt.IsZero() {
		return time.Time{}
	}
	at, most := t.ExpiresAt.UTC(), b.now().UTC().Add(maxTokenLifetime)
	if at.After(most) {
		at = most
	}
	return at.Truncate(time.Microsecond)
}

// noteFailure stores the reason of a failed attempt, unless there is a working connection.
func (b *Broker) noteFailure(ctx context.Context, a storage.Attempt, kind storage.Provider, reason string) {
	now := b.now().UTC()
	err := b.store.CreateConnection(ctx, storage.Connection{
		ConnectionKey: a.ConnectionKey, ID: a.ConnectionID, Status: storage.ConnectionError, Kind: kind, Reason: reason,
		CreatedAt: now, UpdatedAt: now,
	})
	if errors.Is(err, storage.ErrConflict) {
		_, err = b.store.UpdateConnection(ctx, a.ConnectionKey, func(_ context.Context, c *storage.Connection) error {
			if c.Status == storage.ConnectionConnected {
				return errUnchanged
			}
			c.Reason, c.UpdatedAt = reason, now
			return nil
		})
	}
	if err != nil && !errors.Is(err, errUnchanged) && !errors.Is(err, storage.ErrNotFound) {
		b.log.Error("noting failed attempt", "organization", a.OrganizationID, "user", a.UserID, "error", err.Error())
	}
}

// errUnchanged ends an edit that has nothing to write.
var errUnchanged = errors.New("unchanged")
