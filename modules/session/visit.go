package session

import (
	"net/http"
	"net/url"
	"strings"

	"go.uber.org/zap"

	"github.com/durward-gateway/durward/internal/api/webpage"
	"github.com/durward-gateway/durward/internal/gateway"
	"github.com/durward-gateway/durward/modules/app"
	"github.com/durward-gateway/durward/modules/app/browsers"
	"github.com/durward-gateway/durward/modules/app/paths"
)

// visit is one request of a browser.
type visit struct {
	*Handler
	core *app.Core
	w    http.ResponseWriter
	r    *http.Request
	user *browsers.User // nil: nobody is logged in
}

// admitted checks the host and the configuration, and finds the logged-in user. It reports false when the visit is
// answered.
func (v *visit) admitted() bool {
	path := v.r.URL.Path
	switch {
	case v.r.URL.RawPath != "": // an encoded slash would be one path here and another one elsewhere
		gateway.WriteNotFound(v.w)
		return false
	case !v.core.Names.HostAllowed(v.r.Host):
		gateway.RefuseHost(v.w)
		return false
	case !isCallback(path) && !isOpen(path) && !strings.HasPrefix(path, paths.ConnectPrefix) && len(v.core.Logins.Issuers()) == 0:
		v.say(http.StatusNotFound, "There is no page here", "This gateway has no login for browsers. Its operator can set one up with `login_client`.")
		return false
	case v.elsewhere():
		webpage.Redirect(v.w, v.core.PublicURL+v.r.URL.RequestURI())
		return false
	}
	user, err := v.core.BrowserUser(v.r)
	if err != nil {
		v.core.LogFailure(v.logger, "looking up who is logged in", err)
		v.unavailable()
		return false
	}
	v.user = user
	return true
}

// elsewhere reports whether a page was opened under another name of this machine. It is false for addresses to which
// providers send browsers back: those hold codes, and are never redirected.
func (v *visit) elsewhere() bool {
	path := v.r.URL.Path
	return !isCallback(path) && path != paths.LoginCallback && browsers.Elsewhere(v.core.PublicURL, v.r)
}

func (v *visit) serve() {
	path := v.r.URL.Path
	if name, ok := strings.CutPrefix(path, paths.ConnectPrefix); ok {
		v.only(func() { v.connect(name) }, http.MethodGet, http.MethodPost)
		return
	}
	switch path {
	case paths.Front:
		v.front()
	case paths.Login:
		v.only(v.login, http.MethodGet)
	case paths.LoginCallback:
		v.only(v.loginCallback, http.MethodGet)
	case paths.Logout:
		v.only(v.logout, http.MethodPost)
	case paths.Connect:
		v.only(v.list, http.MethodGet)
	case paths.Authorize:
		v.only(v.authorize, http.MethodGet, http.MethodPost)
	case paths.Clients:
		v.only(v.clients, http.MethodGet, http.MethodPost)
	case paths.Approvals:
		v.only(v.listApprovals, http.MethodGet)
	case timesPath:
		v.only(func() { webpage.WriteTimes(v.w, v.r) }, http.MethodGet)
	default:
		if name, ok := opensServer(path); ok {
			v.server(name)
			return
		}
		v.only(func() { v.approval(strings.TrimPrefix(path, paths.Approvals+"/")) }, http.MethodGet, http.MethodPost)
	}
}

// only calls serve for the methods that an address takes.
func (v *visit) only(serve func(), methods ...string) {
	for _, method := range methods {
		if v.r.Method == method {
			serve()
			return
		}
	}
	gateway.WriteMethodNotAllowed(v.w, strings.Join(methods, ", "))
}

// loggedIn reports whether a user is logged in; otherwise a browser that opens a page is sent to log in, and back.
func (v *visit) loggedIn() bool {
	if v.user != nil {
		return true
	}
	if v.r.Method == http.MethodGet {
		webpage.Redirect(v.w, loginAddress(v.r.URL.RequestURI()))
		return false
	}
	// This is no redirect: a form leads to this site only, and a login leads to another one.
	v.sayLink(http.StatusForbidden, "You are not logged in", "Nothing was changed.", link{loginAddress(v.r.URL.Path), "Log in"})
	return false
}

const (
	maxForm     = 8 << 10
	fieldToken  = "form"
	titleForged = "This form cannot be used"
)

// form reads the form that was sent with the visit, which must come from a page of the gateway that this user saw
// (CWE-352). The browser's headers show that where they can, and the token proves it. It reports false when it has
// answered the visit.
func (v *visit) form(action string) (url.Values, bool) {
	v.r.Body = http.MaxBytesReader(v.w, v.r.Body, maxForm)
	if err := v.r.ParseForm(); err != nil {
		v.say(http.StatusBadRequest, titleForged, "It cannot be read.")
		return nil, false
	}
	token := v.r.PostForm[fieldToken]
	if !v.fromHere() || len(token) != 1 || !v.core.Logins.Browsers.CheckForm(token[0], v.user.Session, action) {
		v.logger.Warn("refusing a form", zap.String("path", v.r.URL.Path), zap.String("user", v.user.UserID))
		v.sayLink(http.StatusForbidden, titleForged, "It is from an older page, or from somebody else's. Nothing was changed.", link{v.r.URL.Path, "Open the page anew"})
		return nil, false
	}
	return v.r.PostForm, true
}

// fromHere reports whether a form comes from a page of this site, as far as the browser's headers show. The gateway's
// pages have Referrer-Policy: no-referrer, with which browsers send "Origin: null" (Fetch standard, section 3.2.5).
func (v *visit) fromHere() bool {
	for _, site := range v.r.Header.Values("Sec-Fetch-Site") {
		if site != "same-origin" {
			return false
		}
	}
	for _, origin := range v.r.Header.Values("Origin") {
		if origin != "null" && origin != v.core.PublicURL {
			return false
		}
	}
	return true
}
