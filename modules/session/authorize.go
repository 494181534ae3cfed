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

	"github.com/durward-gateway/durward/internal/api/visible"
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

// progress holds how far a user has come with an authorization request. The browser keeps it, sealed.
type progress struct {
	Organization string    `json:"org"`
	User         string    `json:"user"`
	Request      string    `json:"request"` // digest of the authorization request
	Expires      time.Time `json:"expires"`
	Agreed       bool      `json:"agreed,omitempty"` // the user has agreed to this request
	Later        bool      `json:"later,omitempty"`  // the user connects their account some other time
	Login        string    `json:"login,omitempty"`  // the id of the login that waits for its client
}

// authorizing is a visit to the authorization endpoint (RFC 6749 section 3.1).
type authorizing struct {
	*visit
	oauth    *authorization.Server
	query    url.Values
	progress progress
	client   *authserver.Client
	asked    authserver.Authorization
	audience string
	server   *storage.Server // of the audience; nil: the gateway as a whole
}

// authorize lets a user agree to an OAuth client, and sends the client a code.
func (v *visit) authorize() {
	a := authorizing{visit: v, oauth: v.core.Authorization}
	// Only people who may use the gateway make it fetch the metadata documents of clients.
	if !a.read() || !a.loggedIn() {
		return
	}
	a.progress = a.keptOf(digest(a.query), a.user.OrganizationID, a.user.UserID)
	if !a.known() || !a.meant() {
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
	query, err := url.ParseQuery(a.r.URL.RawQuery)
	if err == nil {
		err = authserver.CheckForm(query)
	}
	a.query = parametersOf(query)
	// The address goes on into logins and to the page on which an account is connected.
	if whole := a.core.PublicURL + a.address(); err != nil || len(a.r.URL.RawQuery) > maxQuery || oidclogin.LocalPath(a.address(), "") == "" || a.core.Broker.CheckReturnURL(whole) != nil {
		a.say(http.StatusBadRequest, titleClient, "Its request cannot be read, or is too long. Try again from the client; if it stays so, tell its makers.")
		return false
	}
	return true
}

// parametersOf returns the parameters of an authorization request. Those that the gateway's own pages add are left out,
// and those of which a client wants nothing.
func parametersOf(query url.Values) url.Values {
	kept := make(url.Values)
	for _, name := range []string{
		"client_id", "redirect_uri", "response_type", "response_mode", "state", "scope", "code_challenge", "code_challenge_method", "resource", "audience", "nonce",
		"prompt", "request", "request_uri",
	} {
		if len(query[name]) > 0 {
			kept[name] = query[name]
		}
	}
	return kept
}

// address returns the address of this request on this site.
func (a *authorizing) address() string { return paths.Authorize + "?" + a.query.Encode() }

// digest returns a digest of an authorization request.
func digest(query url.Values) string {
	sum := sha256.Sum256([]byte(parametersOf(query).Encode()))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// loggedIn reports whether a user is logged in; otherwise it sends the browser to the identity provider, and back.
func (a *authorizing) loggedIn() bool {
	if a.user != nil {
		return true
	}
	if a.r.Method != http.MethodGet {
		a.sayLink(http.StatusForbidden, "You are not logged in", "Nothing was changed.", link{a.address(), "Begin again"})
		return false
	}
	issuers := a.core.Logins.Issuers()
	if len(issuers) == 1 {
		// Another site can send a browser here again and again, but then somebody is logged in, and has to agree before the
		// next login for a client.
		a.beginLogin(a.purpose(), issuers[0])
		return false
	}
	a.chooseIssuer(issuers, a.address())
	return false
}

// purpose returns what a login at the identity provider is for. A client may want the user to prove anew who they are, or to
// choose an account (OpenID Connect Core section 3.1.2.1).
func (a *authorizing) purpose() oidclogin.Purpose {
	p := oidclogin.Purpose{Return: a.address(), Client: true, Offline: true}
	for _, prompt := range []string{"select_account", "login"} {
		if a.prompts(prompt) {
			p.Prompt = prompt
		}
	}
	return p
}

// prompts reports whether the request has a word in its parameter prompt.
func (a *authorizing) prompts(word string) bool {
	return slices.Contains(strings.Fields(a.query.Get("prompt")), word)
}

// keptOf returns how far a user has come with a request. Nothing of another user's counts, who had the browser before.
func (v *visit) keptOf(request, organization, user string) (p progress) {
	memo, ok := v.core.Logins.Browsers.OpenMemo(websession.CookieClient, v.core.Cookies.Value(v.r, websession.NameOf(websession.CookieClient, request)))
	if !ok || json.Unmarshal(memo, &p) != nil || p.Request != request || p.Organization != organization || p.User != user || !v.now().Before(p.Expires) {
		return progress{Organization: organization, User: user, Request: request}
	}
	return p
}

// keep notes in the browser how far the user has come. It reports false when it has answered the visit.
func (v *visit) keep(p progress) bool {
	p.Expires = v.now().Add(logins.DraftLifetime)
	memo, err := json.Marshal(p)
	if err != nil {
		v.logger.Error("encoding the progress of a login", zap.Error(err))
		v.unavailable()
		return false
	}
	v.core.Cookies.SetOne(v.w, v.r, websession.CookieClient, p.Request, v.core.Logins.Browsers.SealMemo(websession.CookieClient, memo), logins.DraftLifetime)
	return true
}

func (a *authorizing) forget() {
	a.core.Cookies.Drop(a.w, websession.NameOf(websession.CookieClient, a.progress.Request))
}

// keepDraft stores what the identity provider has proven, for the authorization request to which the browser goes back.
// Where another user logged in than the one who agreed, that one is asked. It reports false when it has answered the visit.
func (v *visit) keepDraft(d logins.Draft, back string) bool {
	u, err := url.Parse(back)
	if err != nil || v.core.Authorization == nil {
		return true // the page says what is wrong
	}
	p := v.keptOf(digest(u.Query()), d.OrganizationID, d.UserID)
	if p.Login, err = v.core.Authorization.Draft(v.r.Context(), d); err != nil {
		v.core.LogFailure(v.logger, "keeping a login for a client", err)
		v.unavailable()
		return false
	}
	return v.keep(p)
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
		a.say(http.StatusBadRequest, titleClient, "The client that sent you here describes itself at "+a.describedAt()+", but the gateway finds no usable description there. Try again in some minutes. If it stays so, ask the gateway's operator: a gateway that may not reach that address needs the client in its configuration (oauth_client).")
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

// describedAt returns the host at which the client describes itself, for people.
func (a *authorizing) describedAt() string {
	u, err := url.Parse(a.query.Get("client_id"))
	if err != nil || u.Host == "" {
		return "an address of its own"
	}
	return visible.Text(u.Host)
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
	if u, ok := authserver.ParseRedirect(a.asked.RedirectURI); ok && u.Scheme != "https" {
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
	case u.Scheme != "https":
		return "the program on this computer that opens " + u.Scheme + "://" + u.Host
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

// goOn asks the user what is left to be asked, has the identity provider log them in for this client, and sends the client
// its code.
func (a *authorizing) goOn() {
	agreed, err := a.agreed()
	lacks := false
	if err == nil && agreed && !a.progress.Later {
		lacks, err = a.lacksAccount()
	}
	switch {
	case err != nil:
		a.core.LogFailure(a.logger, "looking up what a user has agreed to", err)
		a.unavailable()
	case !agreed:
		a.ask()
	case lacks:
		a.offerAccount()
	case a.progress.Login == "":
		// Each login with a client has a refresh token of its own: two would use up each other's. Nobody notices the way to
		// the identity provider who is logged in there.
		if a.progress.Agreed = true; a.keep(a.progress) {
			a.beginLogin(a.purpose(), a.user.Issuer)
		}
	default:
		a.sendCode()
	}
}

// agreed reports whether the user has agreed to this request, or to one like it before. They are asked each time about a
// program on their own machine: any program there can take a port, and a client that is known by its name (RFC 8252 section
// 8.6).
func (a *authorizing) agreed() (bool, error) {
	if a.progress.Agreed {
		return true, nil
	}
	if u, ok := authserver.ParseRedirect(a.asked.RedirectURI); !ok || u.Scheme != "https" || a.prompts("consent") {
		return false, nil
	}
	before, err := a.core.Store.Consent(a.r.Context(), a.consent())
	switch {
	case errors.Is(err, storage.ErrNotFound):
		return false, nil
	case err != nil:
		return false, err
	}
	return before.ClientName == a.client.Name, nil
}

// lacksAccount reports whether the user has to connect an account before the server can be used.
func (a *authorizing) lacksAccount() (bool, error) {
	if a.server == nil || !connection.NeedsAccount(&a.server.Entry) {
		return false, nil
	}
	key := storage.ConnectionKey{OrganizationID: a.user.OrganizationID, UserID: a.user.UserID, ServerID: a.server.ID}
	connected, err := a.core.Broker.Connected(a.r.Context(), key, a.server)
	return !connected, err
}

func (a *authorizing) sendCode() {
	if !a.record("client.login", "ok") {
		return
	}
	code, err := a.oauth.Agree(a.r.Context(), logins.Agreement{
		OrganizationID: a.user.OrganizationID, UserID: a.user.UserID, Draft: a.progress.Login, Client: a.client, Resource: a.audience,
		RedirectURI: a.asked.RedirectURI, Challenge: a.asked.Challenge,
	})
	switch {
	case errors.Is(err, logins.ErrNoDraft): // the page was loaded twice
		a.forget()
		if a.record("client.login", "refused") {
			a.sayLink(http.StatusBadRequest, "This login has been used", "Look at the client: it may be logged in already.", link{a.address(), "Log in once more"})
		}
	case err != nil:
		a.core.LogFailure(a.logger, "logging in with a client", err)
		a.unavailable()
	default:
		a.forget()
		webpage.Redirect(a.w, a.answer(url.Values{"code": {code.Reveal()}}))
	}
}

// record records an event of the user's with the client. It reports false when it has answered the visit: nothing goes on
// that is not recorded.
func (a *authorizing) record(event, outcome string) bool {
	err := a.core.Audit.Event(a.r.Context(), a.user.OrganizationID, storage.AuditEntry{
		Kind: storage.AuditLogin, Event: event, UserID: a.user.UserID, Client: a.client.ID, Outcome: outcome,
		Detail: map[string]any{"login": a.progress.Login, "resource": a.audience},
	})
	if err != nil {
		a.core.LogFailure(a.logger, "recording "+event, err)
		a.unavailable()
	}
	return err == nil
}

// decide takes the user's decision.
func (a *authorizing) decide() {
	form, ok := a.form(a.action())
	if !ok {
		return
	}
	switch form.Get(fieldDecision) {
	case saysYes:
		if !a.record("client.consent", "ok") {
			return
		}
		if err := a.core.Store.PutConsent(a.r.Context(), a.consent()); err != nil {
			a.core.LogFailure(a.logger, "storing a consent", err)
			a.unavailable()
			return
		}
		a.progress.Agreed = true
	case saysLater:
		a.progress.Later = true
	case saysNo:
		if a.record("client.consent", "denied") {
			a.forget()
			webpage.Redirect(a.w, a.answer(authserver.ErrorAnswer(authserver.Invalid("access_denied", "the user did not agree"))))
		}
		return
	default:
		a.say(http.StatusBadRequest, titleForged, "It has no decision.")
		return
	}
	if a.keep(a.progress) {
		webpage.Redirect(a.w, a.address())
	}
}

// action names the effect of the page's forms: a token of one request is good for no other.
func (a *authorizing) action() string { return paths.Authorize + " " + a.progress.Request }
