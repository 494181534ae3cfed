package session

import (
	"cmp"
	_ "embed" // the page
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/durward-gateway/durward/internal/api/validate"
	"github.com/durward-gateway/durward/internal/api/visible"
	"github.com/durward-gateway/durward/internal/api/webpage"
	"github.com/durward-gateway/durward/modules/app/authorization"
	"github.com/durward-gateway/durward/modules/app/paths"
	"github.com/durward-gateway/durward/storage"
)

var (
	//go:embed clients.html
	clientsText string
	clientsPage = webpage.MustParse(clientsText).Wide().Times(timesPath)
)

// These are the fields of the page's forms.
const (
	fieldLogin  = "login"
	fieldClient = "client"
)

// letIn is an OAuth client that a user has let in, in the form of its page. Hidden characters in its name are made
// visible.
type letIn struct {
	ID, Name   string
	Origin     string // see consenting
	Configured bool
	Logins     []shownLogin
	// Remembered holds what the client need not ask for again.
	Remembered []string
}

// shownLogin is a login with a client.
type shownLogin struct {
	ID, Resource string
	Since, Until moment
	Used         string // the time since the client got tokens
}

// clients shows the clients that the user has let in, or ends what a form names.
func (v *visit) clients() {
	if !v.loggedIn() {
		return
	}
	if v.core.Authorization == nil {
		v.say(http.StatusNotFound, "There is no page here", "Clients of this gateway log in at its identity provider.")
		return
	}
	if v.r.Method == http.MethodPost {
		v.endClient()
		return
	}
	all, err := v.clientsLetIn()
	if err != nil {
		v.core.LogFailure(v.logger, "listing a user's clients", err)
		v.unavailable()
		return
	}
	v.show(clientsPage, http.StatusOK, textClients, struct {
		Clients       []letIn
		Address, Form string
	}{all, paths.Clients, v.core.Logins.Browsers.FormToken(v.user.Session, paths.Clients)})
}

// clientsLetIn returns the user's clients, the last used first, and then those that are only remembered.
func (v *visit) clientsLetIn() ([]letIn, error) {
	logins, err := v.core.Store.Logins(v.r.Context(), storage.LoginFilter{
		OrganizationID: v.user.OrganizationID, UserID: v.user.UserID, Now: v.core.Clock.Shared(v.now()), Page: storage.PageRequest{Number: 1, Limit: storage.MaxLogins},
	})
	if err != nil {
		return nil, err
	}
	consents, err := v.core.Store.Consents(v.r.Context(), v.user.OrganizationID, v.user.UserID)
	if err != nil {
		return nil, err
	}
	var all []letIn
	of := func(id, name string) *letIn {
		at := slices.IndexFunc(all, func(c letIn) bool { return c.ID == id })
		if at < 0 {
			at = len(all)
			all = append(all, letIn{ID: id, Name: visible.Text(cmp.Or(strings.TrimSpace(name), nameless)), Origin: originOf(id), Configured: v.core.Authorization.Configured(id)})
		}
		return &all[at]
	}
	for _, l := range logins.Items {
		if l.Resource == v.core.Authorization.ConsoleAudience() {
			continue // the gateway's own page, to which nobody agrees: it ends with the browser's session
		}
		c := of(l.ClientID, l.ClientName)
		c.Logins = append(c.Logins, shownLogin{
			ID: l.ID, Resource: v.resource(l.Resource), Since: v.moment(l.CreatedAt), Until: v.moment(l.ExpiresAt), Used: span(v.now().Sub(l.UsedAt)),
		})
	}
	for _, consent := range consents {
		c := of(consent.ClientID, consent.ClientName)
		if what := v.resource(consent.Resource); strings.HasPrefix(consent.RedirectOrigin, "https:") && !slices.Contains(c.Remembered, what) {
			c.Remembered = append(c.Remembered, what)
		}
	}
	return slices.DeleteFunc(all, func(c letIn) bool { return len(c.Logins)+len(c.Remembered) == 0 }), nil
}

// resource names the audience of a login for people.
func (v *visit) resource(audience string) string {
	if name, ok := strings.CutPrefix(audience, v.core.PublicURL+paths.MCPPrefix); ok {
		return visible.Text(name)
	}
	return "the whole gateway"
}

// originOf returns the host that stands for a client: the site of its metadata document. It is "" for other clients.
func originOf(client string) string {
	document, err := url.Parse(client)
	if err != nil || !strings.Contains(client, "://") {
		return ""
	}
	return visible.Text(document.Host)
}

// endClient ends a login, or all that a client was let in for.
func (v *visit) endClient() {
	form, ok := v.form(paths.Clients)
	if !ok {
		return
	}
	var err error
	switch login, client := form.Get(fieldLogin), form.Get(fieldClient); {
	case login != "":
		err = v.endLogin(login)
	case client != "":
		err = v.forgetClient(client)
	default:
		v.say(http.StatusBadRequest, titleForged, "It names nothing.")
		return
	}
	if err != nil && !errors.Is(err, storage.ErrNotFound) { // it has ended meanwhile
		v.core.LogFailure(v.logger, "logging a client out", err)
		v.unavailable()
		return
	}
	webpage.Redirect(v.w, paths.Clients)
}

// endLogin ends one of the user's own logins. Those of others are not found.
func (v *visit) endLogin(id string) error {
	if _, ok := validate.UUID(id); !ok {
		return storage.ErrNotFound
	}
	l, err := v.core.Store.Login(v.r.Context(), v.user.OrganizationID, id, v.core.Clock.Shared(v.now()))
	if err != nil {
		return err
	}
	if l.UserID != v.user.UserID {
		return storage.ErrNotFound
	}
	return authorization.End(v.r.Context(), v.core.Store, v.core.Audit, &l, v.user.UserID)
}

// forgetClient ends the user's logins with a client, and the consents to it. The form's text gets into the audit log only when it
// names such a client.
func (v *visit) forgetClient(client string) error {
	known, err := v.clientsLetIn()
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(known, func(c letIn) bool { return c.ID == client }) {
		return storage.ErrNotFound
	}
	err = v.core.Audit.Event(v.r.Context(), v.user.OrganizationID, storage.AuditEntry{
		Kind: storage.AuditLogin, Event: "client.forget", UserID: v.user.UserID, Client: client, Outcome: "ok",
	})
	if err != nil {
		return err
	}
	return v.core.Store.EndConsents(v.r.Context(), v.user.OrganizationID, v.user.UserID, client)
}
