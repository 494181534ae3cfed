package oauthflow

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/internal/strictjson"
)

// maxToken caps access and refresh tokens, in bytes: they must fit into a header field.
const maxToken = 16 << 10

// Bounds of what is believed of expires_in.
const (
	minLifetime = time.Second
	maxLifetime = 365 * 24 * time.Hour
)

// ClientAuth is how a client shows who it is.
type ClientAuth struct {
	ID     string
	Secret seal.Secret
	Method string // AuthNone, AuthBasic or AuthPost
}

// Tokens is a token response (RFC 6749 section 5.1).
type Tokens struct {
	Access  seal.Secret
	Refresh seal.Secret // empty: none was given; on a refresh the former one stays good
	// ExpiresAt is reckoned from before the request was sent. Zero: not said, or said in a way that means nothing
	// (0, negative); such a token is used until it is refused.
	ExpiresAt time.Time
	Scope     string // "" when it is what was asked for
	// IDToken is as the server sent it: nobody has verified it. Empty when there was none.
	IDToken seal.Secret
}

// ExchangeRequest redeems an authorization code.
type ExchangeRequest struct {
	Endpoint    string // token endpoint
	Client      ClientAuth
	Code        string
	RedirectURI string
	Verifier    string
	Resource    string
}

// Exchange redeems a code. A *ProtocolError is the server's refusal; ErrUnavailable and ErrMalformed as elsewhere. A code
// must not be redeemed twice, so no error here is worth a second try.
func (c *Client) Exchange(ctx context.Context, r ExchangeRequest) (Tokens, error) {
	form := url.Values{
		"grant_type":    {"authorization_code"},
		"code":          {r.Code},
		"redirect_uri":  {r.RedirectURI},
		"code_verifier": {r.Verifier},
	}
	return c.token(ctx, c.http, r.Endpoint, r.Client, form, r.Resource, r.Code, r.Verifier)
}

// RefreshRequest asks for a new access token.
type RefreshRequest struct {
	Endpoint string // token endpoint
	Client   ClientAuth
	Token    seal.Secret
	Resource string
}

// Refresh redeems a refresh token. Code(err) is CodeInvalidGrant when the token is good no longer, and then only. After
// ErrUnavailable and ErrMalformed the server may or may not have used the token up.
func (c *Client) Refresh(ctx context.Context, r RefreshRequest) (Tokens, error) {
	form := url.Values{"grant_type": {"refresh_token"}, "refresh_token": {r.Token.Reveal()}}
	return c.token(ctx, c.slow, r.Endpoint, r.Client, form, r.Resource, r.Token.Reveal())
}

func (c *Client) token(ctx context.Context, by *http.Client, endpoint string, client ClientAuth, form url.Values, resource string, secrets ...string) (Tokens, error) {
	if resource != "" {
		form.Set("resource", resource)
	}
	start := c.now()
	a, err := c.post(ctx, by, endpoint, client, form)
	if err != nil {
		return Tokens{}, fmt.Errorf("token endpoint: %w", err)
	}
	secrets = append(secrets, client.Secret.Reveal())
	if a.status != http.StatusOK && a.status != http.StatusCreated {
		return Tokens{}, refusal("token", a, secrets...)
	}
	v, err := a.object()
	if err != nil {
		return Tokens{}, fmt.Errorf("token endpoint: %w", err)
	}
	// Some servers answer 200 to errors.
	if _, failed := v.Get("error"); failed {
		return Tokens{}, errorObject("token", a.status, v, secrets...)
	}
	t, err := parseTokens(v, start)
	if err != nil {
		return Tokens{}, fmt.Errorf("token endpoint: %w", err)
	}
	return t, nil
}

// post sends a form with the client's credentials.
func (c *Client) post(ctx context.Context, by *http.Client, endpoint string, client ClientAuth, form url.Values) (answer, error) {
	switch client.Method {
	case AuthNone:
		form.Set("client_id", client.ID)
	case AuthPost:
		form.Set("client_id", client.ID)
		form.Set("client_secret", client.Secret.Reveal())
	case AuthBasic:
	default:
		return answer{}, fmt.Errorf("%w: client authentication method", ErrUnsupported)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, endpoint, strings.NewReader(form.Encode()))
	if err != nil {
		return answer{}, fmt.Errorf("%w: address of the endpoint", ErrMalformed)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Accept", "application/json")
	if client.Method == AuthBasic {
		// RFC 6749 section 2.3.1: both are form-encoded first.
		req.SetBasicAuth(url.QueryEscape(client.ID), url.QueryEscape(client.Secret.Reveal()))
	}
	return send(by, req)
}

// parseTokens reads a token response (attack A09). Unknown members are ignored, and so is an id_token that is no string.
func parseTokens(v strictjson.Value, start time.Time) (Tokens, error) {
	var fields [4]string
	for i, name := range []string{"token_type", "access_token", "refresh_token", "scope"} {
		s, err := text(v, name)
		if err != nil {
			return Tokens{}, err
		}
		fields[i] = s
	}
	if !strings.EqualFold(fields[0], "Bearer") {
		return Tokens{}, fmt.Errorf("%w: token_type is not Bearer", ErrMalformed)
	}
	// A blank or a line break would end the header field that the token is put into.
	if fields[1] == "" || strings.Contains(fields[1], " ") || !printable(fields[1], maxToken) {
		return Tokens{}, fmt.Errorf("%w: access_token", ErrMalformed)
	}
	if !printable(fields[2], maxToken) {
		return Tokens{}, fmt.Errorf("%w: refresh_token", ErrMalformed)
	}
	scopes := strings.Fields(fields[3])
	if err := checkScopes(scopes); err != nil {
		return Tokens{}, err
	}
	lifetime, err := lifetime(v)
	if err != nil {
		return Tokens{}, err
	}
	t := Tokens{Access: seal.NewSecret(fields[1]), Refresh: seal.NewSecret(fields[2]), Scope: strings.Join(scopes, " ")}
	if lifetime > 0 {
		t.ExpiresAt = start.Add(lifetime)
	}
	if m, ok := v.Get("id_token"); ok && m.Kind() == strictjson.String {
		t.IDToken = seal.NewSecret(m.Str())
	}
	return t, nil
}

// lifetime reads expires_in: a number of seconds, or, as some servers write it, a string with a whole one. It is brought
// into minLifetime..maxLifetime; 0 when it is absent or not positive.
func lifetime(v strictjson.Value) (time.Duration, error) {
	m, ok := v.Get("expires_in")
	if !ok {
		return 0, nil
	}
	var seconds float64
	switch m.Kind() {
	case strictjson.Null:
		return 0, nil
	case strictjson.Number:
		var err error
		// An overflow gives an infinity, which is clamped like any large number.
		if seconds, err = strconv.ParseFloat(m.Num(), 64); err != nil && !errors.Is(err, strconv.ErrRange) {
			return 0, fmt.Errorf("%w: expires_in", ErrMalformed)
		}
	case strictjson.String:
		n, err := strconv.ParseInt(m.Str(), 10, 64)
		if err != nil || strconv.FormatInt(n, 10) != m.Str() {
			return 0, fmt.Errorf("%w: expires_in", ErrMalformed)
		}
		seconds = float64(n)
	default:
		return 0, fmt.Errorf("%w: expires_in", ErrMalformed)
	}
	if seconds <= 0 {
		return 0, nil
	}
	return time.Duration(min(max(seconds, minLifetime.Seconds()), maxLifetime.Seconds())) * time.Second, nil
}
