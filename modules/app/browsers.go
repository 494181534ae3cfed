package app

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/durward-gateway/durward/internal/api/visible"
	"github.com/durward-gateway/durward/internal/api/webpage"
	"github.com/durward-gateway/durward/internal/credential/oauth"
	"github.com/durward-gateway/durward/internal/identity/oidclogin"
	"github.com/durward-gateway/durward/internal/identity/token"
	"github.com/durward-gateway/durward/internal/identity/websession"
	"github.com/durward-gateway/durward/internal/proxy/loopback"
	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/modules/app/paths"
	"github.com/durward-gateway/durward/modules/app/settings"
	"github.com/durward-gateway/durward/storage"
)

// Browser holds the facts of durward_session about the browser that makes a request.
type Browser struct {
	// User is the user who is logged in; nil when nobody is.
	User *BrowserUser
}

// BrowserUser is a user who is logged in with a browser. They are no caller of the API: a session is good for the pages
// of the gateway only.
type BrowserUser struct {
	websession.Session
	// Name is the user's name on pages: their email, name or subject.
	Name string
}

type browserKey struct{}

// WithBrowser returns the request with the facts about its browser.
func WithBrowser(r *http.Request, b *Browser) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), browserKey{}, b))
}

// BrowserOf returns what durward_session has found out about the browser of a request to a page. It reports false when
// durward_session is not part of the configuration; that is not the same as nobody being logged in.
func BrowserOf(r *http.Request) (*Browser, bool) {
	b, ok := r.Context().Value(browserKey{}).(*Browser)
	return b, ok
}

// PageUser returns the user part in the head of a page, with the form that logs the user out; nil when nobody is logged
// in.
func (c *Core) PageUser(user *BrowserUser) *webpage.User {
	if user == nil {
		return nil
	}
	return &webpage.User{Name: visible.Text(user.Name), Token: c.Browsers.FormToken(user.Session, paths.Logout), Logout: paths.Logout}
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
	ConnectCheck settings.ConnectCheck
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
	for _, issuer := range c.Issuers.Names() {
		login := c.loginOf(issuer)
		if login == nil {
			continue
		}
		if u, err := url.Parse(c.PublicURL); err != nil || (u.Scheme != "https" && !loopback.IsURL(u)) {
			return fmt.Errorf("identity %s: login_client needs a public_url with https: browsers would carry sessions in the open", issuer)
		}
		c.loginIssuers = append(c.loginIssuers, issuer)
		mapping := c.Issuers.ByName()[issuer].Rules().Mapping
		c.providers[issuer] = oidclogin.New(oidclogin.Options{
			Issuer: issuer, Client: login.Client, Secret: login.Secret, RedirectURI: c.PublicURL + paths.LoginCallback,
			Verifier: login.Verifier, OAuth: oauth.New(c.Guard, time.Now), Lacks: mapping.Lacks, Log: c.Log, Now: time.Now,
		})
	}
	return nil
}

func (c *Core) loginOf(issuer string) *Login {
	identity, ok := c.Issuers.ByName()[issuer].(LoginIdentity)
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
func (c *Core) ConnectCheck(user storage.User) (check settings.ConnectCheck, issuer string, ok bool) {
	for _, issuer := range c.Issuers.Names() {
		known := c.Issuers.ByName()[issuer].Rules().Issuer
		if known == "" {
			known = issuer
		}
		if known != user.Issuer {
			continue
		}
		if login := c.loginOf(issuer); login != nil {
			return login.ConnectCheck, issuer, true
		}
		return settings.ConnectByState, issuer, true
	}
	return "", "", false
}
