package session

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/durward-gateway/durward/internal/api/webpage"
	"github.com/durward-gateway/durward/internal/credential/connection"
	"github.com/durward-gateway/durward/internal/identity/authserver"
	"github.com/durward-gateway/durward/internal/identity/logins"
	"github.com/durward-gateway/durward/internal/identity/oidclogin"
	"github.com/durward-gateway/durward/internal/identity/websession"
	"github.com/durward-gateway/durward/modules/app/authorization"
	"github.com/durward-gateway/durward/modules/app/paths"
	"github.com/durward-gateway/durward/storage"
)

const titleClient = "This client cannot be let in"

// draft names a login that waits for its user to agree to a client. The browser keeps it, sealed.
type draft struct {
	Organization string    `json:"org"`
	User         string    `json:"user"`
	Login        string    `json:"login"`
	Request      string    `json:"request"` // digest of the authorization request
	Expires      time.Time `json:"expires"`
	Later        bool      `json:"later,omitempty"` // the user connects their account some other time
}

// authorizing is a visit to the authorization endpoint (RFC 6749 section 3.1).
type authorizing struct {
	*visit
	oauth    *authorization.Server
	query    url.Values
	draft    draft
	client   *authserver.Client
	asked    authserver.Authorization
	audience string
	server   *storage.Server // of the audience; nil: the gateway as a whole
}

// authorize lets a user agree to an OAuth client, and sends the client a code.
func (v *visit) authorize() {
	a := authorizing{visit: v, oauth: v.core.Authorization}
	// The login comes first: so only people who may use the gateway make it fetch the metadata documents of clients.
	if !a.read() || !a.proven() || !a.known() || !a.meant() {
		return
	}
	if v.r.Method == http.MethodPost {
		a.decide()
		return
	}
	a.goOn()
}

// read reads the parameters.
func (a *authorizing) read() bool {
	if a.oauth == nil {
		a.say(http.StatusNotFound, "There is no page here", "Clients of this gateway log in at its identity provider.")
		return false
	}
	address := a.r.URL.RequestURI()
	query, err := url.ParseQuery(a.r.URL.RawQuery)
	if err == nil {
		err = authserver.CheckForm(query)
	}
	if err != nil || oidclogin.LocalPath(address, "") != address {
		a.say(http.StatusBadRequest, titleClient, "Its request cannot be read, or is too long. Try again from the client; if it stays so, tell its makers.")
		return false
	}
	a.query = query
	return true
}

// digest returns a digest of an authorization request. Parameters that the gateway's own pages add do not matter.
func digest(query url.Values) string {
	kept := make(url.Values)
	for _, name := range []string{"client_id", "redirect_uri", "response_type", "state", "scope", "code_challenge", "code_challenge_method", "resource", "nonce"} {
		kept[name] = query[name]
	}
	sum := sha256.Sum256([]byte(kept.Encode()))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// proven reports whether the identity provider has logged the user in for this request. Otherwise it sends the browser
// there, which the user does not notice where they are logged in. Each login with a client has a refresh token of its
// own in that way.
func (a *authorizing) proven() bool {
	memo, ok := a.core.Logins.Browsers.OpenMemo(websession.CookieClient, a.core.Cookies.Value(a.r, websession.CookieClient))
	if ok && json.Unmarshal(memo, &a.draft) == nil && a.user != nil && a.draft.Organization == a.user.OrganizationID && a.draft.User == a.user.UserID &&
		a.draft.Request == digest(a.query) && a.now().Before(a.draft.Expires) {
		return true
	}
	address := a.r.URL.RequestURI()
	if a.r.Method != http.MethodGet {
		a.sayLink(http.StatusForbidden, "This page is too old", "Nothing was changed. Begin again.", link{address, "Begin again"})
		return false
	}
	issuers := a.core.Logins.Issuers()
	switch {
	case a.user != nil:
		a.beginLogin(a.user.Issuer, address, true)
	case len(issuers) == 1:
		a.beginLogin(issuers[0], address, true)
	default:
		a.chooseIssuer(issuers, address)
	}
	return false
}

// keepDraft stores what the identity provider has proven, and notes it in the browser, for the authorization request to
// which the browser goes back. It reports false when it has answered the visit.
func (v *visit) keepDraft(d logins.Draft, back string) bool {
	u, err := url.Parse(back)
	if err != nil || v.core.Authorization == nil {
		return true // the page says what is wrong
	}
	id, err := v.core.Authorization.Draft(v.r.Context(), d)
	if err != nil {
		v.core.LogFailure(v.logger, "keeping a login for a client", err)
		v.unavailable()
		return false
	}
	return v.setDraft(draft{
		Organization: d.OrganizationID, User: d.UserID, Login: id, Request: digest(u.Query()), Expires: v.now().Add(logins.DraftLifetime),
	})
}

func (v *visit) setDraft(d draft) bool {
	memo, err := json.Marshal(d)
	if err != nil {
		v.logger.Error("encoding a draft", zap.Error(err))
		v.unavailable()
		return false
	}
	v.core.Cookies.Set(v.w, websession.CookieClient, v.core.Logins.Browsers.SealMemo(websession.CookieClient, memo), logins.DraftLifetime)
	return true
}

// known finds the client, and checks the address to which the answer goes. Nothing is sent there before (RFC 6749 section
// 4.1.2.1).
func (a *authorizing) known() bool {
	client, err := a.oauth.Client(a.r.Context(), a.query.Get("client_id"))
	switch {
	case errors.Is(err, authserver.ErrNoClient):
		a.say(http.StatusBadRequest, titleClient, "The gateway does not know the client that sent you here, or its operator lets only others in. Clients that registered long ago, and were not used since, have to register again.")
		return false
	case errors.Is(err, authserver.ErrDocument):
		a.say(http.StatusBadRequest, titleClient, "The client that sent you here describes itself at an address where the gateway finds no usable description. Try again in some minutes; if it stays so, tell the client's makers.")
		return false
	case err != nil:
		a.core.LogFailure(a.logger, "looking up a client", err)
		a.unavailable()
		return false
	}
	if !client.Allows(a.query.Get("redirect_uri")) {
		a.say(http.StatusBadRequest, titleClient, "The client that sent you here wants the answer at an address which is not one of its own.")
		return false
	}
	a.client = client
	return true
}

// meant reads the request itself, and finds the server that it is for.
func (a *authorizing) meant() bool {
	var err error
	if a.asked, err = authserver.ReadAuthorization(a.query, a.oauth.Target); err != nil {
		a.asked.RedirectURI, a.asked.State = a.query.Get("redirect_uri"), a.query.Get("state")
		a.refuse(err)
		return false
	}
	if !slices.Contains(a.client.GrantTypes, authserver.GrantCode) {
		a.refuse(authserver.Invalid("unauthorized_client", "the client may not use codes"))
		return false
	}
	audience, name, ok := a.oauth.Resource(a.asked.Targets)
	if !ok {
		a.refuse(authserver.Invalid("invalid_target", "a token is for one resource"))
		return false
	}
	a.audience = audience
	if name == "" {
		return true
	}
	server, err := a.core.Store.ServerBySlug(a.r.Context(), a.user.OrganizationID, name)
	switch {
	case errors.Is(err, storage.ErrNotFound):
		a.refuse(authserver.Invalid("invalid_target", "there is no such server"))
		return false
	case err != nil:
		a.core.LogFailure(a.logger, "looking up a server for a client", err)
		a.unavailable()
		return false
	}
	a.server = &server
	return true
}

// refuse answers a request that cannot be granted. A client on the user's own machine is told at once. Other addresses
// are shown first: anybody can register a client, and a link to the gateway must not lead on to any site unseen (RFC 9700
// section 4.11.2).
func (a *authorizing) refuse(err error) {
	address := a.answer(authserver.ErrorAnswer(err))
	if u, ok := authserver.ParseRedirect(a.asked.RedirectURI); ok && u.Scheme == "http" {
		webpage.Redirect(a.w, address)
		return
	}
	a.sayLink(http.StatusBadRequest, titleClient, "Its request is wrong: "+authserver.ErrorOf(err).Description+".", link{address, "Go back to " + a.backTo()})
}

// answer returns the address that brings the client an answer. It names who answers (RFC 9207), so that no client takes it
// for another server's.
func (a *authorizing) answer(members url.Values) string {
	members.Set("iss", a.core.PublicURL)
	if a.asked.State != "" {
		members.Set("state", a.asked.State)
	}
	return authserver.AnswerURI(a.asked.RedirectURI, members)
}

// backTo names the place of the client's redirect URI for people.
func (a *authorizing) backTo() string {
	u, ok := authserver.ParseRedirect(a.asked.RedirectURI)
	switch {
	case !ok:
		return "the client"
	case u.Scheme == "http":
		return "a program on this computer"
	}
	return u.Host
}

// consent returns the consent that the request needs.
func (a *authorizing) consent() storage.Consent {
	origin, _ := authserver.RedirectOrigin(a.asked.RedirectURI)
	return storage.Consent{
		OrganizationID: a.user.OrganizationID, UserID: a.user.UserID, ClientID: a.client.ID, ClientName: a.client.Name, Resource: a.audience,
		RedirectOrigin: origin, CreatedAt: a.now(),
	}
}

// goOn asks the user what is left to be asked, and sends the client its code.
func (a *authorizing) goOn() {
	agreed, err := a.core.Store.Consent(a.r.Context(), a.consent())
	switch {
	case errors.Is(err, storage.ErrNotFound), err == nil && agreed.ClientName != a.client.Name:
		a.ask()
		return
	case err != nil:
		a.core.LogFailure(a.logger, "looking up a consent", err)
		a.unavailable()
		return
	}
	lacks, err := a.lacksAccount()
	switch {
	case err != nil:
		a.core.LogFailure(a.logger, "looking up a connection", err)
		a.unavailable()
	case lacks && !a.draft.Later:
		a.offerAccount()
	default:
		a.sendCode()
	}
}

// lacksAccount reports whether the user has to connect an account before the server can be used.
func (a *authorizing) lacksAccount() (bool, error) {
	if a.server == nil || connection.KindOf(&a.server.Entry) == storage.ProviderNone {
		return false, nil
	}
	key := storage.ConnectionKey{OrganizationID: a.user.OrganizationID, UserID: a.user.UserID, ServerID: a.server.ID}
	connected, err := a.core.Broker.Connected(a.r.Context(), key, a.server)
	return !connected, err
}

func (a *authorizing) sendCode() {
	err := a.core.Audit.Event(a.r.Context(), a.user.OrganizationID, storage.AuditEntry{
		Kind: storage.AuditLogin, Event: "client.login", UserID: a.user.UserID, Client: a.client.ID, Outcome: "ok",
		Detail: map[string]any{"login": a.draft.Login, "resource": a.audience},
	})
	if err != nil {
		a.core.LogFailure(a.logger, "recording a login with a client", err)
		a.unavailable()
		return
	}
	code, err := a.oauth.Agree(a.r.Context(), logins.Agreement{
		OrganizationID: a.user.OrganizationID, UserID: a.user.UserID, Draft: a.draft.Login, Client: a.client, Resource: a.audience,
		RedirectURI: a.asked.RedirectURI, Challenge: a.asked.Challenge,
	})
	switch {
	case errors.Is(err, logins.ErrNoDraft): // the page was loaded twice
		a.core.Cookies.Drop(a.w, websession.CookieClient)
		a.sayLink(http.StatusBadRequest, "This login has been used", "Look at the client: it may be logged in already.", link{a.r.URL.RequestURI(), "Log in once more"})
	case err != nil:
		a.core.LogFailure(a.logger, "logging in with a client", err)
		a.unavailable()
	default:
		a.core.Cookies.Drop(a.w, websession.CookieClient)
		webpage.Redirect(a.w, a.answer(url.Values{"code": {code.Reveal()}}))
	}
}

// decide takes the user's decision.
func (a *authorizing) decide() {
	form, ok := a.form(a.action())
	if !ok {
		return
	}
	switch form.Get(fieldDecision) {
	case saysYes:
		if err := a.core.Store.PutConsent(a.r.Context(), a.consent()); err != nil {
			a.core.LogFailure(a.logger, "storing a consent", err)
			a.unavailable()
			return
		}
	case saysLater:
		if a.draft.Later = true; !a.setDraft(a.draft) {
			return
		}
	case saysNo:
		a.core.Cookies.Drop(a.w, websession.CookieClient)
		webpage.Redirect(a.w, a.answer(authserver.ErrorAnswer(authserver.Invalid("access_denied", "the user did not agree"))))
		return
	default:
		a.say(http.StatusBadRequest, titleForged, "It has no decision.")
		return
	}
	webpage.Redirect(a.w, a.r.URL.RequestURI())
}

// action names the effect of the page's forms: a token of one request is good for no other.
func (a *authorizing) action() string { return paths.Authorize + " " + a.draft.Request }

// isAuthorization reports whether a browser that logs in goes back to an authorization request.
func isAuthorization(back string) bool { return strings.HasPrefix(back, paths.Authorize+"?") }
