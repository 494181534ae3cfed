package oauth

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/durward-gateway/durward/internal/strictjson"
	"github.com/durward-gateway/durward/storage"
)

// Discovery holds the metadata of the authorization server of an MCP server.
type Discovery struct {
	// Endpoints holds the endpoints, with Issuer as the server writes it and Resource as the MCP server names itself.
	// Issuer is "" when the endpoints are configured without one.
	Endpoints storage.OAuthEndpoints
	// Scopes lists the scopes to ask for; empty means the server's default.
	Scopes []string
	// AuthMethods lists the token endpoint's client authentication methods; empty means client_secret_basic (RFC
	// 8414).
	AuthMethods []string
	// IssuerInResponse says that the server promises iss in authorization responses (RFC 9207).
	IssuerInResponse bool
	// ClientMetadata says that the server takes the URL of a client-id metadata document as client_id.
	ClientMetadata bool
	// NoRefresh says that the server's list of grants leaves refresh_token out.
	NoRefresh bool
	// UserinfoEndpoint is the address at which an OpenID provider returns the claims of a user; "" when there is
	// none.
	UserinfoEndpoint string
	// Assumed says that no document was found and that the endpoints are those that MCP 2025-03-26 prescribes for
	// that case. Only a successful registration shows that they exist.
	Assumed bool

	scopesSupported []string
}

// ListsScope reports whether the server's list of scopes has a scope.
func (d *Discovery) ListsScope(scope string) bool { return slices.Contains(d.scopesSupported, scope) }

// FetchMetadata fetches the metadata of an authorization server from the addresses of RFC 8414 and OpenID Connect
// Discovery, in the order that MCP prescribes. The document's issuer must be the given one (attack S07). For an
// issuer without a path, the forms with and without the final slash are equal, because both lead to the same
// document. It returns ErrUnsupported when there is no document or the server lacks PKCE with S256 (attack A05); else
// ErrMismatch, ErrMalformed or ErrUnavailable.
func (c *Client) FetchMetadata(ctx context.Context, issuer string) (Discovery, error) {
	return c.fetchServer(ctx, issuer, need{grant: grantCode, proofKeys: true})
}

// fetchServer fetches metadata as FetchMetadata does, of a server that has what is needed.
func (c *Client) fetchServer(ctx context.Context, issuer string, what need) (Discovery, error) {
	return c.fetchMetadata(ctx, issuer, serverAddresses, func(v strictjson.Value, issuer string, check func(string) error) (Discovery, error) {
		return parseServer(v, issuer, check, what)
	})
}

// FetchProvider fetches the metadata of the OpenID provider at which users log in. It differs from FetchMetadata in
// three points. The issuer must equal the given one character by character, as in its tokens (OpenID Connect
// Discovery section 4.3). The document of OpenID Connect is asked for first, because others may leave out the
// userinfo endpoint. And the provider need not announce PKCE: the operator has chosen it, many providers do PKCE
// without saying so, and the nonce binds the code to the login in any case (RFC 9700 section 2.1.1).
func (c *Client) FetchProvider(ctx context.Context, issuer string) (Discovery, error) {
	return c.fetchMetadata(ctx, issuer, providerAddresses, func(v strictjson.Value, issuer string, check func(string) error) (Discovery, error) {
		if iss, _ := text(v, "issuer"); iss != issuer {
			return Discovery{}, fmt.Errorf("%w: the document names another issuer", ErrMismatch)
		}
		return parseServer(v, issuer, check, need{grant: grantCode})
	})
}

func (c *Client) fetchMetadata(ctx context.Context, issuer string, list func(origin, path string) []string, parse func(strictjson.Value, string, func(string) error) (Discovery, error)) (Discovery, error) {
	addresses, err := c.metadataAddresses(issuer, list)
	if err != nil {
		return Discovery{}, fmt.Errorf("metadata of the issuer: %w", err)
	}
	var failure error
	for _, address := range addresses {
		v, err := c.document(ctx, address)
		switch {
		case err == nil:
			d, err := parse(v, issuer, c.checkURL)
			if err != nil {
				return Discovery{}, fmt.Errorf("metadata of the issuer: %w", err)
			}
			return d, nil
		case errors.Is(err, errAbsent):
		case errors.Is(err, ErrUnavailable):
			failure = errors.Join(failure, err)
		default:
			return Discovery{}, fmt.Errorf("metadata of the issuer: %w", err)
		}
	}
	if failure != nil {
		return Discovery{}, fmt.Errorf("metadata of the issuer: %w", failure)
	}
	return Discovery{}, fmt.Errorf("metadata of the issuer: %w: %w", ErrUnsupported, errAbsent)
}

// metadataAddresses lists the addresses at which an issuer's document may be.
func (c *Client) metadataAddresses(issuer string, list func(origin, path string) []string) ([]string, error) {
	if err := c.checkURL(issuer); err != nil {
		return nil, fmt.Errorf("%w: the issuer: %w", ErrMalformed, err)
	}
	u, err := url.Parse(issuer)
	if err != nil || u.RawQuery != "" || u.ForceQuery {
		return nil, fmt.Errorf("%w: the issuer has a query", ErrMalformed)
	}
	return list(u.Scheme+"://"+u.Host, strings.TrimSuffix(u.EscapedPath(), "/")), nil
}

// serverAddresses lists the addresses in the order of MCP: RFC 8414 with the path inserted, OpenID Connect with the
// path inserted, OpenID Connect with the path before it.
func serverAddresses(origin, path string) []string {
	addresses := []string{
		origin + "/.well-known/oauth-authorization-server" + path,
		origin + "/.well-known/openid-configuration" + path,
	}
	if path != "" {
		addresses = append(addresses, origin+path+"/.well-known/openid-configuration")
	}
	return addresses
}

// providerAddresses lists the same addresses from the last to the first.
func providerAddresses(origin, path string) []string {
	addresses := serverAddresses(origin, path)
	slices.Reverse(addresses)
	return addresses
}

// sameIssuer reports whether two issuers are equal strings, apart from the final slash of a URL that has no path.
func sameIssuer(a, b string) bool {
	if a == b {
		return true
	}
	a, b = strings.TrimSuffix(a, "/"), strings.TrimSuffix(b, "/")
	u, err := url.Parse(a)
	return a == b && err == nil && u.Path == ""
}

// issuerError says that a document names another issuer than expected.
type issuerError struct {
	found string // untrusted text
}

func (e *issuerError) Error() string {
	return ErrMismatch.Error() + ": the document names another issuer"
}
func (e *issuerError) Unwrap() error { return ErrMismatch }

// grantCode is the grant of users who agree in a browser (RFC 6749 section 4.1).
const grantCode = "authorization_code"

// need names what an authorization server must be able to do.
type need struct {
	grant     string
	proofKeys bool // it announces PKCE with S256 (attack A05)
}

// needOf returns what is needed for a grant; "" is the one of users in a browser.
func needOf(grant string) need {
	if grant == "" {
		return need{grant: grantCode, proofKeys: true}
	}
	return need{grant: grant}
}

// inBrowser reports whether the grant sends a browser to the server.
func (n need) inBrowser() bool { return n.grant == grantCode }

// in checks that a metadata document has what is needed. A value that a list leaves out is not supported; a list that is left
// out has a default. noRefresh reports that the list of grants leaves refresh_token out.
func (n need) in(v strictjson.Value) (noRefresh bool, err error) {
	for _, l := range []struct {
		name, needed string
		optional     bool
	}{
		{"response_types_supported", "code", true},
		{"grant_types_supported", n.grant, true},
		{"code_challenge_methods_supported", "S256", !n.proofKeys},
	} {
		if l.name != "grant_types_supported" && !n.inBrowser() {
			continue
		}
		list, given, err := texts(v, l.name)
		if err != nil {
			return false, err
		}
		if !slices.Contains(list, l.needed) && (given || !l.optional) {
			return false, fmt.Errorf("%w: %s lacks %s", ErrUnsupported, l.name, l.needed)
		}
		if l.name == "grant_types_supported" {
			noRefresh = given && !slices.Contains(list, "refresh_token")
		}
	}
	return noRefresh, nil
}

// parseServer reads the metadata document of an authorization server. check refuses URLs.
func parseServer(v strictjson.Value, issuer string, check func(string) error, what need) (Discovery, error) {
	var d Discovery
	var err error
	if d.Endpoints.Issuer, err = text(v, "issuer"); err != nil {
		return Discovery{}, err
	}
	if !sameIssuer(d.Endpoints.Issuer, issuer) {
		return Discovery{}, &issuerError{found: d.Endpoints.Issuer}
	}
	for _, e := range []struct {
		name     string
		to       *string
		required bool
	}{
		{"authorization_endpoint", &d.Endpoints.AuthorizationEndpoint, what.inBrowser()},
		{"token_endpoint", &d.Endpoints.TokenEndpoint, true},
		{"registration_endpoint", &d.Endpoints.RegistrationEndpoint, false},
		{"revocation_endpoint", &d.Endpoints.RevocationEndpoint, false},
		{"userinfo_endpoint", &d.UserinfoEndpoint, false},
	} {
		if *e.to, err = text(v, e.name); err != nil {
			return Discovery{}, err
		}
		if *e.to == "" && !e.required {
			continue
		}
		if err := check(*e.to); err != nil {
			return Discovery{}, fmt.Errorf("%w: %s: %w", ErrMalformed, e.name, err)
		}
	}
	if d.NoRefresh, err = what.in(v); err != nil {
		return Discovery{}, err
	}
	if d.AuthMethods, _, err = texts(v, "token_endpoint_auth_methods_supported"); err != nil {
		return Discovery{}, err
	}
	if d.scopesSupported, _, err = texts(v, "scopes_supported"); err != nil {
		return Discovery{}, err
	}
	if d.IssuerInResponse, err = flag(v, "authorization_response_iss_parameter_supported"); err != nil {
		return Discovery{}, err
	}
	if d.ClientMetadata, err = flag(v, "client_id_metadata_document_supported"); err != nil {
		return Discovery{}, err
	}
	return d, nil
}
