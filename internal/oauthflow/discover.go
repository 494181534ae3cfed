package oauthflow

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

	"github.com/durward-gateway/durward/internal/netguard"
	"github.com/durward-gateway/durward/internal/strictjson"
	"github.com/durward-gateway/durward/storage"
)

// discoveryTimeout bounds a whole discovery, which asks at most ten times.
const discoveryTimeout = 15 * time.Second

// Target is an MCP server whose authorization server is looked for.
type Target struct {
	// URL of the MCP endpoint.
	URL string
	// Known endpoints, of the directory entry. They win over what is discovered; when the authorization and the token
	// endpoint are known nothing is fetched, and when only the issuer is, the MCP server is not asked. One of the two
	// endpoints without the issuer is an error: the MCP server would supply the other, and with it take the codes of the
	// known server (attacks S08, A04).
	Known storage.OAuthEndpoints
	// Scopes configured by the operator; empty to discover them.
	Scopes []string
	// Issuer is preferred when the MCP server names several: the one at which a client is already kept.
	Issuer string
	// Roots are the certificate authorities to trust; nil: the system's.
	Roots *x509.CertPool
}

// Discover finds the authorization server of an MCP server: an unauthenticated request, the RFC 9728 document that its
// 401 names or that lies at a well-known place, the RFC 8414 document of the authorization server; without an RFC 9728
// document the MCP 2025-03-26 way, metadata at the root of the MCP server's own origin.
//
// The issuer found may be another one than before. A caller that keeps a client or tokens compares it and sends none of
// them to a new issuer (attack S08).
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
	if t.Known.Issuer == "" && (t.Known.AuthorizationEndpoint == "") != (t.Known.TokenEndpoint == "") {
		return Discovery{}, fmt.Errorf("discovering: %w: the authorization and the token endpoint are configured together or not at all", ErrMalformed)
	}
	var d Discovery
	var resource protected
	switch {
	case t.Known.AuthorizationEndpoint != "" && t.Known.TokenEndpoint != "":
	case t.Known.Issuer != "":
		d, err = c.FetchMetadata(ctx, t.Known.Issuer)
	default:
		d, resource, err = c.ask(ctx, upstream, t.Issuer)
	}
	if err != nil {
		return Discovery{}, fmt.Errorf("discovering: %w", err)
	}
	d.Endpoints = overlay(d.Endpoints, t.Known)
	if d.Endpoints.Resource == "" {
		d.Endpoints.Resource = t.URL
	}
	if d.Scopes, err = chooseScopes(t.Scopes, resource.challenged, resource.scopes, d.scopesSupported); err != nil {
		return Discovery{}, fmt.Errorf("discovering: %w", err)
	}
	return d, nil
}

// overlay is found with known's members over it.
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

// protected is what a protected resource says of itself.
type protected struct {
	resource   string
	servers    []string // issuers
	scopes     []string // scopes_supported
	challenged string   // scope of the 401
}

// ask asks the MCP server itself.
func (c *Client) ask(ctx context.Context, upstream *url.URL, prefer string) (Discovery, protected, error) {
	challenge, demanded, err := c.probe(ctx, upstream)
	if err != nil {
		return Discovery{}, protected{}, err
	}
	p, err := c.protectedResource(ctx, upstream, challenge.ResourceMetadata)
	if errors.Is(err, errAbsent) {
		d, err := c.legacy(ctx, upstream, demanded)
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
	d, err := c.named(ctx, issuer)
	if err != nil {
		return Discovery{}, protected{}, err
	}
	d.Endpoints.Resource = p.resource
	return d, p, nil
}

// named fetches the metadata of an issuer that an MCP server names. Many servers name an address whose document is another
// issuer's: with a final slash, or of another host. Nothing of such a document is used (RFC 8414 section 3.3) but that
// name: the issuer is asked itself, as if the server had named it, and has to name itself.
func (c *Client) named(ctx context.Context, issuer string) (Discovery, error) {
	d, err := c.FetchMetadata(ctx, issuer)
	other, ok := errors.AsType[*issuerError](err)
	if !ok {
		return d, err
	}
	if d, errOther := c.FetchMetadata(ctx, other.found); errOther == nil {
		return d, nil
	}
	return Discovery{}, err
}

// probeBody is a ping: the one request that every revision up to 2025-11-25 allows before initialize, and that makes no
// session where no token is demanded.
const probeBody = `{"jsonrpc":"2.0","id":1,"method":"ping"}`

// probe sends a request without a token. demanded is true when the answer was a 401.
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
			return Challenge{}, false, nil // a redirect: its documents may be in place all the same
		}
		return Challenge{}, false, err
	}
	_ = resp.Body.Close() // only the header counts; the body may be an endless stream
	if resp.StatusCode != http.StatusUnauthorized {
		return Challenge{}, false, nil
	}
	ch, _ = BearerChallenge(resp.Header)
	return ch, true, nil
}

// protectedResource fetches the RFC 9728 document: where the challenge says, path-inserted, at the root. errAbsent when
// there is none. A challenge that points to a forbidden place is passed over, not fetched (attack S05).
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
			// A name that resolves to a forbidden address is refused only when it is dialled.
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
// upstream's by whole segments. RFC 9728 section 3.3 wants equality with the URL that the document's address was made
// from; the document at the root is made from the origin, and servers give one document for all their paths.
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

// authority is host:port in lower case with the scheme's port written out.
func authority(u *url.URL) string {
	port := u.Port()
	if port == "" {
		if port = "443"; strings.EqualFold(u.Scheme, "http") {
			port = "80"
		}
	}
	return strings.ToLower(u.Hostname()) + ":" + port
}

// legacy is the way of MCP 2025-03-26: the MCP server's origin is the issuer. Where a token was demanded and there is no
// document either, that revision prescribes the endpoints.
func (c *Client) legacy(ctx context.Context, upstream *url.URL, demanded bool) (Discovery, error) {
	origin := upstream.Scheme + "://" + upstream.Host
	d, err := c.named(ctx, origin)
	if err == nil || !errors.Is(err, errAbsent) || !demanded {
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
