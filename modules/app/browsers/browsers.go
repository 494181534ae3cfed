// Package browsers knows who is logged in with a browser, and where users log in.
package browsers

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"time"

	"github.com/durward-gateway/durward/internal/credential/oauth"
	"github.com/durward-gateway/durward/internal/identity/oidclogin"
	"github.com/durward-gateway/durward/internal/identity/token"
	"github.com/durward-gateway/durward/internal/identity/websession"
	"github.com/durward-gateway/durward/internal/proxy/loopback"
	"github.com/durward-gateway/durward/internal/proxy/netguard"
	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/modules/app/issuers"
	"github.com/durward-gateway/durward/modules/app/paths"
	"github.com/durward-gateway/durward/modules/app/settings"
	"github.com/durward-gateway/durward/storage"
)

// Issuer is implemented by issuers at which browsers can log in.
type Issuer interface {
	// Login returns the gateway's own client there; nil when none is configured.
	Login() *Login
}

// Login is the gateway's own client at an identity provider, with which users log in at the gateway's pages.
type Login struct {
	Client   string
	Secret   seal.Secret // empty for a public client
	Verifier *token.IDVerifier
	// Assertions verifies the issuer's identity assertions; nil: they log nobody in.
	Assertions   *token.AssertionVerifier
	ConnectCheck settings.ConnectCheck
}

// Logins knows the issuers at which browsers can log in, and the users who are logged in.
type Logins struct {
	// Browsers seals the data that the gateway keeps in browsers. It is set when the data keys are open.
	Browsers *websession.Sealer

	issuers   *issuers.Issuers
	store     storage.Store
	providers map[string]*oidclogin.Provider // by issuer
	names     []string                       // of the issuers with a provider, in the order of the configuration
}

// Options holds what logins are made of.
type Options struct {
	PublicURL string
	Issuers   *issuers.Issuers
	Store     storage.Store
	Guard     *netguard.Guard
	Log       *slog.Logger
	Now       func() time.Time
}

// New makes the providers of the issuers that have a login client.
func New(o Options) (*Logins, error) {
	l := &Logins{issuers: o.Issuers, store: o.Store, providers: make(map[string]*oidclogin.Provider)}
	for _, issuer := range o.Issuers.Names() {
		login := l.loginOf(issuer)
		if login == nil {
			continue
		}
		if u, err := url.Parse(o.PublicURL); err != nil || (u.Scheme != "https" && !loopback.IsURL(u)) {
			return nil, fmt.Errorf("identity %s: login_client needs a public_url with https: browsers would carry sessions in the open", issuer)
		}
		l.names = append(l.names, issuer)
		mapping := o.Issuers.ByName()[issuer].Rules().Mapping
		l.providers[issuer] = oidclogin.New(oidclogin.Options{
			Issuer: issuer, Client: login.Client, Secret: login.Secret, RedirectURI: o.PublicURL + paths.LoginCallback,
			Verifier: login.Verifier, OAuth: oauth.New(o.Guard, o.Now), Lacks: mapping.Lacks, Log: o.Log, Now: o.Now,
		})
	}
	return l, nil
}

func (l *Logins) loginOf(issuer string) *Login {
	known, ok := l.issuers.ByName()[issuer].(Issuer)
	if !ok {
		return nil
	}
	return known.Login()
}

// Issuers lists the issuers at which browsers can log in.
func (l *Logins) Issuers() []string { return l.names }

// Clients lists the gateway's own clients at the issuers.
func (l *Logins) Clients() []string {
	var clients []string
	for _, issuer := range l.names {
		clients = append(clients, l.loginOf(issuer).Client)
	}
	return clients
}

// Client returns the gateway's own client at an issuer, to which the issuer gives ID tokens. It reports false when there is
// none.
func (l *Logins) Client(issuer string) (id string, secret seal.Secret, ok bool) {
	login := l.loginOf(issuer)
	if login == nil {
		return "", seal.Secret{}, false
	}
	return login.Client, login.Secret, true
}

// Provider returns the provider at which users of an issuer log in.
func (l *Logins) Provider(issuer string) (*oidclogin.Provider, bool) {
	p, ok := l.providers[issuer]
	return p, ok
}

// Assertions returns the verifier of an issuer's identity assertions, and the gateway's client there. It reports false when
// the configuration does not let them log users in.
func (l *Logins) Assertions(issuer string) (verifier *token.AssertionVerifier, client string, ok bool) {
	login := l.loginOf(issuer)
	if login == nil || login.Assertions == nil {
		return nil, "", false
	}
	return login.Assertions, login.Client, true
}

// Asserting lists the issuers whose identity assertions log users in.
func (l *Logins) Asserting() []string {
	return slices.DeleteFunc(slices.Clone(l.names), func(issuer string) bool { return l.loginOf(issuer).Assertions == nil })
}

// User returns the user who is logged in with a browser that carries a sealed session. It returns nil when
// nobody is: the session was not made by the gateway, is too old, of an issuer or client that is not configured any
// more, or of a user who was revoked or logged out after it was issued. The store is asked every time. Errors are the
// store's.
func (l *Logins) User(ctx context.Context, sealed string) (*User, error) {
	if sealed == "" {
		return nil, nil
	}
	session, ok := l.Browsers.Open(sealed)
	if !ok {
		return nil, nil
	}
	if login := l.loginOf(session.Issuer); login == nil || login.Client != session.Client {
		return nil, nil
	}
	user, err := l.store.User(ctx, session.OrganizationID, session.UserID)
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
	return &User{Session: session, Name: NameOf(user)}, nil
}

// ConnectCheck returns the proof that a browser is a user's, and the issuer at which the user logs in. ok is false when
// no identity of the configuration covers that user any more.
func (l *Logins) ConnectCheck(user storage.User) (check settings.ConnectCheck, issuer string, ok bool) {
	for _, issuer := range l.issuers.Names() {
		if l.issuers.Owner(issuer) != user.Issuer {
			continue
		}
		if login := l.loginOf(issuer); login != nil {
			return login.ConnectCheck, issuer, true
		}
		return settings.ConnectByState, issuer, true
	}
	return "", "", false
}
