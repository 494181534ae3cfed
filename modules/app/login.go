package app

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/durward-gateway/durward/internal/credential/oauth"
	"github.com/durward-gateway/durward/internal/identity/oidclogin"
	"github.com/durward-gateway/durward/internal/identity/token"
	"github.com/durward-gateway/durward/internal/identity/websession"
	"github.com/durward-gateway/durward/internal/proxy/loopback"
	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/modules/app/paths"
	"github.com/durward-gateway/durward/storage"
)

// ConnectCheck names the proof that the browser which ends a connection attempt belongs to the attempt's user.
type ConnectCheck string

// Values of ConnectCheck.
const (
	// ConnectByLogin requires that the user is logged in with that browser.
	ConnectByLogin ConnectCheck = "login"
	// ConnectByState requires only that the browser knows the state, and that nobody else is logged in with it.
	ConnectByState ConnectCheck = "state"
)

// ParseConnectCheck reads the word of a configuration; "" stands for standard.
func ParseConnectCheck(text string, standard ConnectCheck) (ConnectCheck, error) {
	switch check := ConnectCheck(text); check {
	case "":
		return standard, nil
	case ConnectByLogin, ConnectByState:
		return check, nil
	}
	return "", fmt.Errorf("connect_check: %q is neither %s nor %s", text, ConnectByLogin, ConnectByState)
}

// LoginIdentity is implemented by identities at which browsers can log in.
type LoginIdentity interface {
	Identity
	// Login returns the gateway's own client there; nil when none is configured.
	Login() *Login
}

// Login is the gateway's own client at an identity provider, with which users log in at the gateway's pages.
type Login struct {
	Client       string
	Secret       seal.Secret // empty for a public client
	Verifier     *token.IDVerifier
	ConnectCheck ConnectCheck
}

// logins holds the providers at which browsers can log in.
type logins struct {
	// Browsers seals the data that the gateway keeps in browsers.
	Browsers     *websession.Sealer
	providers    map[string]*oidclogin.Provider // by issuer
	loginIssuers []string                       // in the order of the configuration
}

// bindLogins makes the providers of the identities that have a login client.
func (c *Core) bindLogins() error {
	c.providers = make(map[string]*oidclogin.Provider)
	for _, issuer := range c.issuers {
		login := c.loginOf(issuer)
		if login == nil {
			continue
		}
		if u, err := url.Parse(c.PublicURL); err != nil || (u.Scheme != "https" && !loopback.IsURL(u)) {
			return fmt.Errorf("identity %s: login_client needs a public_url with https: browsers would carry sessions in the open", issuer)
		}
		c.loginIssuers = append(c.loginIssuers, issuer)
		mapping := c.identities[issuer].Rules().Mapping
		c.providers[issuer] = oidclogin.New(oidclogin.Options{
			Issuer: issuer, Client: login.Client, Secret: login.Secret, RedirectURI: c.PublicURL + paths.LoginCallback,
			Verifier: login.Verifier, OAuth: oauth.New(c.Guard, time.Now), Lacks: mapping.Lacks, Log: c.Log, Now: time.Now,
		})
	}
	return nil
}

func (c *Core) loginOf(issuer string) *Login {
	identity, ok := c.identities[issuer].(LoginIdentity)
	if !ok {
		return nil
	}
	return identity.Login()
}

// LoginIssuers lists the issuers at which browsers can log in.
func (c *Core) LoginIssuers() []string { return c.loginIssuers }

// LoginClients lists the gateway's own clients at the issuers.
func (c *Core) LoginClients() []string {
	var clients []string
	for _, issuer := range c.loginIssuers {
		clients = append(clients, c.loginOf(issuer).Client)
	}
	return clients
}

// LoginProvider returns the provider at which users of an issuer log in.
func (c *Core) LoginProvider(issuer string) (*oidclogin.Provider, bool) {
	p, ok := c.providers[issuer]
	return p, ok
}

// BrowserUser returns the user who is logged in with a browser that carries a sealed session. It returns nil when
// nobody is: the session was not made by the gateway, is too old, of an issuer or client that is not configured any
// more, or of a user who was revoked or logged out after it was issued. The store is asked every time. Errors are the
// store's.
func (c *Core) BrowserUser(ctx context.Context, sealed string) (*BrowserUser, error) {
	if sealed == "" {
		return nil, nil
	}
	session, ok := c.Browsers.Open(sealed)
	if !ok {
		return nil, nil
	}
	if login := c.loginOf(session.Issuer); login == nil || login.Client != session.Client {
		return nil, nil
	}
	user, err := c.Store.User(ctx, session.OrganizationID, session.UserID)
	switch {
	case errors.Is(err, storage.ErrNotFound):
		return nil, nil
	case err != nil:
		return nil, err
	case !user.RevokedAt.IsZero() && !session.IssuedAt.After(user.RevokedAt):
		return nil, nil
	case !session.IssuedAt.Truncate(time.Microsecond).After(user.LoggedOutAt): // stores keep microseconds
		return nil, nil
	}
	return &BrowserUser{Session: session, Name: NameOf(user)}, nil
}

// NameOf returns the name of a user on pages.
func NameOf(user storage.User) string {
	switch {
	case user.Email != "":
		return user.Email
	case user.Name != "":
		return user.Name
	}
	return user.Subject
}

// ConnectCheck returns the proof that a browser is a user's, and the issuer at which the user logs in. ok is false when
// no identity of the configuration covers that user any more.
func (c *Core) ConnectCheck(user storage.User) (check ConnectCheck, issuer string, ok bool) {
	for _, issuer := range c.issuers {
		known := c.identities[issuer].Rules().Issuer
		if known == "" {
			known = issuer
		}
		if known != user.Issuer {
			continue
		}
		if login := c.loginOf(issuer); login != nil {
			return login.ConnectCheck, issuer, true
		}
		return ConnectByState, issuer, true
	}
	return "", "", false
}
