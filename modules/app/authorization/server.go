// Package authorization is the gateway as an OAuth authorization server, in one configuration: it gives
// internal/identity/logins the identity providers, the rules for clients and the addresses of the resources.
package authorization

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/durward-gateway/durward/internal/api/slug"
	"github.com/durward-gateway/durward/internal/identity/authn"
	"github.com/durward-gateway/durward/internal/identity/authserver"
	"github.com/durward-gateway/durward/internal/identity/bruteforce"
	"github.com/durward-gateway/durward/internal/identity/caller"
	"github.com/durward-gateway/durward/internal/identity/logins"
	"github.com/durward-gateway/durward/internal/identity/oidclogin"
	"github.com/durward-gateway/durward/internal/identity/token"
	"github.com/durward-gateway/durward/internal/proxy/netguard"
	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/internal/strictjson"
	"github.com/durward-gateway/durward/modules/app/browsers"
	"github.com/durward-gateway/durward/modules/app/issuers"
	"github.com/durward-gateway/durward/modules/app/paths"
	"github.com/durward-gateway/durward/modules/app/settings"
	"github.com/durward-gateway/durward/storage"
)

// documentTimeout is the time that a client's metadata document may take.
const documentTimeout = 5 * time.Second

// Recorder writes an entry to the audit log of an organization.
type Recorder interface {
	Event(ctx context.Context, organization string, e storage.AuditEntry) error
}

// Options holds what a Server is made of. All are required, except Owner and Rules.
type Options struct {
	// PublicURL is the gateway's address, without a slash at the end: the issuer.
	PublicURL string
	// Owner is the issuer under which the store keeps the clients as agents. Default: PublicURL.
	Owner string
	// On reports whether there is a server.
	On       bool
	Rules    *settings.AuthorizationServer
	Store    storage.Store
	Keyring  *seal.Keyring
	Guard    *netguard.Guard
	Browsers *browsers.Logins
	Issuers  *issuers.Issuers
	Audit    Recorder
	Log      *slog.Logger
	// Now returns the time that all nodes have in common.
	Now func() time.Time
}

// Server is the authorization server. It is safe for concurrent use.
type Server struct {
	*logins.Server

	options       Options
	keys          *logins.SigningKeys
	authenticator *authn.Authenticator
	guesses       *logins.Guesses
	registrations *bruteforce.Guesses // counts clients that register as that counts wrong credentials: 60 in a minute
}

// New makes the server. It returns nil when the configuration has none.
func New(o Options) (*Server, error) {
	if !o.On {
		if asserting := o.Browsers.Asserting(); len(asserting) > 0 {
			return nil, fmt.Errorf("identity %s: id_jag needs the authorization server, which is off: it takes the assertions", asserting[0])
		}
		return nil, nil //nolint:nilnil // there is none
	}
	clients, err := o.Rules.KnownClients()
	if err != nil {
		return nil, err
	}
	s := &Server{options: o, keys: logins.NewSigningKeys(o.Store, o.Keyring, o.Now), guesses: logins.NewGuesses(nil), registrations: bruteforce.New(nil)}
	lifetime, idle := o.Rules.Lifetimes()
	made := logins.Options{
		Store: o.Store, Vault: o.Keyring, MACs: o.Keyring.MAC("oauth login"), Keys: s.keys, Issuer: o.PublicURL, TokenEndpoint: o.PublicURL + paths.Token, Clients: clients,
		Renew: s.renew, Stands: s.stands, Replayed: s.replayed, Lifetime: lifetime, Idle: idle, Log: o.Log, Now: o.Now,
	}
	if o.Rules.FetchesDocuments() {
		made.Documents = authserver.NewDocuments(o.Guard.FetchClient(documentTimeout, authserver.MaxDocument+1), o.Now)
	}
	s.Server = logins.New(made)
	return s, nil
}

// Bind gives the server the authenticator that reads the claims of identity providers. It must be called before the
// first login is renewed.
func (s *Server) Bind(a *authn.Authenticator) {
	if s != nil {
		s.authenticator = a
	}
}

// Accepted returns the part of an authenticator that accepts the server's access tokens; nil when there is no server.
func (s *Server) Accepted() (*authn.Logins, error) {
	if s == nil {
		return nil, nil //nolint:nilnil // none are accepted
	}
	verifier, err := token.NewVerifier(token.Options{
		Issuer: s.options.PublicURL, Audiences: []string{s.options.PublicURL}, AudSingle: true, Algorithms: []string{"ES256"},
		MaxLifetime: logins.AccessLifetime, RequireTyp: true,
	}, s.keys, s.options.Now)
	if err != nil {
		return nil, fmt.Errorf("setting up the authorization server: %w", err)
	}
	return &authn.Logins{
		Issuer: s.options.PublicURL, Owner: s.Owner(), Verifier: verifier, Roles: s.roles, Admits: s.options.Rules.Admits, Asserts: s.asserts,
		Console: s.ConsoleAudience(),
	}, nil
}

// roles implements authn.Logins.
func (s *Server) roles(issuer, audience string) (names caller.RoleNames, ok bool) {
	if !s.stands(issuer, audience) {
		return caller.RoleNames{}, false
	}
	return s.options.Issuers.ByName()[issuer].Rules().Roles, true
}

// stands reports whether users log in at an identity provider with that client of the gateway.
func (s *Server) stands(issuer, audience string) bool {
	provider, ok := s.options.Browsers.Provider(issuer)
	return ok && provider.Client == audience
}

// renew asks the identity provider of a login for new facts.
func (s *Server) renew(ctx context.Context, l storage.Login, refresh seal.Secret) (logins.Renewal, error) {
	provider, ok := s.options.Browsers.Provider(l.Issuer)
	if !ok || provider.Client != l.Audience {
		return logins.Renewal{}, errors.New("its identity provider is not configured any more")
	}
	answer, err := provider.Renew(ctx, l.Subject, refresh)
	renewal := logins.Renewal{Facts: l.Facts, Refresh: answer.Refresh}
	switch {
	case errors.Is(err, oidclogin.ErrEnded):
		return renewal, fmt.Errorf("%w: %w", logins.ErrEnded, err)
	case err != nil || answer.Claims == nil:
		return renewal, err
	}
	if answer.Partial {
		if err := complete(answer.Claims, l.Facts.Claims); err != nil {
			return renewal, err
		}
	}
	who, err := s.authenticator.Login(ctx, answer.Claims, s.options.Now())
	switch {
	case errors.Is(err, caller.ErrForbidden), errors.Is(err, storage.ErrForeignOrganization), errors.Is(err, authn.ErrMachine):
		return renewal, fmt.Errorf("%w: %w", logins.ErrEnded, err) // the user may act for no organization any more
	case err != nil:
		return renewal, err
	case who.OrganizationID != l.OrganizationID || who.UserID != l.UserID:
		return renewal, fmt.Errorf("%w: it names another user or organization now", logins.ErrEnded)
	}
	renewal.Facts = authn.FactsOf(who, answer.Claims)
	renewal.IDToken, renewal.IDTokenExpiresAt = answer.IDToken, answer.Claims.ExpiresAt
	return renewal, nil
}

// replayed records that a login was ended because its code or refresh token came twice. It has ended whether this is recorded
// or not.
func (s *Server) replayed(ctx context.Context, l *storage.Login, what string) {
	err := s.options.Audit.Event(ctx, l.OrganizationID, storage.AuditEntry{
		Kind: storage.AuditLogin, Event: "client.replay", UserID: l.UserID, Client: l.ClientID, Outcome: "refused",
		Detail: map[string]any{"login": l.ID, "what": what},
	})
	if err != nil {
		s.options.Log.Error("recording a code or refresh token that came twice", "login", l.ID, "error", err)
	}
}

// complete adds the former claims of a user to those of userinfo, which may lack the organization, roles or groups: without
// them the login would end, or lose its rights, because the provider sends no ID token at a refresh (OpenID Connect Core
// section 12.2).
func complete(claims *token.Claims, former string) error {
	all := make(map[string]json.RawMessage)
	for _, text := range [][]byte{[]byte(cmp.Or(former, "{}")), claims.Object.AppendWithout(nil, func([]byte) bool { return false })} {
		if err := json.Unmarshal(text, &all); err != nil {
			return fmt.Errorf("reading the claims of a login: %w", err)
		}
	}
	text, err := json.Marshal(all)
	if err != nil {
		return fmt.Errorf("writing the claims of a login: %w", err)
	}
	claims.Object, err = strictjson.Parse(text, strictjson.Limits{})
	return err
}

// Target reports whether tokens are issued for a resource: the gateway, or one of its MCP servers, whether a server of
// that name exists or not.
func (s *Server) Target(resource string) bool {
	if resource == s.options.PublicURL || resource == s.options.PublicURL+"/" {
		return true
	}
	name, ok := strings.CutPrefix(resource, s.options.PublicURL+paths.MCPPrefix)
	return ok && slug.Valid(name)
}

// Resource returns the audience for the resources that a request names, and the slug of the server; "" for the gateway.
// It reports false when the request names several: a token is for one.
func (s *Server) Resource(targets []string) (audience, server string, ok bool) {
	switch {
	case len(targets) > 1:
		return "", "", false
	case len(targets) == 0:
		return s.options.PublicURL, "", true
	}
	audience = strings.TrimSuffix(targets[0], "/")
	return audience, strings.TrimPrefix(strings.TrimPrefix(audience, s.options.PublicURL), paths.MCPPrefix), true
}

// Client finds a client that may log users in. Errors are those of logins.Server, and authserver.ErrNoClient.
func (s *Server) Client(ctx context.Context, id string) (*authserver.Client, error) {
	if !s.options.Rules.Admits(id) {
		return nil, authserver.ErrNoClient
	}
	return s.Server.Client(ctx, id)
}

// Owner returns the issuer under which the store keeps the clients as agents.
func (s *Server) Owner() string { return cmp.Or(s.options.Owner, s.options.PublicURL) }

// Configured reports whether a client is one of the configuration.
func (s *Server) Configured(id string) bool { return s.options.Rules.Configures(id) }

// Lifetimes returns the time after which a login ends, and the time after which an unused one does.
func (s *Server) Lifetimes() (lifetime, idle time.Duration) { return s.Lifetime, s.Idle }

// Registers reports whether clients may register themselves.
func (s *Server) Registers() bool { return s.options.Rules.Registers() }

// RegistrationWait counts a client that registers from the peer of a connection ("host:port"), and returns the time
// that it has to wait; zero when it may register now.
func (s *Server) RegistrationWait(remote string) time.Duration {
	a := bruteforce.Attempt{From: bruteforce.Address(remote)}
	_, _ = rand.Read(a.Credential[:])
	return s.registrations.Failed(a)
}

// Keys returns the public keys of access tokens.
func (s *Server) Keys(ctx context.Context) ([]logins.JWK, error) { return s.keys.Public(ctx) }

// Metadata returns the server's metadata (RFC 8414 section 2, OpenID Connect Discovery section 3).
func (s *Server) Metadata() map[string]any {
	grants := []string{authserver.GrantCode, authserver.GrantRefresh, authserver.GrantMachine}
	m := map[string]any{
		"issuer":                           s.options.PublicURL,
		"authorization_endpoint":           s.options.PublicURL + paths.Authorize,
		"token_endpoint":                   s.options.PublicURL + paths.Token,
		"revocation_endpoint":              s.options.PublicURL + paths.Revoke,
		"jwks_uri":                         s.options.PublicURL + paths.Keys,
		"response_types_supported":         []string{"code"},
		"response_modes_supported":         []string{"query"},
		"grant_types_supported":            grants,
		"code_challenge_methods_supported": []string{"S256"},
		"authorization_response_iss_parameter_supported": true,
	}
	for _, endpoint := range [...]string{"token", "revocation"} {
		m[endpoint+"_endpoint_auth_methods_supported"] = append(authserver.AuthMethods(), authserver.AuthKey)
		m[endpoint+"_endpoint_auth_signing_alg_values_supported"] = token.DefaultAlgorithms()
	}
	if s.Registers() {
		m["registration_endpoint"] = s.options.PublicURL + paths.Register
	}
	if s.options.Rules.FetchesDocuments() {
		m["client_id_metadata_document_supported"] = true
	}
	if s.TakesAssertions() {
		m["grant_types_supported"] = append(grants, authserver.GrantAssertion)
		m["authorization_grant_profiles_supported"] = []string{authserver.ProfileIDJAG}
	}
	return m
}
