// Package oauthserver is the OAuth 2.1 authorization server that the development identity provider and the demo third
// party share: authorization codes with PKCE S256, refresh tokens with rotation and reuse detection, dynamic
// registration and revocation. Its owner decides the form of its tokens, the users who may log in and the scopes: see
// Config.
//
// Everything is bounded, and nothing secret is stored in the clear. Data that must survive a restart is on disk before
// the answer is sent. It is for development: there are no passwords.
package oauthserver

import (
	"errors"
	"fmt"
	"net/url"
	"sync"
	"time"

	"github.com/durward-gateway/durward/internal/api/webpage"
	"github.com/durward-gateway/durward/internal/identity/authserver"
	"github.com/durward-gateway/durward/modules/devidp/statefile"
)

// These are the bounds. Beyond a bound the oldest entries are dropped, whose owners can come back without harm, or
// requests are refused.
const (
	maxCodes        = 1_000
	maxTickets      = 10_000
	maxClients      = 1_000
	maxGrants       = 10_000
	maxAccessTokens = 20_000

	codeLifetime    = 60 * time.Second
	codeMemory      = 10 * time.Minute // the time for which a spent code is recognised as spent
	ticketLifetime  = 10 * time.Minute
	refreshLifetime = 30 * 24 * time.Hour
)

// Config holds the settings of an authorization server.
type Config struct {
	Issuer    string              // as in tokens and metadata; no trailing slash, no query. Endpoints lie below it
	StatePath string              // the file that keeps clients, grants and hashes of tokens
	Now       func() time.Time    // nil: time.Now
	Clients   []authserver.Client // clients that exist without registration

	// Site, Title, Pick, PickField and PickData make the login page: Site names the asking party, Pick is the template
	// text of the form's fields, one of which is named PickField. Subject turns the value of that field into the token's
	// subject.
	Site      string
	Title     string
	Pick      string
	PickField string
	PickData  any
	Subject   func(picked string) (string, error)

	// Scopes decides which of the requested scopes, none included, are granted. Its error is invalid_scope.
	Scopes func(requested []string) ([]string, error)
	// Target reports whether tokens for a resource or audience are issued. Nil: for any.
	Target func(target string) bool

	// Sign makes an access token for a grant, and members to add to the token response. Nil: tokens are opaque, begin
	// with TokenPrefix, live AccessLifetime and are found by Lookup.
	Sign           func(Grant) (token string, extra map[string]any, err error)
	AccessLifetime time.Duration
	TokenPrefix    string

	// Revoked, when set, is called with the grants of which a token was revoked, or all of them.
	Revoked func(grantID string)
}

// Server is an authorization server. Its handlers may be called at the same time.
type Server struct {
	config  Config
	static  map[string]*authserver.Client
	state   *statefile.File[*state]
	tickets *tickets
	page    *webpage.Template
	action  string // path of the authorization endpoint

	mu    sync.Mutex // held while a code is made or redeemed
	codes map[string]*code
}

// Open reads the state and makes a server. There is nothing to close.
func Open(c Config) (*Server, error) {
	u, err := url.Parse(c.Issuer)
	if err != nil || u.Host == "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
		return nil, fmt.Errorf("issuer %q is not a plain URL", c.Issuer)
	}
	if c.Subject == nil || c.Scopes == nil || c.AccessLifetime <= 0 {
		return nil, errors.New("an authorization server needs Subject, Scopes and AccessLifetime")
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	page, err := parsePage(c.Pick)
	if err != nil {
		return nil, err
	}
	file, err := statefile.Open(c.StatePath, newState())
	if err != nil {
		return nil, err
	}
	s := &Server{
		config: c, static: make(map[string]*authserver.Client), state: file, tickets: newTickets(c.Now), page: page,
		action: u.Path + "/authorize", codes: make(map[string]*code),
	}
	for i := range c.Clients {
		s.static[c.Clients[i].ID] = &c.Clients[i]
	}
	return s, nil
}

// Metadata returns the members of RFC 8414 metadata that hold for every server of this package.
func (s *Server) Metadata() map[string]any {
	return map[string]any{
		"issuer":                                         s.config.Issuer,
		"authorization_endpoint":                         s.config.Issuer + "/authorize",
		"token_endpoint":                                 s.config.Issuer + "/token",
		"response_types_supported":                       []string{"code"},
		"response_modes_supported":                       []string{"query"},
		"grant_types_supported":                          []string{authserver.GrantCode, authserver.GrantRefresh},
		"token_endpoint_auth_methods_supported":          authserver.AuthMethods(),
		"code_challenge_methods_supported":               []string{"S256"},
		"authorization_response_iss_parameter_supported": true,
	}
}
