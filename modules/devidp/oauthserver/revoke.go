package oauthserver

import (
	"net/http"

	"github.com/durward-gateway/durward/internal/identity/authserver"
)

// Revoke returns the revocation endpoint (RFC 7009): a refresh token ends its grant, an opaque access token only
// itself. A token that is not known is revoked already.
func (s *Server) Revoke() http.Handler {
	return authserver.Restricted(func(w http.ResponseWriter, r *http.Request) {
		if err := s.revoke(w, r); err != nil {
			authserver.WriteError(w, err)
			return
		}
		w.Header().Set("Cache-Control", "no-store")
		w.WriteHeader(http.StatusOK)
	}, nil, http.MethodPost)
}

func (s *Server) revoke(w http.ResponseWriter, r *http.Request) error {
	form, err := authserver.ReadForm(w, r)
	if err != nil {
		return err
	}
	if err := authserver.CheckForm(form); err != nil {
		return err
	}
	c, err := authserver.Authenticate(w, r, form, s.client)
	if err != nil {
		return err
	}
	token := form.Get("token")
	if token == "" {
		return authserver.Invalid("invalid_request", "token is missing")
	}
	others := authserver.Invalid("invalid_grant", "the token is another client's") // RFC 7009 section 2.1: such a request is refused
	st := s.state.View()
	if g, ok := st.Grants[s.grantOf(token)]; ok {
		if g.ClientID != c.ID {
			return others
		}
		return s.end(g.ID) // a spent refresh token counts too: its holder wants the grant to be over
	}
	a, ok := st.Access[authserver.HashSecret(token)]
	if !ok {
		return nil
	}
	if g, ok := st.Grants[a.Grant]; !ok || g.ClientID != c.ID {
		return others
	}
	if err := s.state.Update(func(st *state) error { delete(st.Access, authserver.HashSecret(token)); return nil }); err != nil {
		return err
	}
	s.revoked(a.Grant)
	return nil
}
