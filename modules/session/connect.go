package session

import (
	_ "embed" // the page
	"errors"
	"maps"
	"net/http"
	"net/url"
	"strings"

	"go.uber.org/zap"

	"github.com/durward-gateway/durward/internal/api/slug"
	"github.com/durward-gateway/durward/internal/api/visible"
	"github.com/durward-gateway/durward/internal/api/webpage"
	"github.com/durward-gateway/durward/internal/credential/connection"
	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/modules/app/paths"
	"github.com/durward-gateway/durward/storage"
)

var (
	//go:embed connect.html
	connectText string
	connectPage = webpage.MustParse(connectText)
)

const (
	paramReturn = "return_url"
	// paramAgain begins anew although the account is connected.
	paramAgain = "again"
	// paramDisconnect asks whether to disconnect the account; in a form it disconnects.
	paramDisconnect = "disconnect"

	textGoBack      = "Go back to your client: the same conversation can use the server now. Nothing needs to be restarted."
	titleNotReached = "The account cannot be connected now"
)

// field is an input of the form for a credential that the user types.
type field struct{ Name, Label, Type string }

// connecting is the page on which a user connects their account at a server.
type connecting struct {
	Problem   string // the problem with the form; "" for none
	Text      string
	Address   string // of the form
	Form      string // its token
	ReturnURL string
	Fields    []field
	Go        *link
	Again     string // the address that begins anew; "" for none
	// Disconnect is the address that asks whether to disconnect; "" for none.
	Disconnect string
}

// connect is a visit to the page of one server.
type connect struct {
	*visit
	server    storage.Server
	key       storage.ConnectionKey
	kind      storage.Provider
	returnURL string
}

// connect shows the page on which a user connects their account: clients get its address (`connect_url`).
func (v *visit) connect(name string) {
	if len(v.core.Logins.Issuers()) == 0 {
		v.connectWithout(name)
		return
	}
	if !v.loggedIn() {
		return
	}
	c := connect{visit: v}
	if !c.find(name) {
		return
	}
	var ok bool
	if v.r.Method == http.MethodPost {
		var form url.Values
		if form, ok = v.form(paths.ConnectPrefix + name); !ok {
			return
		}
		switch {
		case form.Has(paramDisconnect):
			c.disconnect()
		case c.readReturn(form):
			c.typed(form)
		}
		return
	}
	switch query := v.r.URL.Query(); {
	case query.Has(paramDisconnect) && connection.NeedsAccount(&c.server.Entry):
		c.askToDisconnect()
	case c.readReturn(query):
		c.show(query.Has(paramAgain))
	}
}

// connectWithout tells a user how to connect when no browser can log in.
func (v *visit) connectWithout(name string) {
	text := "This gateway has no login for browsers, so this page cannot connect your account. Ask its operator to set up `login_client`."
	if slug.Valid(name) {
		text += " Until then, connect with an access token of yours: POST " + v.core.PublicURL + "/api/servers/by-slug/" + name +
			"/connect answers with the address to open (auth_url)."
	}
	v.say(http.StatusNotFound, titleNotReached, text)
}

// find looks up the server. A server of another organization is answered like one that does not exist.
func (c *connect) find(name string) bool {
	server, err := storage.Server{}, storage.ErrNotFound
	if slug.Valid(name) {
		server, err = c.core.Store.ServerBySlug(c.r.Context(), c.user.OrganizationID, name)
	}
	switch {
	case errors.Is(err, storage.ErrNotFound):
		c.say(http.StatusNotFound, "There is no such server", "Your organization has no server of that name. Look at the address again, or ask an administrator.")
		return false
	case err != nil:
		c.core.LogFailure(c.logger, "looking up a server to connect to", err)
		c.unavailable()
		return false
	}
	c.server, c.kind = server, connection.KindOf(&server.Entry)
	c.key = storage.ConnectionKey{OrganizationID: c.user.OrganizationID, UserID: c.user.UserID, ServerID: server.ID}
	return true
}

// readReturn reads the address to which the browser goes in the end. A link alone cannot choose it freely (CWE-601).
func (c *connect) readReturn(from url.Values) bool {
	c.returnURL = from.Get(paramReturn)
	if c.returnURL == "" {
		return true
	}
	refused := (*connection.ReturnURLError)(nil)
	if err := c.core.Broker.CheckReturnURL(c.returnURL); errors.As(err, &refused) {
		c.say(http.StatusUnprocessableEntity, titleNotReached, "The return_url of this address is not allowed: "+refused.Reason+".")
		return false
	}
	return true
}

// show says that the account is connected, asks for a credential, or sends the browser to the provider.
func (c *connect) show(again bool) {
	connected, err := c.core.Broker.Connected(c.r.Context(), c.key, &c.server)
	if err == nil && connected && c.kind == storage.ProviderOAuth2 {
		connected, err = c.core.Broker.GivesEnough(c.r.Context(), c.key)
	}
	switch {
	case err != nil:
		c.core.LogFailure(c.logger, "looking up a connection", err)
		c.unavailable()
	case connected && !again:
		c.done()
	case c.kind.Obtained():
		c.withoutAccount(connected)
	case c.kind == storage.ProviderOAuth2:
		c.begin(connection.ConnectRequest{ReturnURL: c.returnURL})
	default:
		c.ask(http.StatusOK, "")
	}
}

// withoutAccount answers for a server to which users connect no account: it works, or an administrator has to act.
func (c *connect) withoutAccount(works bool) {
	if works {
		c.done()
		return
	}
	c.say(http.StatusConflict, titleNotReached, visible.Text(c.server.Name)+" needs no account of yours, but it cannot be used yet: an administrator must give it its OAuth client first.")
}

// begin connects, and redirects to the next step: on to the provider, or to the end.
func (c *connect) begin(req connection.ConnectRequest) {
	who := connection.Who{OrganizationID: c.key.OrganizationID, UserID: c.key.UserID}
	result, err := c.core.Broker.Connect(c.r.Context(), who, c.server, req)
	bad := (*connection.BadRequestError)(nil)
	switch {
	case err == nil && result.AuthURL != nil:
		webpage.Redirect(c.w, *result.AuthURL)
	case err == nil:
		c.core.Metrics.Connections.WithLabelValues("connected").Inc()
		webpage.Redirect(c.w, c.address(nil)) // loading the page again sends no credential again
	case errors.As(err, &bad):
		c.ask(http.StatusBadRequest, bad.Message+".")
	case errors.Is(err, connection.ErrOAuthConfiguration):
		c.logger.Warn("beginning to connect", zap.String("server", c.server.Slug), zap.Error(err))
		c.say(http.StatusInternalServerError, titleNotReached, "OAuth server configuration not found: the gateway has no client at the provider of "+
			visible.Text(c.server.Name)+", and could not get one. Ask an administrator to look at this server; the reason is in the gateway's log.")
	case errors.Is(err, storage.ErrNotFound):
		c.say(http.StatusNotFound, "There is no such server", "It has just been deleted.")
	default:
		c.core.LogFailure(c.logger, "beginning to connect", err)
		c.unavailable()
	}
}

// ask shows the form for a credential that the user types.
func (c *connect) ask(status int, problem string) {
	address := paths.ConnectPrefix + c.server.Slug
	page := connecting{
		Problem: problem, Address: address, Form: c.core.Logins.Browsers.FormToken(c.user.Session, address), ReturnURL: c.returnURL,
		Text: "The gateway keeps it encrypted and sends it to this server alone, for calls that your agents make for you.",
	}
	switch c.kind {
	case storage.ProviderAPIKey:
		page.Fields = []field{{"api_key", "Your API key", "password"}}
	case storage.ProviderBearerToken:
		page.Fields = []field{{"bearer_token", "Your token", "password"}}
	case storage.ProviderBasicAuth:
		page.Fields = []field{{"username", "User name", "text"}, {"password", "Password", "password"}}
	}
	c.visit.show(connectPage, status, "Connect your account at "+visible.Text(c.server.Name), page)
}

// typed takes the credential that the user typed.
func (c *connect) typed(form url.Values) {
	if c.kind == storage.ProviderOAuth2 {
		webpage.Redirect(c.w, c.again()) // a form leads to this site only: a page leads on to the provider
		return
	}
	secret := func(name string) seal.Secret { return seal.NewSecret(strings.TrimSpace(form.Get(name))) }
	c.begin(connection.ConnectRequest{
		APIKey: secret("api_key"), BearerToken: secret("bearer_token"), Username: secret("username"), Password: seal.NewSecret(form.Get("password")),
	})
}

// done shows that the account is connected, and a link for going on.
func (c *connect) done() {
	page, title := connecting{Text: textGoBack}, " is connected"
	if !connection.NeedsAccount(&c.server.Entry) {
		page.Text, title = "Agents that act for you can use this server as it is.", " needs no account"
	} else {
		page.Again, page.Disconnect = c.again(), c.address(url.Values{paramDisconnect: {"1"}})
	}
	if c.server.LastError != "" {
		page.Problem = "The last try of this server failed: it may not answer. Administrators see why."
	}
	if c.returnURL != "" {
		page.Go = &link{connection.WithOutcome(c.returnURL, true, c.server.Slug), "Go on"}
	}
	c.visit.show(connectPage, http.StatusOK, visible.Text(c.server.Name)+title, page)
}

func (c *connect) again() string {
	return c.address(url.Values{paramAgain: {"1"}})
}

// address returns the address of this page.
func (c *connect) address(query url.Values) string {
	address := paths.ConnectPrefix + c.server.Slug
	if c.returnURL != "" {
		query = maps.Clone(query)
		if query == nil {
			query = make(url.Values)
		}
		query.Set(paramReturn, c.returnURL)
	}
	if len(query) == 0 {
		return address
	}
	return address + "?" + query.Encode()
}
