package oauth

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/internal/strictjson"
	"github.com/durward-gateway/durward/storage"
)

// Client authentication methods of the token endpoint (RFC 7591 section 2) that this package supports.
const (
	AuthNone  = "none"
	AuthBasic = "client_secret_basic"
	AuthPost  = "client_secret_post"
	// AuthPrivateKey needs a key that an administrator gave: no client is registered with it.
	AuthPrivateKey = "private_key_jwt" // #nosec G101 -- a name
)

// maxTime is the last second of the year 9999. A later time is an error of the server.
const maxTime = 253402300799

// maxClientText caps client ids and secrets, in bytes.
const maxClientText = 4 << 10

// Application describes durward to an authorization server.
type Application struct {
	Name        string
	RedirectURI string
	// MetadataURL is the address at which ClientDocument is served, "" when it is not. It is used when it is https
	// with a path.
	MetadataURL string
	// ConfiguredID and ConfiguredSecret are those of a client that an administrator made at the provider; the secret
	// may be empty.
	ConfiguredID     string
	ConfiguredSecret seal.Secret
	// ConfiguredKey is its key in place of a secret; nil when it has none.
	ConfiguredKey *SigningKey
	// Roots holds the certificate authorities to trust; nil means the system's.
	Roots *x509.CertPool
}

// Registration holds an OAuth client.
type Registration struct {
	ClientID   string
	Secret     seal.Secret // empty for AuthNone
	AuthMethod string
	Kind       storage.OAuthClientKind
	// ExpiresAt is the time at which the server forgets the secret; the zero time means never
	// (client_secret_expires_at).
	ExpiresAt time.Time
}

// ObtainClient gets a client at a discovered server: the configured one, else our client-id metadata document where
// the server takes those, else a new registration (RFC 7591). It returns ErrUnsupported when none of them is
// possible; else the registration's *ProtocolError, ErrUnavailable or ErrMalformed.
func (c *Client) ObtainClient(ctx context.Context, d Discovery, app Application) (Registration, error) {
	if app.ConfiguredID != "" {
		method, err := app.method(d.AuthMethods)
		if err != nil {
			return Registration{}, err
		}
		return Registration{ClientID: app.ConfiguredID, Secret: app.ConfiguredSecret, AuthMethod: method, Kind: storage.ClientConfigured}, nil
	}
	if d.ClientMetadata && isDocumentURL(app.MetadataURL) && takesPublic(d.AuthMethods) {
		return Registration{ClientID: app.MetadataURL, AuthMethod: AuthNone, Kind: storage.ClientMetadata}, nil
	}
	if d.Endpoints.RegistrationEndpoint == "" {
		return Registration{}, fmt.Errorf("obtaining a client: %w: none is configured and the server registers none", ErrUnsupported)
	}
	return c.trusting(app.Roots).register(ctx, d, app)
}

// secretMethods lists the ways to send a secret, in order of preference among those that a server lists. RFC 6749
// makes every server take the header, but many MCP servers list it and then look for client_id only in the body.
var secretMethods = []string{AuthPost, AuthBasic}

// method chooses how the configured client authenticates. A key was given on purpose: a server that lists no
// methods is asked with it.
func (app *Application) method(supported []string) (string, error) {
	switch {
	case app.ConfiguredKey == nil:
		return configuredMethod(!app.ConfiguredSecret.Empty(), supported)
	case len(supported) == 0, slices.Contains(supported, AuthPrivateKey):
		return AuthPrivateKey, nil
	}
	return "", fmt.Errorf("configured client: %w: no key is taken at the token endpoint", ErrUnsupported)
}

// configuredMethod chooses how a configured client authenticates. A server that lists no methods takes the header
// (RFC 8414).
func configuredMethod(secret bool, supported []string) (string, error) {
	if !secret {
		return AuthNone, nil
	}
	if len(supported) == 0 {
		return AuthBasic, nil
	}
	for _, m := range secretMethods {
		if slices.Contains(supported, m) {
			return m, nil
		}
	}
	return "", fmt.Errorf("configured client: %w: no client secret is taken at the token endpoint", ErrUnsupported)
}

// takesPublic reports whether a client with a metadata document may come without credentials. A server that takes
// such documents but lists only secrets has listed the methods of its registered clients; one that lists
// private_key_jwt demands it.
func takesPublic(supported []string) bool {
	return slices.Contains(supported, AuthNone) || !slices.Contains(supported, AuthPrivateKey)
}

// isDocumentURL reports whether a client id has the form of a document's URL: https, a path, no fragment.
func isDocumentURL(raw string) bool {
	u, err := url.Parse(raw)
	return err == nil && u.Scheme == "https" && u.Host != "" && u.Path != "" && u.Path != "/" && u.Fragment == "" && u.User == nil
}

// clientDocument holds the client metadata of RFC 7591 section 2.
type clientDocument struct {
	ClientID        string   `json:"client_id,omitempty"`
	ClientName      string   `json:"client_name"`
	RedirectURIs    []string `json:"redirect_uris"`
	GrantTypes      []string `json:"grant_types"`
	ResponseTypes   []string `json:"response_types"`
	AuthMethod      string   `json:"token_endpoint_auth_method"`
	ApplicationType string   `json:"application_type"`
}

func (app Application) document(method string, refresh bool) clientDocument {
	grants := []string{"authorization_code"}
	if refresh {
		grants = append(grants, "refresh_token")
	}
	return clientDocument{
		ClientName: app.Name, RedirectURIs: []string{app.RedirectURI}, GrantTypes: grants, ResponseTypes: []string{"code"},
		AuthMethod: method, ApplicationType: "web",
	}
}

// ClientDocument returns the JSON to serve at app.MetadataURL: the client-id metadata document.
func ClientDocument(app Application) ([]byte, error) {
	d := app.document(AuthNone, true)
	d.ClientID = app.MetadataURL
	return json.Marshal(d)
}

func (c *Client) register(ctx context.Context, d Discovery, app Application) (Registration, error) {
	method := AuthBasic
	for _, m := range append([]string{AuthNone}, secretMethods...) {
		if slices.Contains(d.AuthMethods, m) {
			method = m
			break
		}
	}
	if len(d.AuthMethods) > 0 && !slices.Contains(d.AuthMethods, method) {
		return Registration{}, fmt.Errorf("registering: %w: no known client authentication method", ErrUnsupported)
	}
	body, err := json.Marshal(app.document(method, !d.NoRefresh))
	if err != nil {
		return Registration{}, fmt.Errorf("registering: %w", err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, d.Endpoints.RegistrationEndpoint, bytes.NewReader(body))
	if err != nil {
		return Registration{}, fmt.Errorf("registering: %w: registration endpoint", ErrMalformed)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json")
	a, err := c.do(req)
	if err != nil {
		return Registration{}, fmt.Errorf("registering: %w", err)
	}
	if a.status != http.StatusCreated && a.status != http.StatusOK {
		return Registration{}, refusal("registration", a)
	}
	v, err := parseObject(a.body)
	if err != nil {
		return Registration{}, fmt.Errorf("registering: %w", err)
	}
	r, err := parseRegistration(v, method, d.AuthMethods, app.RedirectURI)
	if err != nil {
		return Registration{}, fmt.Errorf("registering: %w", err)
	}
	return r, nil
}

// parseRegistration reads a client information response (RFC 7591 section 3.2.1). The server may have changed the
// requested values; a change that makes the client unusable is an error.
func parseRegistration(v strictjson.Value, asked string, supported []string, redirectURI string) (Registration, error) {
	id, err := text(v, "client_id")
	if err != nil {
		return Registration{}, err
	}
	secret, err := text(v, "client_secret")
	if err != nil {
		return Registration{}, err
	}
	if id == "" || !printable(id, maxClientText) || !printable(secret, maxClientText) {
		return Registration{}, fmt.Errorf("%w: client_id or client_secret", ErrMalformed)
	}
	uris, given, err := texts(v, "redirect_uris")
	if err != nil {
		return Registration{}, err
	}
	if given && !slices.Contains(uris, redirectURI) {
		return Registration{}, fmt.Errorf("%w: the server registered other redirect_uris", ErrMismatch)
	}
	method, err := registeredMethod(v, secret != "", asked, supported)
	if err != nil {
		return Registration{}, err
	}
	switch {
	case method == AuthNone:
		secret = ""
	case method != AuthBasic && method != AuthPost:
		return Registration{}, fmt.Errorf("%w: the server chose another client authentication method", ErrUnsupported)
	case secret == "":
		return Registration{}, fmt.Errorf("%w: no client_secret", ErrMalformed)
	}
	r := Registration{ClientID: id, Secret: seal.NewSecret(secret), AuthMethod: method, Kind: storage.ClientRegistered}
	if secret != "" {
		r.ExpiresAt = secretExpiry(v)
	}
	return r, nil
}

// registeredMethod returns the client authentication method of a client information response. A secret without a method
// is meant to be used (RFC 7591 section 2 has client_secret_basic for the default): Supabase hands one out, and refuses
// the client without it.
func registeredMethod(v strictjson.Value, secret bool, asked string, supported []string) (string, error) {
	method, err := text(v, "token_endpoint_auth_method")
	if err != nil || method != "" {
		return method, err
	}
	if m, err := configuredMethod(secret, supported); asked == AuthNone && err == nil {
		return m, nil
	}
	return asked, nil
}

// secretExpiry returns the time at which a registered client's secret expires, zero for never.
func secretExpiry(v strictjson.Value) time.Time {
	if m, ok := v.Get("client_secret_expires_at"); ok {
		if at, ok := number(m); ok && at > 0 && at < maxTime {
			return time.Unix(int64(at), 0).UTC()
		}
	}
	return time.Time{}
}

// printable reports whether s consists of VSCHAR (RFC 6749 appendix A) and is at most limit bytes long.
func printable(s string, limit int) bool {
	for i := range len(s) {
		if s[i] < 0x20 || s[i] > 0x7e {
			return false
		}
	}
	return len(s) <= limit
}
