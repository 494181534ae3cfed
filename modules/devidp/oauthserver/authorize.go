package oauthserver

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/durward-gateway/durward/internal/identity/authserver"
)

// code is an authorization code, kept under its hash.
type code struct {
	authserver.Authorization
	subject string
	login   time.Time
	expires time.Time
	forget  time.Time
	spent   bool
	grantID string
}

// Authorize returns the authorization endpoint. GET shows the login page, a form without script that POSTs to the same
// path:
//
//	ticket  hidden; carries the request, signed, good once and for ten minutes
//	user    (or the field named by Config.PickField) the user who logs in
//	deny    when present, the answer is access_denied
//
// Answers go to the redirect URI with code or error, state and iss (RFC 9207), by 303 so that no browser sends the form
// there (RFC 9700 section 4.12). A request whose client or redirect URI is not known is answered with a page, never
// with a redirect.
func (s *Server) Authorize() http.Handler {
	crossOrigin := http.NewCrossOriginProtection()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.Method {
		case http.MethodGet:
			s.showLogin(w, r)
		case http.MethodPost:
			if len(r.Header.Values("Origin")) > 1 || crossOrigin.Check(r) != nil {
				s.fail(w, http.StatusForbidden, "The form was sent from another site.")
				return
			}
			s.login(w, r)
		default:
			w.Header().Set("Allow", "GET, POST")
			s.fail(w, http.StatusMethodNotAllowed, "This page is read with GET and sent with POST.")
		}
	})
}

func (s *Server) showLogin(w http.ResponseWriter, r *http.Request) {
	form, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil || len(r.URL.RawQuery) > authserver.MaxQuery {
		s.fail(w, http.StatusBadRequest, "The address of this page cannot be read.")
		return
	}
	// Nothing is sent to the redirect URI until it is known to belong to the client (RFC 6749 section 4.1.2.1).
	if len(form["client_id"]) != 1 || len(form["redirect_uri"]) > 1 {
		s.fail(w, http.StatusBadRequest, "The request must name one client and one redirect URI.")
		return
	}
	c, err := s.client(r.Context(), form.Get("client_id"))
	if err != nil || !slices.Contains(c.GrantTypes, authserver.GrantCode) {
		s.fail(w, http.StatusBadRequest, "The client is not known here.")
		return
	}
	redirect := form.Get("redirect_uri")
	if !c.Allows(redirect) {
		s.fail(w, http.StatusBadRequest, "The redirect URI is not one of this client's.")
		return
	}
	req, err := s.readRequest(form)
	if err != nil {
		s.answer(w, r, redirect, form.Get("state"), authserver.ErrorAnswer(err))
		return
	}
	t, err := s.tickets.issue(req)
	if err != nil {
		s.fail(w, http.StatusInternalServerError, "The page could not be made.")
		return
	}
	u, _ := authserver.ParseRedirect(redirect)
	s.render(w, http.StatusOK, s.page, s.config.Title, prompt{
		ClientName: c.Name, ClientID: c.ID, RedirectHost: u.Host, Scopes: req.Scopes, Targets: req.Targets,
		Action: s.action, Ticket: t, Data: s.config.PickData,
	}, authserver.FormSources(redirect))
}

// readRequest checks all parameters except the client and its redirect URI.
func (s *Server) readRequest(form url.Values) (authserver.Authorization, error) {
	asked, err := authserver.ReadAuthorization(form, s.config.Target)
	if err != nil {
		return asked, err
	}
	if asked.Scopes, err = s.config.Scopes(asked.Scopes); err != nil {
		return asked, authserver.Invalid("invalid_scope", err.Error())
	}
	return asked, nil
}

func (s *Server) login(w http.ResponseWriter, r *http.Request) {
	form, err := authserver.ReadForm(w, r)
	if err != nil || len(form["ticket"]) != 1 || len(form[s.config.PickField]) > 1 {
		s.fail(w, http.StatusBadRequest, "The form cannot be read.")
		return
	}
	t, ok := s.tickets.open(form.Get("ticket"))
	if !ok {
		s.fail(w, http.StatusBadRequest, "The form has expired. Start again from the application.")
		return
	}
	// The facts that held when the page was shown are checked again: a registered client may be gone, a document may have
	// changed.
	c, err := s.client(r.Context(), t.Request.ClientID)
	if err != nil || !c.Allows(t.Request.RedirectURI) {
		s.fail(w, http.StatusBadRequest, "The client is not known here any more.")
		return
	}
	denied := form.Has("deny")
	var subject string
	if !denied {
		if subject, err = s.config.Subject(form.Get(s.config.PickField)); err != nil || subject == "" {
			s.fail(w, http.StatusBadRequest, "There is no such user.")
			return
		}
	}
	if !s.tickets.spend(t) {
		s.fail(w, http.StatusBadRequest, "The form was sent already, or is too old. Start again from the application.")
		return
	}
	if denied {
		s.answer(w, r, t.Request.RedirectURI, t.Request.State, url.Values{"error": {"access_denied"}})
		return
	}
	s.answer(w, r, t.Request.RedirectURI, t.Request.State, url.Values{"code": {s.newCode(t.Request, subject)}})
}

// newCode makes a code. When there are too many, the oldest one goes, first of those that were redeemed: they are only kept to
// notice when they come twice.
func (s *Server) newCode(req authserver.Authorization, subject string) string {
	now := s.config.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.codes, func(_ string, c *code) bool { return !now.Before(c.forget) })
	for len(s.codes) >= maxCodes {
		delete(s.codes, first(s.codes, func(c *code) time.Time {
			if c.spent {
				return c.login.Add(-codeMemory)
			}
			return c.login
		}))
	}
	value := authserver.Random()
	s.codes[authserver.HashSecret(value)] = &code{
		Authorization: req, subject: subject, login: now, expires: now.Add(codeLifetime), forget: now.Add(codeMemory), grantID: authserver.Random(),
	}
	return value
}

// answer sends the browser to a redirect URI that was checked against the client.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, redirect, clientState string, params url.Values) {
	params.Set("iss", s.config.Issuer)
	if clientState != "" {
		params.Set("state", clientState)
	}
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Referrer-Policy", "no-referrer")
	http.Redirect(w, r, authserver.AnswerURI(redirect, params), http.StatusSeeOther)
}
