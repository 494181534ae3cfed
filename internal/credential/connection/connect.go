package connection

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/durward-gateway/durward/internal/credential/directory"
	"github.com/durward-gateway/durward/internal/credential/oauth"
	"github.com/durward-gateway/durward/internal/proxy/netguard"
	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/storage"
)

// maxCredential limits the length of a credential that a user types, in bytes.
const maxCredential = 8 << 10

// ConnectRequest holds a user's input for a connect. The kind of the directory entry determines which members are
// needed.
type ConnectRequest struct {
	ReturnURL          string // "": the browser ends on our own page
	APIKey             seal.Secret
	BearerToken        seal.Secret
	Username, Password seal.Secret
}

// ConnectResult is the result of a connect. AuthURL is the address that the user must visit; nil when already
// connected.
type ConnectResult struct {
	AuthURL      *string
	ConnectionID string
	State        string // the OAuth state parameter; "" without AuthURL
	Message      string
}

// Connect begins a connection of who to server. It makes the connection at once if no provider needs to be asked. It
// never disturbs an existing connection. Errors: *ReturnURLError, *BadRequestError, *ConfigurationError, and the
// store's.
func (b *Broker) Connect(ctx context.Context, who Who, server storage.Server, req ConnectRequest) (ConnectResult, error) {
	if server.OrganizationID != who.OrganizationID {
		return ConnectResult{}, storage.ErrNotFound
	}
	if req.ReturnURL != "" {
		if err := b.CheckReturnURL(req.ReturnURL); err != nil {
			return ConnectResult{}, err
		}
	}
	key := storage.ConnectionKey{OrganizationID: who.OrganizationID, UserID: who.UserID, ServerID: server.ID}
	kind := KindOf(&server.Entry)
	if kind == storage.ProviderOAuth2 {
		return b.connectOAuth(ctx, key, server, req)
	}
	g, err := typedGrant(kind, req)
	if err != nil {
		return ConnectResult{}, err
	}
	return b.connectTyped(ctx, key, server, kind, g)
}

// KindOf returns the way in which a server authenticates. An entry that requires no authentication has kind none for
// any provider.
func KindOf(e *storage.DirectoryEntry) storage.Provider {
	if !e.RequiresAuth {
		return storage.ProviderNone
	}
	return e.Provider
}

// NeedsAccount reports whether users connect an account of theirs before they can use servers of an entry.
func NeedsAccount(e *storage.DirectoryEntry) bool {
	kind := KindOf(e)
	return kind != storage.ProviderNone && !kind.Obtained()
}

// typedGrant checks a credential that the user typed.
func typedGrant(kind storage.Provider, req ConnectRequest) (grant, error) {
	g := grant{ID: uuid.Must(uuid.NewV7()).String()}
	switch kind {
	case storage.ProviderNone, storage.ProviderTokenExchange, storage.ProviderClientCredentials, storage.ProviderWorkloadIdentity:
		return g, nil
	case storage.ProviderAPIKey:
		g.Key = req.APIKey
		return g, checkTyped("api_key", g.Key, isVisibleASCII)
	case storage.ProviderBearerToken:
		g.Key = req.BearerToken
		return g, checkTyped("bearer_token", g.Key, isVisibleASCII)
	case storage.ProviderBasicAuth:
		g.Username, g.Password = req.Username, req.Password
		if err := checkTyped("username", g.Username, isPrintable); err != nil {
			return grant{}, err
		}
		// RFC 7617 section 2: the first colon ends the user name.
		if strings.Contains(g.Username.Reveal(), ":") {
			return grant{}, &BadRequestError{Field: "username", Message: "username must not contain a colon"}
		}
		return g, checkTyped("password", g.Password, isPrintable)
	}
	return grant{}, fmt.Errorf("connecting: unknown kind of authentication %q", kind)
}

func checkTyped(field string, typed seal.Secret, fit func(string) bool) error {
	value := typed.Reveal()
	switch {
	case value == "":
		return &BadRequestError{Field: field, Message: field + " is required to connect to this server"}
	case len(value) > maxCredential:
		return &BadRequestError{Field: field, Message: fmt.Sprintf("%s is longer than %d bytes", field, maxCredential)}
	case !fit(value):
		return &BadRequestError{Field: field, Message: field + " has characters that a credential cannot have"}
	}
	return nil
}

// isVisibleASCII reports whether s may stand in a header unchanged. A line break there would add headers (CWE-113).
func isVisibleASCII(s string) bool { return visible(s, false) }

// isPrintable reports whether s may stand in a user name or password. Those are sent as base64.
func isPrintable(s string) bool {
	return utf8.ValidString(s) && strings.IndexFunc(s, unicode.IsControl) < 0
}

func (b *Broker) connectTyped(ctx context.Context, key storage.ConnectionKey, s storage.Server, kind storage.Provider, g grant) (ConnectResult, error) {
	if err := directory.CheckAuthParams(s.Entry.AuthParams); err != nil {
		return ConnectResult{}, &ConfigurationError{Cause: err}
	}
	where, err := placeOf(siteOf(&s.Entry), storage.OAuthEndpoints{})
	if err != nil {
		return ConnectResult{}, &ConfigurationError{Cause: err}
	}
	c := storage.Connection{ConnectionKey: key, Kind: kind, Origin: where.origin}
	c, err = b.putConnection(ctx, c, g)
	if err != nil {
		return ConnectResult{}, err
	}
	return ConnectResult{ConnectionID: c.ID, Message: "Connected"}, nil
}

// putConnection stores g as the connection of its key. The connection's id stays the same.
func (b *Broker) putConnection(ctx context.Context, c storage.Connection, g grant) (storage.Connection, error) {
	sealed, err := b.sealGrant(c.ConnectionKey, g)
	if err != nil {
		return storage.Connection{}, fmt.Errorf("sealing credential: %w", err)
	}
	if c.ID == "" {
		former, err := b.formerConnection(ctx, c.ConnectionKey)
		if err != nil {
			return storage.Connection{}, err
		}
		if c.ID, err = idAfter(former); err != nil {
			return storage.Connection{}, err
		}
	}
	now := b.now().UTC()
	c.Status, c.SealedCredential, c.Reason, c.CreatedAt, c.UpdatedAt = storage.ConnectionConnected, sealed, "", now, now
	e := b.newEnding()
	stored, err := b.store.PutConnection(e.in(ctx), c)
	if err != nil {
		return storage.Connection{}, fmt.Errorf("storing connection: %w", err)
	}
	b.retries.forget(c.ConnectionKey)
	b.wants.forget(c.ConnectionKey) // a permission that is missed now is missed of this connection
	e.told()
	b.dropUnsaved(ctx, c)
	return stored, nil
}

// formerConnection reads the stored connection. It returns the zero value when there is none.
func (b *Broker) formerConnection(ctx context.Context, key storage.ConnectionKey) (storage.Connection, error) {
	c, err := b.store.Connection(ctx, key)
	if err != nil && !errors.Is(err, storage.ErrNotFound) {
		return storage.Connection{}, fmt.Errorf("reading connection: %w", err)
	}
	return c, nil
}

// idAfter returns the id of the former connection, or a new one when there was none.
func idAfter(former storage.Connection) (string, error) {
	if former.ID != "" {
		return former.ID, nil
	}
	id, err := uuid.NewV7()
	if err != nil {
		return "", fmt.Errorf("drawing connection id: %w", err)
	}
	return id.String(), nil
}

// attempt holds the sealed part of a storage.Attempt.
type attempt struct {
	Verifier    seal.Secret
	RedirectURI string
	ReturnURL   string
	ClientID    string
	Origin      string
	Resource    string
	Scope       string // the requested scopes, blank-separated
	// TokenEndpoint is the endpoint that redeems the code. It is "" in an attempt that an older version stored.
	TokenEndpoint string
	// Answer holds the provider's answer, including the code, until the user has logged in. It is empty for other
	// attempts.
	Answer seal.Secret
}

func attemptAD(key storage.ConnectionKey, stateHash []byte) seal.AD {
	return seal.AttemptPlace(key.OrganizationID, key.UserID, key.ServerID, stateHash)
}

func (b *Broker) connectOAuth(ctx context.Context, key storage.ConnectionKey, s storage.Server, req ConnectRequest) (ConnectResult, error) {
	client, err := b.obtainClient(ctx, s)
	if err != nil {
		b.log.Warn("no OAuth client", "organization", s.OrganizationID, "server", s.Slug, "error", err.Error(), "advice", netguard.Advice(err))
		return ConnectResult{}, err
	}
	where, err := placeOf(siteOf(&s.Entry), client.Endpoints)
	if err != nil {
		return ConnectResult{}, &ConfigurationError{Cause: err}
	}
	former, err := b.formerConnection(ctx, key)
	if err != nil {
		return ConnectResult{}, err
	}
	scopes := scopesFor(client, former)
	state, pkce := oauth.NewState(), oauth.NewPKCE()
	hash := stateHash(state)
	authURL, err := b.oauth.AuthorizationURL(oauth.AuthorizationRequest{
		Endpoint: client.Endpoints.AuthorizationEndpoint, ClientID: client.ClientID, RedirectURI: b.app.RedirectURI, State: state,
		Challenge: pkce.Challenge, Resource: where.sent(&s.Entry), Scopes: scopes, Params: s.Entry.Options.AuthorizationParams,
	})
	if err != nil {
		return ConnectResult{}, &ConfigurationError{Cause: err}
	}
	if u, err := url.Parse(authURL); err != nil {
		return ConnectResult{}, &ConfigurationError{Cause: err}
	} else if err := b.checkURL(u); err != nil {
		return ConnectResult{}, &ConfigurationError{Cause: fmt.Errorf("checking authorization endpoint: %w", err)}
	}
	plain, err := attempt{
		Verifier: pkce.Verifier, RedirectURI: b.app.RedirectURI, ReturnURL: req.ReturnURL, ClientID: client.ClientID,
		Origin: where.origin, Resource: where.resource, Scope: strings.Join(scopes, " "), TokenEndpoint: client.Endpoints.TokenEndpoint,
	}.encode()
	if err != nil {
		return ConnectResult{}, fmt.Errorf("encoding attempt: %w", err)
	}
	sealed, err := b.keyring.Seal(plain, attemptAD(key, hash))
	if err != nil {
		return ConnectResult{}, fmt.Errorf("sealing attempt: %w", err)
	}
	id, err := idAfter(former)
	if err != nil {
		return ConnectResult{}, err
	}
	now := b.now().UTC()
	if err := b.store.CreateAttempt(ctx, storage.Attempt{
		ConnectionKey: key, StateHash: hash, ConnectionID: id, Issuer: where.issuer, Sealed: sealed,
		CreatedAt: now, ExpiresAt: now.Add(attemptLifetime),
	}); err != nil {
		return ConnectResult{}, fmt.Errorf("storing attempt: %w", err)
	}
	return ConnectResult{
		AuthURL: &authURL, ConnectionID: id, State: state, Message: "Open auth_url in a browser to connect",
	}, nil
}
