package oidclogin

import (
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"sync"
	"time"

	"github.com/durward-gateway/durward/internal/credential/oauth"
	"github.com/durward-gateway/durward/internal/identity/caller"
	"github.com/durward-gateway/durward/internal/identity/token"
	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/internal/strictjson"
)

// Errors that callers distinguish.
var (
	// ErrAnswer says that the browser came back with something that is not the provider's answer to this attempt.
	ErrAnswer = errors.New("this is not the answer to the login that was begun")
	// ErrDenied says that the provider, or its user, refused the login.
	ErrDenied = errors.New("the identity provider did not log in")
	// ErrRefused says that the provider refuses the gateway's client or its request where codes are redeemed, or that
	// its answer lacks something that a login needs. It would do so again: only the operator can mend it.
	ErrRefused = errors.New("the identity provider gave the gateway no ID token")
	// ErrProvider says that the provider cannot be asked, or that its answers cannot be used. Users can only try
	// again.
	ErrProvider = errors.New("the identity provider cannot be asked")
)

// Times of a login.
const (
	// Lifetime is the time that a user has for logging in.
	Lifetime = 10 * time.Minute
	// metadataLifetime is the time for which the provider's endpoints are cached.
	metadataLifetime = 10 * time.Minute
)

// scopeOffline asks for a refresh token (OpenID Connect Core section 11).
const scopeOffline = "offline_access"

// scopes returns the scopes for an ID token with the claims that describe the user (OpenID Connect Core section 5.4).
// offline adds the one for a refresh token where the provider lists it; others give one unasked, or none.
func scopes(d oauth.Discovery, offline bool) []string {
	scopes := []string{"openid", "profile", "email"}
	if offline && d.ListsScope(scopeOffline) {
		scopes = append(scopes, scopeOffline)
	}
	return scopes
}

// Protocol is the client side of OAuth, as *oauth.Client implements it.
type Protocol interface {
	FetchProvider(ctx context.Context, issuer string) (oauth.Discovery, error)
	ObtainClient(ctx context.Context, d oauth.Discovery, app oauth.Application) (oauth.Registration, error)
	AuthorizationURL(r oauth.AuthorizationRequest) (string, error)
	Exchange(ctx context.Context, r oauth.ExchangeRequest) (oauth.Tokens, error)
	Refresh(ctx context.Context, r oauth.RefreshRequest) (oauth.Tokens, error)
	Userinfo(ctx context.Context, endpoint string, access seal.Secret) (strictjson.Value, error)
}

var _ Protocol = (*oauth.Client)(nil)

// Options describes the provider at which users log in, and the client. All members are required, except for Secret,
// Lacks, Log and Now.
type Options struct {
	Issuer      string // exactly as in its tokens
	Client      string // client_id
	Secret      seal.Secret
	RedirectURI string
	Verifier    *token.IDVerifier
	OAuth       Protocol
	Lacks       func(*token.Claims) caller.Lack // decides whether userinfo is asked; nil: never
	Log         *slog.Logger                    // default none
	Now         func() time.Time                // default time.Now
}

// Provider is an OpenID provider at which users log in. It is safe for concurrent use.
type Provider struct {
	Options

	mu    sync.Mutex
	known oauth.Discovery
	until time.Time // the time until which known is used
	place string    // where the client's secret goes, when the provider has shown that
}

// New makes a provider. The provider is not asked before the first login.
func New(o Options) *Provider {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Provider{Options: o}
}

// Purpose says what a login is for.
type Purpose struct {
	Return  string `json:"return"`               // where the browser goes afterwards
	Client  bool   `json:"for_client,omitempty"` // it is for an OAuth client, and does not only log in with the browser
	Offline bool   `json:"offline,omitempty"`    // a refresh token is asked for
	Prompt  string `json:"prompt,omitempty"`     // what the provider must ask (OpenID Connect Core section 3.1.2.1); "": as it likes
}

// Attempt holds a login that has begun. Only the gateway may read it: it is sealed into the browser's cookie.
type Attempt struct {
	Issuer   string
	State    string
	Nonce    string
	Verifier seal.Secret
	Purpose
	Expires time.Time
}

// sealedAttempt is the form in which an attempt is sealed. Its verifier is in plain text: it exists only during
// sealing or opening.
type sealedAttempt struct {
	Issuer   string `json:"issuer"`
	State    string `json:"state"`
	Nonce    string `json:"nonce"`
	Verifier string `json:"verifier"`
	Purpose
	Expires time.Time `json:"expires"`
}

// Encode writes an attempt for sealing.
func (a Attempt) Encode() ([]byte, error) {
	return json.Marshal(sealedAttempt{a.Issuer, a.State, a.Nonce, a.Verifier.Reveal(), a.Purpose, a.Expires})
}

// DecodeAttempt reads a result of Encode.
func DecodeAttempt(plain []byte) (Attempt, error) {
	var s sealedAttempt
	if err := json.Unmarshal(plain, &s); err != nil {
		return Attempt{}, fmt.Errorf("decoding a login: %w", err)
	}
	return Attempt{s.Issuer, s.State, s.Nonce, seal.NewSecret(s.Verifier), s.Purpose, s.Expires}, nil
}

// Begin starts a login, and returns the address to which the browser is sent. Errors are ErrProvider.
func (p *Provider) Begin(ctx context.Context, purpose Purpose) (address string, a Attempt, err error) {
	d, err := p.metadata(ctx)
	if err != nil {
		return "", Attempt{}, err
	}
	pkce := oauth.NewPKCE()
	a = Attempt{
		Issuer: p.Issuer, State: oauth.NewState(), Nonce: oauth.NewNonce(), Verifier: pkce.Verifier, Purpose: purpose,
		Expires: p.Now().Add(Lifetime),
	}
	address, err = p.OAuth.AuthorizationURL(oauth.AuthorizationRequest{
		Endpoint: d.Endpoints.AuthorizationEndpoint, ClientID: p.Client, RedirectURI: p.RedirectURI, Scopes: scopes(d, purpose.Offline),
		State: a.State, Challenge: pkce.Challenge, Nonce: a.Nonce, Params: purpose.params(),
	})
	if err != nil {
		return "", Attempt{}, fmt.Errorf("%w: %w", ErrProvider, err)
	}
	return address, a, nil
}

// PromptLogin has the provider ask the user who they are, also one whom it knows already.
const PromptLogin = "login"

// params returns the parameters of the authorization request that only some logins have. max_age obliges a provider to say
// when the user logged in (OpenID Connect Core section 3.1.2.1).
func (p Purpose) params() map[string]string {
	switch p.Prompt {
	case "":
		return nil
	case PromptLogin:
		return map[string]string{"prompt": PromptLogin, "max_age": "0"}
	}
	return map[string]string{"prompt": p.Prompt}
}

// ProvenAt returns the time at which the provider asked the user who they are, as its claims say. A provider that names none
// did so when the attempt told it to; otherwise the time is unknown, and zero. now bounds what a provider says.
func (a Attempt) ProvenAt(claims *token.Claims, now time.Time) time.Time {
	at, ok := claims.AuthTime()
	switch {
	case ok && at.Before(now):
		return at
	case ok, a.Prompt == PromptLogin:
		return now
	}
	return time.Time{}
}

// Matches reports whether the state of an answer is that of the attempt and the attempt is not too old. It must be
// called before any other part of the answer is read: without it an attacker's link could log the browser in as
// another user (RFC 9700 section 4.7).
func (a Attempt) Matches(query url.Values, now time.Time) bool {
	state := query["state"]
	return len(state) == 1 && a.State != "" && subtle.ConstantTimeCompare([]byte(state[0]), []byte(a.State)) == 1 && now.Before(a.Expires)
}

// Finished is a provider's answer to a login that has succeeded.
type Finished struct {
	// Claims holds the claims of the ID token, completed by userinfo.
	Claims *token.Claims
	// IDToken is the verified ID token, which ends with Claims.
	IDToken seal.Secret
	// Refresh is the refresh token; empty when the provider gave none.
	Refresh seal.Secret
}

// Finish redeems the provider's answer, and returns what it says of the user. Errors are ErrAnswer, ErrDenied, ErrRefused and
// ErrProvider; token.ErrInvalid when the ID token is invalid, token.ErrUnavailable when this cannot be decided now.
func (p *Provider) Finish(ctx context.Context, query url.Values, a Attempt) (Finished, error) {
	tokens, d, err := p.redeem(ctx, query, a)
	if err != nil {
		return Finished{}, err
	}
	claims, err := p.Options.Verifier.Verify(ctx, tokens.IDToken.Reveal(), a.Nonce)
	if err != nil {
		return Finished{}, err
	}
	if claims, err = p.complete(ctx, claims, d, tokens.Access); err != nil {
		return Finished{}, err
	}
	return Finished{Claims: claims, IDToken: tokens.IDToken, Refresh: tokens.Refresh}, nil
}

// redeem exchanges the code in the provider's answer for tokens, an ID token among them.
func (p *Provider) redeem(ctx context.Context, query url.Values, a Attempt) (tokens oauth.Tokens, d oauth.Discovery, err error) {
	if a.Issuer != p.Issuer || !a.Matches(query, p.Now()) {
		return tokens, d, ErrAnswer
	}
	answer, err := oauth.ParseCallback(query)
	if err != nil {
		return tokens, d, fmt.Errorf("%w: %w", ErrAnswer, err)
	}
	if d, err = p.metadata(ctx); err != nil {
		return tokens, d, err
	}
	// This comes before anything is sent or believed: a code of one provider is never redeemed at another (A04).
	if err := oauth.ValidateIssuer(answer.Issuer, p.Issuer, d.IssuerInResponse); err != nil {
		return tokens, d, fmt.Errorf("%w: %w", ErrAnswer, err)
	}
	if answer.Denied != nil {
		return tokens, d, fmt.Errorf("%w: %w", ErrDenied, answer.Denied)
	}
	client, err := p.OAuth.ObtainClient(ctx, d, oauth.Application{ConfiguredID: p.Client, ConfiguredSecret: p.Secret, RedirectURI: p.RedirectURI})
	if err != nil {
		return tokens, d, fmt.Errorf("%w: %w", ErrProvider, err)
	}
	auth := oauth.ClientAuth{ID: client.ClientID, Secret: client.Secret, Method: client.AuthMethod}
	tokens, err = p.inEitherPlace(auth, func(auth oauth.ClientAuth) (oauth.Tokens, error) {
		return p.OAuth.Exchange(ctx, oauth.ExchangeRequest{Endpoint: d.Endpoints.TokenEndpoint, Client: auth, Code: answer.Code, RedirectURI: p.RedirectURI, Verifier: a.Verifier})
	})
	switch {
	case oauth.Code(err) == oauth.CodeInvalidGrant:
		return tokens, d, fmt.Errorf("%w: %w", ErrAnswer, err) // a code that was used, is too old, or belongs to another attempt (A07)
	case oauth.ClassOf(err) == oauth.Refused:
		return tokens, d, fmt.Errorf("%w: %w", ErrRefused, err)
	case err != nil:
		return tokens, d, fmt.Errorf("%w: %w", ErrProvider, err)
	case tokens.IDToken.Empty():
		return tokens, d, fmt.Errorf("%w: its answer has none", ErrRefused)
	}
	return tokens, d, nil
}

// metadata returns the provider's endpoints.
func (p *Provider) metadata(ctx context.Context) (oauth.Discovery, error) {
	p.mu.Lock()
	known, until := p.known, p.until
	p.mu.Unlock()
	if p.Now().Before(until) {
		return known, nil
	}
	found, err := p.OAuth.FetchProvider(ctx, p.Issuer)
	if err != nil {
		return oauth.Discovery{}, fmt.Errorf("%w: %w", ErrProvider, err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.known, p.until = found, p.Now().Add(metadataLifetime)
	return found, nil
}
