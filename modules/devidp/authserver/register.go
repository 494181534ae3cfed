package authserver

import (
	"encoding/json"
	"maps"
	"mime"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// registration is the part of a client's metadata that matters here (RFC 7591 section 2). Unknown members are ignored,
// as the RFC demands.
type registration struct {
	RedirectURIs  []string `json:"redirect_uris"`
	Name          string   `json:"client_name,omitempty"`
	AuthMethod    string   `json:"token_endpoint_auth_method"`
	GrantTypes    []string `json:"grant_types"`
	ResponseTypes []string `json:"response_types"`
	Scope         string   `json:"scope,omitempty"`
}

// client checks the metadata and fills in defaults. Grant types that only a client of the configuration may have are
// left out, which RFC 7591 section 2 allows; a client that cannot use codes is refused.
func (m *registration) client() (*Client, error) {
	if len(m.RedirectURIs) == 0 || len(m.RedirectURIs) > 10 {
		return nil, invalid("invalid_redirect_uri", "between 1 and 10 redirect_uris are needed")
	}
	for _, uri := range m.RedirectURIs {
		if _, ok := parseRedirect(uri); !ok {
			return nil, invalid("invalid_redirect_uri", "redirect_uris must be https, or http to a loopback address, without a fragment")
		}
	}
	if utf8.RuneCountInString(m.Name) > 100 || strings.ContainsFunc(m.Name, func(c rune) bool { return !unicode.IsPrint(c) }) {
		return nil, invalid("invalid_client_metadata", "client_name must be at most 100 printable characters")
	}
	if len(m.ResponseTypes) > 0 && !slices.Contains(m.ResponseTypes, "code") {
		return nil, invalid("invalid_client_metadata", "response_types must contain code")
	}
	grants := []string{grantCode}
	if len(m.GrantTypes) > 0 {
		if !slices.Contains(m.GrantTypes, grantCode) {
			return nil, invalid("invalid_client_metadata", "grant_types must contain authorization_code")
		}
		if slices.Contains(m.GrantTypes, grantRefresh) {
			grants = append(grants, grantRefresh)
		}
	}
	return &Client{Name: m.Name, AuthMethod: m.AuthMethod, RedirectURIs: m.RedirectURIs, GrantTypes: grants}, nil
}

// Register returns the registration endpoint (RFC 7591).
func (s *Server) Register() http.Handler { return Restricted(s.register, http.MethodPost) }

func (s *Server) register(w http.ResponseWriter, r *http.Request) {
	if t, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || t != "application/json" {
		writeError(w, invalid("invalid_client_metadata", "the body must be application/json"))
		return
	}
	body, err := readBody(w, r)
	if err != nil {
		writeError(w, err)
		return
	}
	var m registration
	if err := json.Unmarshal(body, &m); err != nil {
		writeError(w, invalid("invalid_client_metadata", "the body is not a JSON object of client metadata"))
		return
	}
	if m.AuthMethod == "" {
		m.AuthMethod = authBasic // RFC 7591 section 2
	}
	if !slices.Contains(authMethods, m.AuthMethod) {
		writeError(w, invalid("invalid_client_metadata", "unknown token_endpoint_auth_method"))
		return
	}
	c, err := m.client()
	if err != nil {
		writeError(w, err)
		return
	}
	c.ID, c.Issued = secret(), s.config.Now().UTC().Truncate(time.Second)
	answer := map[string]any{
		"client_id": c.ID, "client_id_issued_at": c.Issued.Unix(), "redirect_uris": c.RedirectURIs, "grant_types": c.GrantTypes,
		"response_types": []string{"code"}, "token_endpoint_auth_method": c.AuthMethod,
	}
	if c.Name != "" {
		answer["client_name"] = c.Name
	}
	if m.Scope != "" {
		answer["scope"] = m.Scope
	}
	if c.AuthMethod != authNone {
		clientSecret := secret()
		c.SecretHash = hash(clientSecret)
		answer["client_secret"], answer["client_secret_expires_at"] = clientSecret, 0
	}
	err = s.state.Update(func(st *state) error {
		if len(st.Clients) >= maxClients && !st.forgetClient() {
			return &Error{Code: "temporarily_unavailable", Description: "too many clients are registered", status: http.StatusServiceUnavailable}
		}
		st.Clients[c.ID] = c
		return nil
	})
	if err != nil {
		writeError(w, err)
		return
	}
	WriteJSON(w, http.StatusCreated, answer)
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
	delete(s.Clients, first(idle, func(c *Client) time.Time { return c.Issued }))
	return true
}
