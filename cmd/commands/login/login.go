// Package login gets access tokens from a gateway in development mode, over the same pages and endpoints that people and
// agents use: authorization code with PKCE, or client credentials. Users log in at the development identity provider, and
// agree to the client on the gateway's page.
package login

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"

	"github.com/durward-gateway/durward/cmd/commands/browser"
	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/modules/devidp/clients"
)

// These are the names of fields.
const (
	userField     = "user"     // of the identity provider's login form
	decisionField = "decision" // of the gateway's page that asks about a client
)

// agrees is the value of the button with which a user agrees to a client.
const agrees = "approve"

// Gateway is a running gateway in development mode.
type Gateway struct {
	client   *http.Client
	issuer   string // of the identity provider
	metadata metadata
}

// Session describes a user who has logged in with a client.
type Session struct {
	Token seal.Secret
	// Begun, Entered and Agreed list the pages on the way to the login form, from there to the question about the client,
	// and after it. Returned lists the names of the parameters with which the gateway answered the client.
	Begun, Entered, Agreed []browser.Visit
	Returned               []string
	// Question is the gateway's question about the client.
	Question string
}

// UnknownUserError says that the login page does not offer a user.
type UnknownUserError struct {
	User  string
	Known []string
}

func (e *UnknownUserError) Error() string {
	return fmt.Sprintf("there is no user %q; the development provider has %s", e.User, strings.Join(e.Known, ", "))
}

// User logs a user in with a client: it picks the user on the identity provider's page, agrees to the client on the
// gateway's, and redeems the code. Errors: *UnknownUserError.
func (g *Gateway) User(ctx context.Context, email, client string) (*Session, error) {
	stop, err := url.Parse(clients.RedirectURI)
	if err != nil {
		return nil, err
	}
	pages, err := browser.New(g.client, stop)
	if err != nil {
		return nil, err
	}
	config := oauth2.Config{
		ClientID: client, RedirectURL: clients.RedirectURI,
		Endpoint: oauth2.Endpoint{AuthURL: g.metadata.AuthorizationEndpoint, TokenURL: g.metadata.TokenEndpoint, AuthStyle: oauth2.AuthStyleInParams},
	}
	state, verifier := oauth2.GenerateVerifier(), oauth2.GenerateVerifier()
	made := new(Session)
	page, err := g.enter(ctx, pages, made, config.AuthCodeURL(state, oauth2.S256ChallengeOption(verifier)), email)
	if err != nil {
		return nil, err
	}
	if page, err = agree(ctx, pages, made, page); err != nil {
		return nil, err
	}
	code, err := g.readCode(page, state)
	if err != nil {
		return nil, err
	}
	token, err := config.Exchange(context.WithValue(ctx, oauth2.HTTPClient, g.client), code, oauth2.VerifierOption(verifier))
	if err != nil {
		return nil, fmt.Errorf("redeeming the code: %w", tokenError(err))
	}
	made.Token, made.Returned = seal.NewSecret(token.AccessToken), browser.Names(page.URL)
	return made, nil
}

// enter opens the gateway's authorization endpoint, which leads to the identity provider, and logs the user in there.
func (g *Gateway) enter(ctx context.Context, pages *browser.Browser, made *Session, address, email string) (*browser.Page, error) {
	page, err := pages.Open(ctx, address)
	if err != nil {
		return nil, fmt.Errorf("opening the login page: %w", err)
	}
	made.Begun = pages.Visits()
	form := page.FormWith(userField)
	if form == nil || !strings.HasPrefix(page.URL.String(), g.issuer+"/") {
		return nil, fmt.Errorf("the login page is not shown: %s", refusal(page))
	}
	if known := form.Choices[userField]; !slices.Contains(known, email) {
		return nil, &UnknownUserError{User: email, Known: known}
	}
	if page, err = pages.Submit(ctx, page, form, map[string]string{userField: email}); err != nil {
		return nil, fmt.Errorf("sending the login form: %w", err)
	}
	made.Entered = pages.Visits()[len(made.Begun):]
	return page, nil
}

// agree agrees to the client, where the gateway asks.
func agree(ctx context.Context, pages *browser.Browser, made *Session, page *browser.Page) (*browser.Page, error) {
	form := page.FormWith(decisionField)
	if form == nil {
		return page, nil
	}
	made.Question = page.Title
	page, err := pages.Submit(ctx, page, form, map[string]string{decisionField: agrees})
	if err != nil {
		return nil, fmt.Errorf("agreeing to the client: %w", err)
	}
	made.Agreed = pages.Visits()[len(made.Begun)+len(made.Entered):]
	return page, nil
}

// Machine gets a token for an agent without a person (RFC 6749 section 4.4).
func (g *Gateway) Machine(ctx context.Context, id string, secret seal.Secret) (seal.Secret, error) {
	config := clientcredentials.Config{
		ClientID: id, ClientSecret: secret.Reveal(), TokenURL: g.metadata.TokenEndpoint, AuthStyle: oauth2.AuthStyleInHeader,
	}
	token, err := config.Token(context.WithValue(ctx, oauth2.HTTPClient, g.client))
	if err != nil {
		return seal.Secret{}, fmt.Errorf("asking for a token: %w", tokenError(err))
	}
	return seal.NewSecret(token.AccessToken), nil
}

// readCode reads the code from the redirect, and checks that it is the answer to this request (state) and comes from this
// gateway (RFC 9207).
func (g *Gateway) readCode(page *browser.Page, state string) (string, error) {
	answer := page.URL.Query()
	switch {
	case !page.Stopped, answer.Has("error"):
		return "", fmt.Errorf("the login was refused: %s", refusal(page))
	case answer.Get("state") != state:
		return "", errors.New("the gateway answered with another state than it was asked with")
	case answer.Get("iss") != g.metadata.Issuer:
		return "", errors.New("the answer comes from another server than was asked")
	case answer.Get("code") == "":
		return "", errors.New("the gateway sent no code")
	}
	return answer.Get("code"), nil
}

// refusal says why a walk ended at a page.
func refusal(page *browser.Page) string {
	if page.Stopped {
		answer := page.URL.Query()
		return strings.TrimSuffix(answer.Get("error")+": "+answer.Get("error_description"), ": ")
	}
	return fmt.Sprintf("%s answered %d: %s", browser.Plain(page.URL), page.Status, strings.TrimSuffix(page.Text, "."))
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
