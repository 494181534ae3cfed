// Package idp is the development identity provider: OpenID Connect over a handful of fixed users without passwords, on
// loopback addresses only. It is like a company's: it registers no clients, and knows one, the gateway. Its keys and the ids
// of its users survive a restart, also at another address.
//
// Its login page is a form that a program can send too: POST to the page's address `ticket`, the value of the hidden input
// of that name, and `user`, an email of Users; the answer is a 303 to the redirect URI with code, state and iss.
package idp

import (
	"crypto"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/durward-gateway/durward/internal/identity/authserver"
	"github.com/durward-gateway/durward/internal/proxy/loopback"
	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/modules/devidp/oauthserver"
)

// Client is the id of the one client: the gateway, which logs its users in.
const Client = "durward"

// AccessLifetime is the lifetime of an access token.
const AccessLifetime = 15 * time.Minute

// Options holds the place of a provider, its client, and the audiences of its tokens.
type Options struct {
	Dir         string           // keeps two files of the provider, mode 0600; made when it does not exist
	Issuer      string           // http(s)://<loopback host>[:port]/dev/idp
	RedirectURI string           // the one of Client
	Audiences   []string         // the gateway's; in every access token beside the requested ones
	Now         func() time.Time // nil: time.Now
}

// Provider is the development identity provider. Two providers must not share a directory at the same time. It holds
// nothing that needs closing.
type Provider struct {
	issuer    string
	root      string // the issuer without its path
	path      string // the issuer's path
	audiences []string
	now       func() time.Time
	users     map[string]User
	identity  *identity
	key       *rsa.PrivateKey
	kid       string
	secret    seal.Secret // of the client
	jwks      []byte
	auth      *oauthserver.Server
	handler   http.Handler
}

// Open makes a provider from the files in its directory.
func Open(o Options) (*Provider, error) {
	u, err := url.Parse(o.Issuer)
	if err != nil || !loopback.IsURL(u) || u.Path == "" || u.Path == "/" || u.RawQuery != "" || u.Fragment != "" || u.EscapedPath() != u.Path {
		return nil, fmt.Errorf("opening development identity provider: issuer %q is not an address on this machine with a path", o.Issuer)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("opening development identity provider: %w", err)
	}
	id, key, err := loadIdentity(filepath.Join(o.Dir, "devidp-identity.json"))
	if err != nil {
		return nil, fmt.Errorf("opening development identity provider: %w", err)
	}
	public := publicJWK(&key.PublicKey)
	jwks, err := json.Marshal(map[string][]jwk{"keys": {public}})
	if err != nil {
		return nil, fmt.Errorf("opening development identity provider: %w", err)
	}
	p := &Provider{
		issuer: o.Issuer, root: u.Scheme + "://" + u.Host, path: u.Path, audiences: slices.Clone(o.Audiences), now: o.Now,
		users: make(map[string]User), identity: id, key: key, kid: public.ID, jwks: jwks, secret: seal.NewSecret(authserver.Random()),
	}
	for _, user := range Users() {
		p.users[user.Email] = user
	}
	p.auth, err = oauthserver.Open(oauthserver.Config{
		Issuer: o.Issuer, StatePath: filepath.Join(o.Dir, "devidp-grants.json"), Now: o.Now,
		Clients: []authserver.Client{{
			ID: Client, Name: "The gateway", AuthMethod: authserver.AuthBasic, SecretHash: authserver.HashSecret(p.secret.Reveal()),
			RedirectURIs: []string{o.RedirectURI}, GrantTypes: []string{authserver.GrantCode, authserver.GrantRefresh},
		}},
		Site: "Development login", Title: "Log in as one of these users", Pick: pick, PickField: "user", PickData: Users(),
		Subject: p.subject, Scopes: scopes, Sign: p.sign, AccessLifetime: AccessLifetime,
	})
	if err != nil {
		return nil, fmt.Errorf("opening development identity provider: %w", err)
	}
	p.handler = loopback.Guard(p.routes())
	return p, nil
}

// pick is the part of the login form that names the user who logs in.
const pick = `<div class="people">{{range .}}<button name="user" value="{{.Email}}"><span>{{.Name}}, <strong>{{.Email}}</strong></span> <small>organization {{.Organization}}{{range .Roles}}, role {{.}}{{end}}{{range .Groups}}, group {{.}}{{end}}</small></button>
{{end}}</div>`

func (p *Provider) subject(email string) (string, error) {
	if _, ok := p.users[email]; !ok {
		return "", errors.New("no such user")
	}
	return email, nil
}

// scopes grants the requested scopes: the gateway decides what a scope means.
func scopes(requested []string) ([]string, error) {
	if len(requested) == 0 {
		return []string{"email", "openid", "profile"}, nil
	}
	return requested, nil
}

// Issuer returns the issuer in the form of the tokens.
func (p *Provider) Issuer() string { return p.issuer }

// Secret returns the client's secret. The provider makes one when it is opened, and keeps it nowhere: nobody but the gateway
// of this process needs it.
func (p *Provider) Secret() seal.Secret { return p.secret }

// JWKS returns the public keys as a JWK set (RFC 7517).
func (p *Provider) JWKS() []byte { return slices.Clone(p.jwks) }

// Keys returns the public keys by kid; all are for RS256.
func (p *Provider) Keys() map[string]crypto.PublicKey {
	return map[string]crypto.PublicKey{p.kid: &p.key.PublicKey}
}

// UserID returns the id of a user, the sub of the tokens; "" when there is none with that email.
func (p *Provider) UserID(email string) string { return p.identity.Users[email] }

// OrganizationID returns the id of an organization, the org_id of the tokens; "" when there is none of that slug.
func (p *Provider) OrganizationID(slug string) string { return p.identity.Organizations[slug] }

// RootPaths returns the paths outside the issuer's own that the provider answers: RFC 8414 section 3.1 puts the
// metadata of an issuer with a path there.
func (p *Provider) RootPaths() []string {
	return []string{"/.well-known/oauth-authorization-server" + p.path, "/.well-known/openid-configuration" + p.path}
}

// ServeHTTP answers everything below the issuer and the paths of RootPaths, on loopback hosts and without a proxy only.
func (p *Provider) ServeHTTP(w http.ResponseWriter, r *http.Request) { p.handler.ServeHTTP(w, r) }

func (p *Provider) routes() http.Handler {
	metadata := authserver.Public(p.serveMetadata)
	mux := http.NewServeMux()
	for _, path := range p.RootPaths() {
		mux.Handle(path, metadata)
	}
	mux.Handle(p.path+"/.well-known/openid-configuration", metadata)
	mux.Handle(p.path+"/.well-known/oauth-authorization-server", metadata)
	mux.Handle(p.path+"/jwks", authserver.Public(p.serveJWKS))
	mux.Handle(p.path+"/authorize", p.auth.Authorize())
	mux.Handle(p.path+"/token", p.auth.Token())
	mux.Handle(p.path+"/userinfo", authserver.Restricted(p.serveUserinfo, nil, http.MethodGet, http.MethodPost))
	return mux
}

func (p *Provider) serveMetadata(w http.ResponseWriter, _ *http.Request) {
	m := p.auth.Metadata()
	m["jwks_uri"] = p.issuer + "/jwks"
	m["userinfo_endpoint"] = p.issuer + "/userinfo"
	m["token_endpoint_auth_methods_supported"] = []string{authserver.AuthBasic, authserver.AuthPost}
	m["scopes_supported"] = []string{"openid", "profile", "email", "offline_access"}
	m["subject_types_supported"] = []string{"public"}
	m["id_token_signing_alg_values_supported"] = []string{"RS256"}
	m["claims_supported"] = []string{"iss", "sub", "aud", "exp", "iat", "auth_time", "nonce", "azp", "email", "name", "org_id", "organization_slug", "roles", "groups"}
	authserver.WriteJSON(w, http.StatusOK, m)
}

func (p *Provider) serveJWKS(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/jwk-set+json")
	w.Header().Set("Cache-Control", "no-cache")
	_, _ = w.Write(p.jwks)
}
