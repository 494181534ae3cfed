package oauthserver

import (
	"maps"
	"net/http"
	"time"

	"github.com/durward-gateway/durward/internal/identity/authserver"
)

// Register returns the registration endpoint (RFC 7591).
func (s *Server) Register() http.Handler {
	return authserver.Restricted(s.register, nil, http.MethodPost)
}

func (s *Server) register(w http.ResponseWriter, r *http.Request) {
	asked, err := authserver.ReadRegistration(w, r)
	if err != nil {
		authserver.WriteError(w, err)
		return
	}
	c := &asked.Client
	c.ID, c.Issued = authserver.Random(), s.config.Now().UTC().Truncate(time.Second)
	clientSecret := ""
	if c.AuthMethod != authserver.AuthNone {
		clientSecret = authserver.Random()
		c.SecretHash = authserver.HashSecret(clientSecret)
	}
	err = s.state.Update(func(st *state) error {
		if len(st.Clients) >= maxClients && !st.forgetClient() {
			return &authserver.Error{Code: "temporarily_unavailable", Description: "too many clients are registered", Status: http.StatusServiceUnavailable}
		}
		st.Clients[c.ID] = c
		return nil
	})
	if err != nil {
		authserver.WriteError(w, err)
		return
	}
	authserver.WriteJSON(w, http.StatusCreated, asked.Answer(clientSecret))
}

// forgetClient drops the oldest client that no grant needs, and reports whether there was one: programs that register
// anew at every start must not lock out the next.
func (s *state) forgetClient() bool {
	idle := maps.Clone(s.Clients)
	for _, g := range s.Grants {
		delete(idle, g.ClientID)
	}
	if len(idle) == 0 {
		return false
	}
	delete(s.Clients, first(idle, func(c *authserver.Client) time.Time { return c.Issued }))
	return true
}
