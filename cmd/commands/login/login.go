// Package login gets access tokens from the development identity provider, over the same pages and endpoints that
// people and agents use: authorization code with PKCE, or client credentials.
package login

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"

	"github.com/durward-gateway/durward/cmd/commands/browser"
	"github.com/durward-gateway/durward/internal/seal"
)

// issuerPath is the path of the development identity provider on a gateway in development mode.
const issuerPath = "/dev/idp"

// redirectURI is the address to which the provider sends the code. It is a loopback address, which the provider's
// public clients may use, and is never opened: the code is read from the redirect.
const redirectURI = "http://127.0.0.1/callback"

const (
	maxDocument = 1 << 20
	userField   = "user" // of the provider's login form
)

// Provider is a running development identity provider.
type Provider struct {
	client   *http.Client
	metadata metadata
}

type metadata struct {
	Issuer                string `json:"issuer"`
	AuthorizationEndpoint string `json:"authorization_endpoint"`
	TokenEndpoint         string `json:"token_endpoint"`
}

// Credentials names the OAuth client and its secret. Public clients have no secret.
type Credentials struct {
	ID     string
	Secret seal.Secret
}

// Session describes a user who has logged in.
type Session struct {
	Token seal.Secret
	// Visits lists the pages of the login. Returned lists the names of the parameters that the provider sent back
	// with the redirect.
	Visits   []browser.Visit
	Returned []string
}

// UnknownUserError says that the login page does not offer a user.
type UnknownUserError struct {
	User  string
	Known []string
}

func (e *UnknownUserError) Error() string {
	return fmt.Sprintf("there is no user %q; the development provider has %s", e.User, strings.Join(e.Known, ", "))
}

// ErrNotDevelopment says that the server at the address has no development identity provider.
var ErrNotDevelopment = errors.New("it answers, but it is not a gateway in development mode")

// UnreachableError says that nothing answers.
type UnreachableError struct {
	Gateway string
	Err     error
}

func (e *UnreachableError) Error() string {
	return fmt.Sprintf("cannot connect to %s: %v", e.Gateway, e.Err)
}

func (e *UnreachableError) Unwrap() error { return e.Err }

// Find reads the metadata of the provider of the gateway at an origin such as http://127.0.0.1:8080. Errors:
// *UnreachableError, ErrNotDevelopment.
func Find(ctx context.Context, client *http.Client, gateway string) (*Provider, error) {
	issuer := gateway + issuerPath
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, issuer+"/.well-known/openid-configuration", nil)
	if err != nil {
		return nil, fmt.Errorf("looking for the development identity provider: %w", err)
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, &UnreachableError{Gateway: gateway, Err: causeOf(err)}
	}
	defer response.Body.Close()
	var found metadata
	if response.StatusCode != http.StatusOK || json.NewDecoder(io.LimitReader(response.Body, maxDocument)).Decode(&found) != nil {
		return nil, fmt.Errorf("%s: %w", gateway, ErrNotDevelopment)
	}
	// The requests below go to these addresses: they must be the provider's own.
	if found.Issuer != issuer || !strings.HasPrefix(found.AuthorizationEndpoint, issuer+"/") || !strings.HasPrefix(found.TokenEndpoint, issuer+"/") {
		return nil, fmt.Errorf("the gateway at %s calls itself %q; use that address", gateway, strings.TrimSuffix(found.Issuer, issuerPath))
	}
	return &Provider{client: client, metadata: found}, nil
}

// User logs a user in: it picks them on the login page, and redeems the code. Errors: *UnknownUserError.
func (p *Provider) User(ctx context.Context, email string, as Credentials) (*Session, error) {
	stop, err := url.Parse(redirectURI)
	if err != nil {
		return nil, err
	}
	config := p.config(as)
	state, verifier := oauth2.GenerateVerifier(), oauth2.GenerateVerifier()
	pages := browser.New(p.client, stop)
	page, err := pages.Open(ctx, config.AuthCodeURL(state, oauth2.S256ChallengeOption(verifier)))
	if err != nil {
		return nil, fmt.Errorf("opening the login page: %w", err)
	}
	if page.Stopped {
		return nil, fmt.Errorf("the provider refuses to show its login page: %s", refusal(page.URL.Query()))
	}
	if page.Form == nil {
		return nil, fmt.Errorf("the provider refuses to show its login page: %s", strings.TrimSuffix(page.Text, "."))
	}
	if known := page.Form.Choices[userField]; !slices.Contains(known, email) {
		return nil, &UnknownUserError{User: email, Known: known}
	}
	page, err = pages.Submit(ctx, page, map[string]string{userField: email})
	if err != nil {
		return nil, fmt.Errorf("sending the login form: %w", err)
	}
	code, err := p.readCode(page, state)
	if err != nil {
		return nil, err
	}
	token, err := config.Exchange(context.WithValue(ctx, oauth2.HTTPClient, p.client), code, oauth2.VerifierOption(verifier))
	if err != nil {
		return nil, fmt.Errorf("redeeming the code: %w", tokenError(err))
	}
	return &Session{Token: seal.NewSecret(token.AccessToken), Visits: pages.Visits(), Returned: browser.Names(page.URL)}, nil
}

// Client gets a token for the client itself, without a user (RFC 6749 section 4.4).
func (p *Provider) Client(ctx context.Context, as Credentials) (seal.Secret, error) {
	config := clientcredentials.Config{
		ClientID: as.ID, ClientSecret: as.Secret.Reveal(), TokenURL: p.metadata.TokenEndpoint, AuthStyle: oauth2.AuthStyleInHeader,
	}
	token, err := config.Token(context.WithValue(ctx, oauth2.HTTPClient, p.client))
	if err != nil {
		return seal.Secret{}, fmt.Errorf("asking for a token: %w", tokenError(err))
	}
	return seal.NewSecret(token.AccessToken), nil
}

func (p *Provider) config(as Credentials) *oauth2.Config {
	style := oauth2.AuthStyleInParams
	if !as.Secret.Empty() {
		style = oauth2.AuthStyleInHeader
	}
	return &oauth2.Config{
		ClientID: as.ID, ClientSecret: as.Secret.Reveal(), RedirectURL: redirectURI, Scopes: []string{"openid", "profile", "email"},
		Endpoint: oauth2.Endpoint{AuthURL: p.metadata.AuthorizationEndpoint, TokenURL: p.metadata.TokenEndpoint, AuthStyle: style},
	}
}

// readCode reads the code from the redirect, and checks that it is the answer to this request (state) and comes from this
// provider (RFC 9207).
func (p *Provider) readCode(page *browser.Page, state string) (string, error) {
	if !page.Stopped {
		return "", fmt.Errorf("the provider did not accept the login (status %d): %s", page.Status, strings.TrimSuffix(page.Text, "."))
	}
	answer := page.URL.Query()
	switch {
	case answer.Has("error"):
		return "", fmt.Errorf("the provider refused the login: %s", refusal(answer))
	case answer.Get("state") != state:
		return "", errors.New("the provider answered with another state than it was asked with")
	case answer.Get("iss") != p.metadata.Issuer:
		return "", errors.New("the answer comes from another provider than was asked")
	case answer.Get("code") == "":
		return "", errors.New("the provider sent no code")
	}
	return answer.Get("code"), nil
}

func refusal(answer url.Values) string {
	if description := answer.Get("error_description"); description != "" {
		return answer.Get("error") + ": " + description
	}
	return answer.Get("error")
}

// tokenError returns the token endpoint's error, without the rest of its answer.
func tokenError(err error) error {
	var refused *oauth2.RetrieveError
	if errors.As(err, &refused) {
		if refused.ErrorCode == "" {
			return fmt.Errorf("the token endpoint answered with status %d", refused.Response.StatusCode)
		}
		return errors.New(strings.TrimSuffix(refused.ErrorCode+": "+refused.ErrorDescription, ": "))
	}
	return browser.WithoutQuery(err)
}

func causeOf(err error) error {
	var failure *url.Error
	if errors.As(err, &failure) {
		return failure.Err
	}
	return err
}
