package oauth

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/durward-gateway/durward/internal/proxy/netguard"
	"github.com/durward-gateway/durward/internal/strictjson"
	"github.com/durward-gateway/durward/storage"
)

// discoveryTimeout bounds a whole discovery, which makes at most ten requests.
const discoveryTimeout = 15 * time.Second

// Target describes an MCP server whose authorization server is to be found.
type Target struct {
	// URL is the address of the MCP endpoint.
	URL string
	// Known holds the endpoints of the directory entry. They take precedence over discovered ones. When both the
	// authorization and the token endpoint are known, nothing is fetched. When only the issuer is known, the MCP
	// server is not asked. One of the two endpoints without the issuer is an error: the MCP server would supply the
	// other one, and could take the codes of the known server with it (attacks S08, A04).
	Known storage.OAuthEndpoints
	// Scopes lists the scopes that the operator configured; empty to discover them.
	Scopes []string
	// Issuer is preferred when the MCP server names several: a client at this issuer is already stored.
	Issuer string
	// Grant names the grant that the server must give. Default: the one of users in a browser, which needs more endpoints,
	// and PKCE.
	Grant string
	// Roots holds the certificate authorities to trust; nil means the system's.
	Roots *x509.CertPool
}

// Discover finds the authorization server of an MCP server. It sends an unauthenticated request, and reads the RFC
// 9728 document that the 401 names or that lies at a well-known place, and then the RFC 8414 document of the
// authorization server. Without an RFC 9728 document it follows MCP 2025-03-26: metadata at the root of the MCP
// server's own origin.
//
// The issuer found may differ from the former one. A caller that keeps a client or tokens compares the issuers, and
// sends none of them to a new one (attack S08).
//
// Errors are of the classes ErrUnavailable, ErrMalformed, ErrUnsupported, ErrMismatch.
func (c *Client) Discover(ctx context.Context, t Target) (Discovery, error) {
	c = c.trusting(t.Roots)
	ctx, cancel := context.WithTimeout(ctx, discoveryTimeout)
	defer cancel()
	upstream, err := url.Parse(t.URL)
	if err == nil {
		err = c.guard.CheckURL(upstream)
	}
	if err != nil {
		return Discovery{}, fmt.Errorf("discovering: %w: the server's URL: %w", ErrMalformed, err)
	}
	for name, known := range map[string]string{
		"issuer": t.Known.Issuer, "authorization_endpoint": t.Known.AuthorizationEndpoint, "token_endpoint": t.Known.TokenEndpoint,
		"registration_endpoint": t.Known.RegistrationEndpoint, "revocation_endpoint": t.Known.RevocationEndpoint,
	} {
		if known == "" {
			continue
		}
		if err := c.checkURL(known); err != nil {
			return Discovery{}, fmt.Errorf("discovering: %w: configured %s: %w", ErrMalformed, name, err)
		}
	}
	what := needOf(t.Grant)
	if what.inBrowser() && t.Known.Issuer == "" && (t.Known.AuthorizationEndpoint == "") != (t.Known.TokenEndpoint == "") {
		return Discovery{}, fmt.Errorf("discovering: %w: the authorization and the token endpoint are configured together or not at all", ErrMalformed)
	}
	var d Discovery
	var resource protected
	switch {
	case t.Known.TokenEndpoint != "" && (t.Known.AuthorizationEndpoint != "" || !what.inBrowser()):
	case t.Known.Issuer != "":
		d, err = c.fetchServer(ctx, t.Known.Issuer, what)
	default:
		d, resource, err = c.ask(ctx, upstream, t.Issuer, what)
	}
	if err != nil {
		return Discovery{}, fmt.Errorf("discovering: %w", err)
	}
	d.Endpoints = overlay(d.Endpoints, t.Known)
	if d.Endpoints.Resource == "" {
		d.Endpoints.Resource = t.URL
	}
	if !what.inBrowser() {
		d.scopesSupported = nil // offline_access is not asked for: a refresh token would outlive what the token was got with
	}
	if d.Scopes, err = chooseScopes(t.Scopes, resource.challenged, resource.scopes, d.scopesSupported); err != nil {
		return Discovery{}, fmt.Errorf("discovering: %w", err)
	}
	return d, nil
}

// overlay returns found with the members of known in place of its own.
func overlay(found, known storage.OAuthEndpoints) storage.OAuthEndpoints {
	pick := func(known, found string) string {
		if known != "" {
			return known
		}
		return found
	}
	return storage.OAuthEndpoints{
		Issuer:                pick(found.Issuer, known.Issuer), // as the server writes it: iss is compared with that
		AuthorizationEndpoint: pick(known.AuthorizationEndpoint, found.AuthorizationEndpoint),
		TokenEndpoint:         pick(known.TokenEndpoint, found.TokenEndpoint),
		RegistrationEndpoint:  pick(known.RegistrationEndpoint, found.RegistrationEndpoint),
		RevocationEndpoint:    pick(known.RevocationEndpoint, found.RevocationEndpoint),
		Resource:              pick(known.Resource, found.Resource),
	}
}

// protected holds the metadata of a protected resource.
type protected struct {
	resource   string
	servers    []string // issuers
	scopes     []string // scopes_supported
	challenged string   // scope of the 401
}

// ask asks the MCP server itself for its authorization server.
func (c *Client) ask(ctx context.Context, upstream *url.URL, prefer string, what need) (Discovery, protected, error) {
	challenge, demanded, err := c.probe(ctx, upstream)
	if err != nil {
		return Discovery{}, protected{}, err
	}
	p, err := c.protectedResource(ctx, upstream, challenge.ResourceMetadata)
	if errors.Is(err, errAbsent) {
		d, err := c.legacy(ctx, upstream, demanded, what)
		return d, protected{challenged: challenge.Scope}, err
	}
	if err != nil {
		return Discovery{}, protected{}, err
	}
	p.challenged = challenge.Scope
	issuer := p.servers[0]
	if i := slices.IndexFunc(p.servers, func(s string) bool { return sameIssuer(s, prefer) }); i >= 0 {
		issuer = p.servers[i]
	}
	d, err := c.named(ctx, issuer, what)
	if err != nil {
		return Discovery{}, protected{}, err
	}
	d.Endpoints.Resource = p.resource
	return d, p, nil
}

// named fetches the metadata of an issuer that an MCP server names. Many servers name an address whose document is
// another issuer's: with a final slash, or of another host. Of such a document only that name is used (RFC 8414
// section 3.3): that issuer is then asked itself, as if the server had named it, and its document has to name itself.
func (c *Client) named(ctx context.Context, issuer string, what need) (Discovery, error) {
	d, err := c.fetchServer(ctx, issuer, what)
	other, ok := errors.AsType[*issuerError](err)
	if !ok {
		return d, err
	}
	if d, errOther := c.fetchServer(ctx, other.found, what); errOther == nil {
		return d, nil
	}
	return Discovery{}, err
}

// probeBody is a ping. This is the one request that every revision up to 2025-11-25 allows before initialize, and it
// creates no session where no token is demanded.
const probeBody = `{"jsonrpc":"2.0","id":1,"method":"ping"}`

// probe sends a request without a token. demanded reports whether the answer was a 401.
func (c *Client) probe(ctx context.Context, upstream *url.URL) (ch Challenge, demanded bool, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, upstream.String(), strings.NewReader(probeBody))
	if err != nil {
		return Challenge{}, false, fmt.Errorf("%w: the server's URL", ErrMalformed)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	req.Header.Set("User-Agent", "durward")
	resp, err := c.http.Do(req)
	if err != nil {
		err = transportError(req, err)
		if errors.Is(err, ErrMalformed) {
			return Challenge{}, false, nil // a redirect: the documents may exist nevertheless
		}
		return Challenge{}, false, err
	}
	_ = resp.Body.Close() // only the header is needed; the body may be an endless stream
	if resp.StatusCode != http.StatusUnauthorized {
		return Challenge{}, false, nil
	}
	ch, _ = BearerChallenge(resp.Header)
	return ch, true, nil
}

// protectedResource fetches the RFC 9728 document: at the address of the challenge, then path-inserted, then at the
// root. It returns errAbsent when there is none. A challenge that points to a forbidden address is skipped, not
// fetched (attack S05).
func (c *Client) protectedResource(ctx context.Context, upstream *url.URL, named string) (protected, error) {
	const wellKnown = "/.well-known/oauth-protected-resource"
	origin := upstream.Scheme + "://" + upstream.Host
	var addresses []string
	if named != "" && c.checkURL(named) == nil {
		addresses = append(addresses, named)
	}
	if p := strings.TrimSuffix(upstream.EscapedPath(), "/"); p != "" || upstream.RawQuery != "" {
		inserted := origin + wellKnown + p
		if upstream.RawQuery != "" {
			inserted += "?" + upstream.RawQuery
		}
		addresses = append(addresses, inserted)
	}
	addresses = append(addresses, origin+wellKnown)

	var failure error
	for i, address := range addresses {
		if slices.Contains(addresses[:i], address) {
			continue
		}
		v, err := c.document(ctx, address)
		switch {
		case err == nil:
			p, err := parseProtected(v, upstream, c.checkURL)
			if err != nil {
				return protected{}, fmt.Errorf("protected resource metadata: %w", err)
			}
			return p, nil
		case errors.Is(err, errAbsent), errors.Is(err, netguard.ErrRefused):
			// A host name that resolves to a forbidden address is refused only when it is dialled.
		case errors.Is(err, ErrUnavailable):
			failure = errors.Join(failure, err)
		default:
			return protected{}, fmt.Errorf("protected resource metadata: %w", err)
		}
	}
	if failure != nil {
		return protected{}, fmt.Errorf("protected resource metadata: %w", failure)
	}
	return protected{}, errAbsent
}

// parseProtected reads an RFC 9728 document about upstream.
func parseProtected(v strictjson.Value, upstream *url.URL, check func(string) error) (protected, error) {
	var p protected
	var err error
	if p.resource, err = text(v, "resource"); err != nil {
		return protected{}, err
	}
	if !covers(p.resource, upstream) {
		return protected{}, fmt.Errorf("%w: the document is about another resource", ErrMismatch)
	}
	if p.servers, _, err = texts(v, "authorization_servers"); err != nil {
		return protected{}, err
	}
	if len(p.servers) == 0 {
		return protected{}, fmt.Errorf("%w: no authorization_servers", ErrMalformed)
	}
	for _, s := range p.servers {
		if err := check(s); err != nil {
			return protected{}, fmt.Errorf("%w: authorization_servers: %w", ErrMalformed, err)
		}
	}
	if p.scopes, _, err = texts(v, "scopes_supported"); err != nil {
		return protected{}, err
	}
	return p, nil
}

// covers reports whether resource names upstream: the same URL, or one of the same origin whose path is a parent of
// upstream's by whole segments. RFC 9728 section 3.3 demands equality with the URL from which the document's address
// was made. The document at the root is made from the origin, and servers give one document for all their paths.
func covers(resource string, upstream *url.URL) bool {
	if resource == upstream.String() {
		return true
	}
	r, err := url.Parse(resource)
	if err != nil || r.User != nil || r.Fragment != "" || r.Opaque != "" || r.Host == "" {
		return false
	}
	if !strings.EqualFold(r.Scheme, upstream.Scheme) || authority(r) != authority(upstream) {
		return false
	}
	parent, child := path.Clean("/"+r.EscapedPath()), path.Clean("/"+upstream.EscapedPath())
	if r.RawQuery != "" {
		return r.RawQuery == upstream.RawQuery && parent == child
	}
	return parent == "/" || parent == child || strings.HasPrefix(child, parent+"/")
}

// authority returns host:port in lower case, with the scheme's default port written out.
func authority(u *url.URL) string {
	port := u.Port()
	if port == "" {
		if port = "443"; strings.EqualFold(u.Scheme, "http") {
			port = "80"
		}
	}
	return strings.ToLower(u.Hostname()) + ":" + port
}

// legacy finds the authorization server as MCP 2025-03-26 prescribes: the MCP server's origin is the issuer. Where a
// token was demanded and there is no document either, that revision prescribes the endpoints. A client's own secret is not
// sent to an endpoint that is only assumed.
func (c *Client) legacy(ctx context.Context, upstream *url.URL, demanded bool, what need) (Discovery, error) {
	origin := upstream.Scheme + "://" + upstream.Host
	d, err := c.named(ctx, origin, what)
	if err == nil || !errors.Is(err, errAbsent) || !demanded || !what.inBrowser() {
		return d, err
	}
	return Discovery{
		Endpoints: storage.OAuthEndpoints{
			Issuer:                origin,
			AuthorizationEndpoint: origin + "/authorize",
			TokenEndpoint:         origin + "/token",
			RegistrationEndpoint:  origin + "/register",
		},
		AuthMethods: []string{AuthNone, AuthPost, AuthBasic},
		Assumed:     true,
	}, nil
}
