package browsers

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/durward-gateway/durward/internal/api/visible"
	"github.com/durward-gateway/durward/internal/api/webpage"
	"github.com/durward-gateway/durward/internal/identity/websession"
	"github.com/durward-gateway/durward/internal/policy/approval"
	"github.com/durward-gateway/durward/internal/proxy/loopback"
	"github.com/durward-gateway/durward/modules/app/paths"
	"github.com/durward-gateway/durward/storage"
)

// Browser holds the facts of durward_session about the browser that makes a request.
type Browser struct {
	// User is the user who is logged in; nil when nobody is.
	User *User
}

// User is a user who is logged in with a browser. They are no caller of the API: a session is good for the pages of the
// gateway only.
type User struct {
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
func (l *Logins) PageUser(user *User) *webpage.User {
	if user == nil {
		return nil
	}
	return &webpage.User{Name: visible.Text(user.Name), Token: l.Browsers.FormToken(user.Session, paths.Logout), Logout: paths.Logout}
}

// Decider returns the browser's user in the role of a person who decides on held calls on the gateway's page.
func (u *User) Decider() approval.Decider {
	return approval.Decider{OrganizationID: u.OrganizationID, UserID: u.UserID, Client: u.Client, Browser: true}
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

// Elsewhere reports whether a developer has opened a page under another name of this machine, where the cookies of the
// public URL are not sent.
func Elsewhere(publicURL string, r *http.Request) bool {
	u, err := url.Parse(publicURL)
	return err == nil && r.Method == http.MethodGet && loopback.IsHost(u.Host) && loopback.IsHost(r.Host) && !strings.EqualFold(u.Host, r.Host)
}
