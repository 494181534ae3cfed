package settings

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/durward-gateway/durward/internal/identity/authserver"
	"github.com/durward-gateway/durward/internal/identity/logins"
)

// These are the words of the options authorization_server and oauth_clients.
const (
	AuthorizationOn  = "on"
	AuthorizationOff = "off"
	ClientsAny       = "any"
	ClientsKnown     = "known"
)

// CheckAuthorizationMode refuses a word that the option authorization_server does not know; "" is the default.
func CheckAuthorizationMode(word string) error {
	switch word {
	case "", AuthorizationOn, AuthorizationOff:
		return nil
	}
	return fmt.Errorf("authorization_server: %q is neither %s nor %s", word, AuthorizationOn, AuthorizationOff)
}

// AuthorizationServer holds the rules of the gateway as an OAuth authorization server: clients log their users in at the
// gateway, which logs them in at the identity provider.
type AuthorizationServer struct {
	// Whether clients log their users in at the gateway: `on`, which needs an identity with a `login_client` and
	// `durward_session` in the site, or `off`, when they are sent to the identity providers. Default: on where every
	// identity has a `login_client` and `durward_session` is there, else off.
	Mode string `json:"mode,omitempty"`

	// The clients that may log users in: `any`, `known` for those of this configuration alone, or those and the clients
	// whose metadata documents are at these hosts. Only with `any` clients may register themselves. Default: any.
	Clients []string `json:"oauth_clients,omitempty"`

	// Clients of this configuration. Default: none.
	Known []OAuthClient `json:"oauth_client,omitempty"`

	// The time after which a login with a client ends, however often it is used. Default: 30d.
	Lifetime caddy.Duration `json:"lifetime,omitempty"`

	// The time after which a login with a client ends that the client does not use. Default: 7d.
	Idle caddy.Duration `json:"idle,omitempty"`
}

// OAuthClient is an OAuth client of the configuration.
type OAuthClient struct {
	// The client's id. That can be the address of the client's metadata document: the gateway then takes what stands
	// here, and does not fetch the document. Required.
	ID string `json:"id,omitempty"`

	// The name that users see. Default: the id.
	Name string `json:"name,omitempty"`

	// A reference to the client's secret, `{env.NAME}` or `{file./path}`. Default: none, for a public client.
	Secret string `json:"secret,omitempty"`

	// The addresses to which the client's users are sent back: https, or http on the user's own machine, where the port
	// of a public client does not matter. At least one is required.
	RedirectURIs []string `json:"redirect_uris,omitempty"`
}

// Check returns the first mistake.
func (s *AuthorizationServer) Check() error {
	if s == nil {
		return nil
	}
	if err := CheckAuthorizationMode(s.Mode); err != nil {
		return err
	}
	if s.Lifetime < 0 || s.Idle < 0 {
		return errors.New("authorization_server: a time is negative")
	}
	if life, idle := s.lifetimes(); idle > life {
		return fmt.Errorf("authorization_server: a login cannot be unused for %s when it ends after %s", idle, life)
	}
	return s.CheckClients()
}

// CheckClients returns the first mistake in the rules for clients.
func (s *AuthorizationServer) CheckClients() error {
	for _, word := range s.Clients {
		if (word == ClientsAny || word == ClientsKnown) && len(s.Clients) > 1 {
			return fmt.Errorf("oauth_clients: %s stands alone", word)
		}
		if u, err := url.Parse("https://" + word); err != nil || u.Host != word || word == "" || strings.Contains(word, "*") {
			return fmt.Errorf("oauth_clients: %q is none of any, known and hosts such as claude.ai", word)
		}
	}
	return s.checkKnown()
}

// checkKnown returns the first mistake in the clients of the configuration.
func (s *AuthorizationServer) checkKnown() error {
	var ids []string
	for i := range s.Known {
		c := &s.Known[i]
		described := strings.Contains(c.ID, "://")
		if c.ID == "" || described && !authserver.IsDocumentURL(c.ID) || slices.Contains(ids, c.ID) {
			return fmt.Errorf("oauth_client: %q is no id, or is there twice", c.ID)
		}
		if described && c.Secret != "" {
			return fmt.Errorf("oauth_client %s: a client whose id is the address of its metadata document has no secret", c.ID)
		}
		ids = append(ids, c.ID)
		if len(c.RedirectURIs) == 0 {
			return fmt.Errorf("oauth_client %s: a redirect_uri is needed", c.ID)
		}
		for _, redirect := range c.RedirectURIs {
			if _, ok := authserver.ParseRedirect(redirect); !ok {
				return fmt.Errorf("oauth_client %s: redirect_uri %q is neither https nor http on the user's own machine, nor of a private-use scheme", c.ID, redirect)
			}
		}
	}
	return nil
}

func (s *AuthorizationServer) lifetimes() (lifetime, idle time.Duration) {
	lifetime, idle = logins.DefaultLifetime, logins.DefaultIdle
	if s.Lifetime > 0 {
		lifetime = time.Duration(s.Lifetime)
		idle = min(idle, lifetime)
	}
	if s.Idle > 0 {
		idle = time.Duration(s.Idle)
	}
	return lifetime, idle
}

// With returns the rules with more clients. Clients that are there take precedence over those of the same id.
func (s *AuthorizationServer) With(known []OAuthClient) *AuthorizationServer {
	var more AuthorizationServer
	if s != nil {
		more = *s
	}
	more.Known = slices.Clone(more.Known)
	for _, c := range known {
		if !s.Configures(c.ID) {
			more.Known = append(more.Known, c)
		}
	}
	return &more
}

// Required reports whether the configuration asks for the authorization server by name.
func (s *AuthorizationServer) Required() bool { return s != nil && s.Mode == AuthorizationOn }

// On reports whether the gateway is an authorization server. able reports whether it can be: users can log in at its pages.
func (s *AuthorizationServer) On(able bool) bool {
	if s == nil || s.Mode == "" {
		return able
	}
	return s.Mode == AuthorizationOn
}

// Lifetimes returns the time after which a login ends, and the time after which an unused one does.
func (s *AuthorizationServer) Lifetimes() (lifetime, idle time.Duration) {
	if s == nil {
		s = new(AuthorizationServer)
	}
	return s.lifetimes()
}

// Registers reports whether clients may register themselves.
func (s *AuthorizationServer) Registers() bool {
	return s == nil || len(s.Clients) == 0 || s.Clients[0] == ClientsAny
}

// Admits reports whether a client may log users in.
func (s *AuthorizationServer) Admits(id string) bool {
	if s.Registers() || s.Configures(id) {
		return true
	}
	if s.Clients[0] == ClientsKnown { // also a host may have that name
		return false
	}
	u, err := url.Parse(id)
	return err == nil && u.Host != "" && slices.ContainsFunc(s.Clients, func(host string) bool { return strings.EqualFold(host, u.Host) })
}

// Configures reports whether a client is one of the configuration.
func (s *AuthorizationServer) Configures(id string) bool {
	return s != nil && slices.ContainsFunc(s.Known, func(c OAuthClient) bool { return c.ID == id })
}

// FetchesDocuments reports whether any metadata document can be a client's.
func (s *AuthorizationServer) FetchesDocuments() bool {
	return s.Registers() || s.Clients[0] != ClientsKnown
}

// KnownClients returns the clients of the configuration, with their secrets resolved.
func (s *AuthorizationServer) KnownClients() ([]authserver.Client, error) {
	if s == nil {
		return nil, nil
	}
	var clients []authserver.Client
	for _, c := range s.Known {
		made := authserver.Client{
			ID: c.ID, Name: c.Name, AuthMethod: authserver.AuthNone, RedirectURIs: c.RedirectURIs,
			GrantTypes: []string{authserver.GrantCode, authserver.GrantRefresh},
		}
		if made.Name == "" {
			made.Name = c.ID
		}
		if c.Secret != "" {
			secret, err := ResolveSecret(c.Secret)
			if err != nil {
				return nil, fmt.Errorf("oauth_client %s: %w", c.ID, err)
			}
			made.AuthMethod, made.SecretHash = authserver.AuthBasic, authserver.HashSecret(secret.Reveal())
			made.GrantTypes = append(made.GrantTypes, authserver.GrantAssertion)
		}
		clients = append(clients, made)
	}
	return clients, nil
}
