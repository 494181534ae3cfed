package session

import (
	"errors"
	"net/http"
	"net/url"
	"time"

	"go.uber.org/zap"

	"github.com/durward-gateway/durward/internal/api/webpage"
	"github.com/durward-gateway/durward/internal/credential/oauth"
	"github.com/durward-gateway/durward/internal/gateway"
	"github.com/durward-gateway/durward/internal/identity/authn"
	"github.com/durward-gateway/durward/internal/identity/caller"
	"github.com/durward-gateway/durward/internal/identity/logins"
	"github.com/durward-gateway/durward/internal/identity/oidclogin"
	"github.com/durward-gateway/durward/internal/identity/token"
	"github.com/durward-gateway/durward/internal/identity/websession"
	"github.com/durward-gateway/durward/modules/app"
	"github.com/durward-gateway/durward/modules/app/paths"
	"github.com/durward-gateway/durward/storage"
)

// maxQuery is the limit for the query with which a provider sends a browser back.
const maxQuery = 16 << 10

// paramFresh has the identity provider ask the user anew who they are.
const paramFresh = "fresh"

// login sends the browser to the identity provider: the one that the query names, the only one, or the one that the
// user chooses.
func (v *visit) login() {
	query := v.r.URL.Query()
	back := oidclogin.LocalPath(query.Get("return"), paths.Approvals)
	fresh := query.Get(paramFresh) != ""
	if v.user != nil && query.Get(paramAgain) == "" && !fresh { // again: the console's login can end before the session
		webpage.Redirect(v.w, back)
		return
	}
	issuers := v.core.Logins.Issuers()
	issuer := query.Get("issuer")
	if fresh && issuer == "" && v.user != nil {
		issuer = v.user.Issuer
	}
	if issuer == "" && len(issuers) == 1 {
		issuer = issuers[0]
	}
	if issuer == "" {
		v.chooseIssuer(issuers, back)
		return
	}
	purpose := oidclogin.Purpose{Return: back}
	if fresh {
		purpose.Prompt = oidclogin.PromptLogin
	}
	v.beginLogin(purpose, issuer)
}

// beginLogin sends the browser to an identity provider.
func (v *visit) beginLogin(purpose oidclogin.Purpose, issuer string) {
	provider, ok := v.core.Logins.Provider(issuer)
	if !ok {
		v.say(http.StatusBadRequest, titleLogin, "Nobody logs in there.")
		return
	}
	address, attempt, err := provider.Begin(v.r.Context(), purpose)
	if err == nil {
		var memo []byte
		if memo, err = attempt.Encode(); err == nil {
			v.core.Cookies.SetOne(v.w, v.r, websession.CookieLogin, attempt.State, v.core.Logins.Browsers.SealMemo(websession.CookieLogin, memo), oidclogin.Lifetime)
			webpage.Redirect(v.w, address)
			return
		}
	}
	v.logger.Error("beginning a login", zap.String("issuer", issuer), zap.Error(err))
	v.failLogin(err, issuer, purpose.Return)
}

func (v *visit) chooseIssuer(issuers []string, back string) {
	var links []link
	for _, issuer := range issuers {
		links = append(links, link{paths.Login + "?" + url.Values{"issuer": {issuer}, "return": {back}}.Encode(), issuer})
	}
	v.show(linksPage, http.StatusOK, "Log in", struct {
		Text  string
		Links []link
	}{"Where do you log in?", links})
}

// loginCallback ends a login that this browser began.
func (v *visit) loginCallback() {
	attempt, query, ok := v.attempt()
	if !ok {
		v.sayLink(http.StatusBadRequest, titleLogin, "This login was not begun with this browser, has been used already, or is older than ten minutes.", link{paths.Login, "Log in"})
		return
	}
	provider, ok := v.core.Logins.Provider(attempt.Issuer)
	if !ok {
		v.say(http.StatusBadRequest, titleLogin, "Nobody logs in there any more.")
		return
	}
	finished, err := provider.Finish(v.r.Context(), query, attempt)
	claims := finished.Claims
	var who *authn.Caller
	if err == nil {
		var facts time.Time
		if attempt.Client { // its tokens have these roles and groups, and so have keys
			facts = v.core.Clock.Shared(v.now())
		}
		who, err = v.core.Authenticator.Login(v.r.Context(), claims, facts)
	}
	switch {
	case attempt.Offline && errors.Is(err, oidclogin.ErrDenied) && oauth.Code(err) == "invalid_scope":
		// The provider lists the scope, but not for this client.
		purpose := attempt.Purpose
		purpose.Offline = false
		v.beginLogin(purpose, attempt.Issuer)
		return
	case err != nil:
		v.refuseLogin(err, attempt)
		return
	}
	if err := v.keepFacts(who); err != nil {
		v.core.LogFailure(v.logger, "keeping the facts of a login", err)
		v.unavailable()
		return
	}
	if err := v.core.Audit.LoggedIn(app.RecordedBearer(who), provider.Client); err != nil {
		v.core.LogFailure(v.logger, "recording a login", err)
		v.unavailable()
		return
	}
	session := websession.Session{
		OrganizationID: who.OrganizationID, UserID: who.UserID, Issuer: attempt.Issuer, Client: provider.Client,
		Zone: zoneOf(claims), ProvenAt: attempt.ProvenAt(claims, v.now()).UTC(),
	}
	draft := logins.Draft{
		OrganizationID: who.OrganizationID, UserID: who.UserID, Issuer: attempt.Issuer, Audience: provider.Client, Subject: claims.Subject,
		Facts: authn.FactsOf(who, claims),
	}
	var former string
	if v.user != nil && v.user.OrganizationID == who.OrganizationID && v.user.UserID == who.UserID {
		session.ID, former = v.user.ID, v.user.Login
	}
	if v.core.Authorization != nil {
		if session.Login, err = v.core.Authorization.LogInBrowser(v.r.Context(), draft, former); err != nil {
			v.core.LogFailure(v.logger, "beginning a login with the console", err)
			v.unavailable()
			return
		}
	}
	sealed, err := v.core.Logins.Browsers.Start(session)
	if err != nil {
		v.logger.Error("making a session", zap.Error(err))
		v.unavailable()
		return
	}
	draft.Refresh, draft.IDToken, draft.IDTokenExpiresAt = finished.Refresh, finished.IDToken, claims.ExpiresAt
	if attempt.Client && !v.keepDraft(draft, attempt.Return) {
		return
	}
	v.core.Cookies.Set(v.w, websession.CookieSession, sealed, websession.Lifetime)
	webpage.Redirect(v.w, attempt.Return)
}

// keepFacts keeps the roles and groups of a login: only those of the last one let its user decide on calls of others.
func (v *visit) keepFacts(who *authn.Caller) error {
	return v.core.Store.PutSessionFacts(v.r.Context(), who.OrganizationID, who.UserID, storage.SessionFacts{
		Roles: who.Roles, Groups: who.Groups, At: v.core.Clock.Shared(v.now()),
	})
}

// zoneOf returns the time zone of the user, from their identity provider; "" when it names none.
func zoneOf(claims *token.Claims) string {
	zone, _ := claims.Lookup("zoneinfo")
	return knownZone(zone.Str())
}

// attempt takes the login that this browser began, if the provider's answer belongs to it. It is valid once: the
// browser loses it, and a copy of it is spent.
func (v *visit) attempt() (attempt oidclogin.Attempt, query url.Values, ok bool) {
	if len(v.r.URL.RawQuery) > maxQuery {
		return attempt, nil, false
	}
	query, err := url.ParseQuery(v.r.URL.RawQuery)
	if err != nil {
		return attempt, nil, false
	}
	// Logins in other tabs have cookies of their own, and stay.
	name := websession.NameOf(websession.CookieLogin, query.Get("state"))
	sealed := v.core.Cookies.Value(v.r, name)
	v.core.Cookies.Drop(v.w, name)
	memo, opened := v.core.Logins.Browsers.OpenMemo(websession.CookieLogin, sealed)
	if !opened {
		return attempt, nil, false
	}
	if attempt, err = oidclogin.DecodeAttempt(memo); err != nil {
		return attempt, nil, false
	}
	now := v.now() // one time for both: an attempt that ends between them is neither valid nor spent
	if !attempt.Matches(query, now) {
		return attempt, nil, false
	}
	return attempt, query, spentLogins.take(attempt.State, attempt.Expires, now)
}

func (v *visit) refuseLogin(err error, attempt oidclogin.Attempt) {
	again := tryAgain(attempt.Issuer, attempt.Return)
	reason := zap.String("reason", token.Reason(err))
	v.core.AuditRefusal(err, paths.LoginCallback)
	switch {
	case errors.Is(err, oidclogin.ErrDenied):
		v.logger.Info("a login was denied", reason, zap.String("description", oauth.Description(err)))
		v.sayLink(http.StatusForbidden, titleLogin, "The identity provider did not log you in: "+deniedText(err), again)
	case errors.Is(err, oidclogin.ErrRefused):
		v.logger.Error("a login was refused", reason, zap.String("description", oauth.Description(err)))
		v.sayLink(http.StatusForbidden, titleLogin, "The identity provider did not log you in: "+deniedText(err), again)
	case errors.Is(err, authn.ErrShutOut):
		v.logger.Info("refusing a login", reason)
		v.sayLink(http.StatusForbidden, titleLogin, gateway.ShutOut().Message+".", again)
	case errors.Is(err, oidclogin.ErrAnswer), errors.Is(err, token.ErrInvalid), errors.Is(err, authn.ErrMachine):
		v.logger.Warn("refusing a login", reason)
		v.sayLink(http.StatusForbidden, titleLogin, "The identity provider's answer does not fit this login.", again)
	case errors.Is(err, caller.ErrForbidden), errors.Is(err, storage.ErrForeignOrganization):
		v.logger.Warn("refusing a login", reason)
		text := "Your account names no organization that it may act for. The gateway's log says why; its operator can set one with `organization` or `claim org`."
		if errors.Is(err, caller.ErrOtherOrganization) {
			text = "You logged in to another organization than the one that this gateway is for. Log in there, or ask the gateway's operator: its log says which claim it is."
		}
		v.sayLink(http.StatusForbidden, titleLogin, text, again)
	default:
		v.logger.Error("ending a login", reason)
		v.failLogin(err, attempt.Issuer, attempt.Return)
	}
}

// failLogin answers a login that could not be decided. A provider whose answers cannot be used may stay so until somebody
// changes its configuration or the gateway's, so the page says who can.
func (v *visit) failLogin(err error, issuer, back string) {
	if !errors.Is(err, oidclogin.ErrProvider) && !errors.Is(err, token.ErrUnavailable) {
		v.unavailable()
		return
	}
	gateway.SetRetryAfter(v.w)
	v.sayLink(http.StatusServiceUnavailable, titleLogin, "The gateway has no usable answer from the identity provider "+issuer+". Try again; if it stays so, ask the gateway's operator: the gateway's log says why.", tryAgain(issuer, back))
}

// tryAgain links to the begin of a login.
func tryAgain(issuer, back string) link {
	return link{paths.Login + "?" + url.Values{"issuer": {issuer}, "return": {back}}.Encode(), "Try again"}
}

// deniedText says in words why an identity provider refused a login (RFC 6749 sections 4.1.2.1 and 5.2, OpenID Connect Core
// section 3.1.2.6), and who can solve it. The provider's own text is not shown.
func deniedText(err error) string {
	const client = "it does not accept the gateway as a client. The gateway's operator has to look at the client's registration there"
	if oauth.ClientRefused(err) && errors.Is(err, oidclogin.ErrRefused) { // the secret is shown there, and not at the page before
		return client + ", and at its secret; the gateway's log has the provider's words."
	}
	switch oauth.Code(err) {
	case oauth.CodeAccessDenied:
		return "access was denied there. You may have cancelled, or your account may not be allowed to use this gateway: ask whoever gives access to it."
	case "login_required", "interaction_required", "consent_required", "account_selection_required":
		return "it has to ask you something first. Try again, and answer it."
	case "temporarily_unavailable", "server_error":
		return "it has trouble at the moment. Try again later."
	case "invalid_scope":
		return "it does not let the gateway's client ask for its scopes. The gateway's operator can set them at the identity provider; the gateway's log has the provider's words."
	case "invalid_request":
		return "it does not take the gateway's request. The gateway's operator has to look at the client's registration there, its redirect URI first; the gateway's log has the provider's words."
	case oauth.CodeUnauthorizedClient, oauth.CodeInvalidClient, "unsupported_response_type", "unsupported_grant_type":
		return client + "; the gateway's log has the provider's words."
	}
	return "it gave a reason that this page does not know. Try again; if it stays so, ask the gateway's operator: the gateway's log has it."
}

// logout ends the session, including all copies of its cookie, and removes the cookie from the browser. Sessions that
// were begun before it end as well: there is no table of them, only a mark with their user.
func (v *visit) logout() {
	// A form of another site brings no cookie, and must not remove one either (CWE-352).
	if v.user != nil {
		if _, ok := v.form(paths.Logout); !ok {
			return
		}
		err := v.core.Audit.Event(v.r.Context(), v.user.OrganizationID, storage.AuditEntry{
			Kind: storage.AuditLogin, Event: "logout", UserID: v.user.UserID, Client: v.user.Client, Outcome: "ok",
		})
		if err != nil {
			v.logger.Error("recording a logout", zap.Error(err)) // a user who wants to log out may do so
		}
		v.core.Cookies.Drop(v.w, websession.CookieSession)
		if err := v.core.Store.LogOutUser(v.r.Context(), v.user.OrganizationID, v.user.UserID, v.user.IssuedAt); err != nil {
			v.core.LogFailure(v.logger, "ending a session", err)
			v.unavailable() // this browser's cookie is gone, but a copy of it is still valid
			return
		}
		if v.core.Authorization != nil {
			if err := v.core.Authorization.LogOutBrowser(v.r.Context(), v.user.OrganizationID, v.user.Login); err != nil {
				v.core.LogFailure(v.logger, "ending a login with the console", err) // the session's end has ended it as well
			}
		}
	}
	v.user = nil // the page shows no user
	v.sayLink(http.StatusOK, "You are logged out", "This browser is. You may still be logged in at your identity provider.", link{paths.Login, "Log in"})
}
