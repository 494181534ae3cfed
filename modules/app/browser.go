package app

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/durward-gateway/durward/internal/api/visible"
	"github.com/durward-gateway/durward/internal/api/webpage"
	"github.com/durward-gateway/durward/internal/identity/websession"
	"github.com/durward-gateway/durward/modules/app/paths"
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

// These are the names of the gateway's cookies, without the prefix or port that cookieName adds.
const (
	CookieSession = "durward"         // the user who is logged in
	CookieLogin   = "durward-login"   // a login that has begun
	CookieHeld    = "durward-connect" // an account that is connected once its user has logged in
)

// cookieName returns the name of a cookie in the browser. Browsers take a cookie of the prefix __Host- only from the
// very host that it goes to, over https, for all paths: no neighbouring site can plant one (RFC 6265bis section
// 4.1.3.2). Without https, on a developer's own machine, the port keeps the gateways of one host apart.
func (c *Core) cookieName(name string) string {
	if c.secure() {
		return "__Host-" + name
	}
	if u, err := url.Parse(c.PublicURL); err == nil && u.Port() != "" {
		name += "-" + u.Port()
	}
	return name
}

func (c *Core) secure() bool { return strings.HasPrefix(c.PublicURL, "https://") }

// SetCookie sets a cookie that no script reads and no other site's form sends.
func (c *Core) SetCookie(w http.ResponseWriter, name, value string, age time.Duration) {
	http.SetCookie(w, &http.Cookie{ //nolint:gosec // Secure wherever it can be: browsers refuse it over plain http, which only loopback has
		Name: c.cookieName(name), Value: value, Path: "/", MaxAge: int(age / time.Second), HttpOnly: true, Secure: c.secure(), SameSite: http.SameSiteLaxMode,
	})
}

// DropCookie takes a cookie out of the browser.
func (c *Core) DropCookie(w http.ResponseWriter, name string) {
	http.SetCookie(w, &http.Cookie{ //nolint:gosec // as in SetCookie
		Name: c.cookieName(name), Path: "/", MaxAge: -1, HttpOnly: true, Secure: c.secure(), SameSite: http.SameSiteLaxMode,
	})
}

// Cookie returns the value of a cookie; "" when there is none, or when there are several of that name: one of them was
// planted.
func (c *Core) Cookie(r *http.Request, name string) string {
	found := r.CookiesNamed(c.cookieName(name))
	if len(found) != 1 {
		return ""
	}
	return found[0].Value
}
