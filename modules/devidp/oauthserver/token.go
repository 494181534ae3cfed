package oauthserver

import (
	"crypto/subtle"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/durward-gateway/durward/internal/identity/authserver"
)

// Token returns the token endpoint: authorization_code and refresh_token.
func (s *Server) Token() http.Handler {
	return authserver.Restricted(func(w http.ResponseWriter, r *http.Request) {
		answer, err := s.token(w, r)
		if err != nil {
			authserver.WriteError(w, err)
			return
		}
		authserver.WriteJSON(w, http.StatusOK, answer)
	}, nil, http.MethodPost)
}

func (s *Server) token(w http.ResponseWriter, r *http.Request) (map[string]any, error) {
	form, err := authserver.ReadForm(w, r)
	if err != nil {
		return nil, err
	}
	if err := authserver.CheckForm(form); err != nil {
		return nil, err
	}
	c, err := authserver.Authenticate(w, r, form, s.client)
	if err != nil {
		return nil, err
	}
	grantType := form.Get("grant_type")
	switch grantType {
	case "":
		return nil, authserver.Invalid("invalid_request", "grant_type is missing")
	case authserver.GrantCode, authserver.GrantRefresh:
	default:
		return nil, authserver.Invalid("unsupported_grant_type", "grant_type must be authorization_code or refresh_token")
	}
	if !slices.Contains(c.GrantTypes, grantType) {
		return nil, authserver.Invalid("unauthorized_client", "the client may not use this grant type")
	}
	targets, err := authserver.Targets(form, s.config.Target)
	if err != nil {
		return nil, err
	}
	if grantType == authserver.GrantCode {
		return s.redeem(c, form, targets)
	}
	return s.refresh(c, form, targets)
}

// redeem exchanges a code. A code that is shown a second time ends the grant that the first time made (RFC 6749 section
// 4.1.2); a code that is shown with any error is spent.
func (s *Server) redeem(c *authserver.Client, form url.Values, targets []string) (map[string]any, error) {
	refused := authserver.Invalid("invalid_grant", "the code is not good, or not for this request")
	now := s.config.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	k, ok := s.codes[authserver.HashSecret(form.Get("code"))]
	if !ok {
		return nil, refused
	}
	if k.spent {
		if err := s.end(k.grantID); err != nil {
			return nil, err
		}
		return nil, refused
	}
	k.spent = true
	switch {
	case !now.Before(k.expires), k.ClientID != c.ID, k.RedirectURI != form.Get("redirect_uri"), !authserver.Proves(form.Get("code_verifier"), k.Challenge):
		return nil, refused
	case !within(targets, k.Targets):
		return nil, authserver.Invalid("invalid_target", "the resource is not one that was allowed at login")
	}
	g := Grant{
		ID: k.grantID, ClientID: c.ID, Subject: k.subject, Scopes: k.Scopes, Targets: k.Targets, Nonce: k.Nonce, LoginTime: k.login,
	}
	return s.issue(g, g.narrowed(nil, targets), slices.Contains(c.GrantTypes, authserver.GrantRefresh), "")
}

// refresh exchanges a refresh token, which is spent by it: showing a spent one ends the grant (RFC 9700 section 4.14.2).
func (s *Server) refresh(c *authserver.Client, form url.Values, targets []string) (map[string]any, error) {
	refused := authserver.Invalid("invalid_grant", "the refresh token is not good")
	token := form.Get("refresh_token")
	g, ok := s.state.View().Grants[s.grantOf(token)]
	if !ok || g.ClientID != c.ID || g.Refresh == "" || !s.config.Now().Before(g.Expires) {
		return nil, refused
	}
	requested, err := authserver.Scopes(form.Get("scope"))
	if err != nil {
		return nil, err
	}
	if !within(requested, g.Scopes) {
		return nil, authserver.Invalid("invalid_scope", "a refresh cannot ask for more than was allowed at login")
	}
	if !within(targets, g.Targets) {
		return nil, authserver.Invalid("invalid_target", "the resource is not one that was allowed at login")
	}
	return s.issue(*g, g.narrowed(requested, targets), true, token)
}

// issue makes the tokens of an answer, and stores the necessary facts about them before it returns. granted is the
// whole grant, now the part of it that this answer covers. spent, when not empty, is the refresh token that pays for
// it.
func (s *Server) issue(granted, now Grant, refreshable bool, spent string) (map[string]any, error) {
	answer := map[string]any{"token_type": "Bearer", "expires_in": int64(s.config.AccessLifetime / time.Second), "scope": strings.Join(now.Scopes, " ")}
	var token string
	if s.config.Sign != nil {
		signed, extra, err := s.config.Sign(now)
		if err != nil {
			return nil, err
		}
		maps.Copy(answer, extra)
		token = signed
	} else {
		token = s.config.TokenPrefix + "at_" + authserver.Random()
	}
	answer["access_token"] = token
	if s.config.Sign != nil && !refreshable {
		return answer, nil // nothing to remember: a party that can check the signature can read the rest
	}
	at := s.config.Now()
	granted.Refresh, granted.Expires = "", at.Add(s.config.AccessLifetime)
	if refreshable {
		refresh := s.config.TokenPrefix + "rt_" + granted.ID + "." + authserver.Random()
		answer["refresh_token"] = refresh
		granted.Refresh, granted.Expires = authserver.HashSecret(refresh), at.Add(refreshLifetime)
	}
	var dropped []string
	err := s.state.Update(func(st *state) error {
		dropped = nil
		if spent != "" {
			current, ok := st.Grants[granted.ID]
			if !ok {
				return authserver.Invalid("invalid_grant", "the refresh token is not good")
			}
			if subtle.ConstantTimeCompare([]byte(current.Refresh), []byte(authserver.HashSecret(spent))) != 1 {
				return errReplayed
			}
			delete(st.Grants, granted.ID) // so that prune cannot take it for the oldest; it is put back below
		}
		dropped = st.prune(at)
		st.Grants[granted.ID] = &granted
		if s.config.Sign == nil {
			st.Access[authserver.HashSecret(token)] = access{Grant: granted.ID, Expires: at.Add(s.config.AccessLifetime)}
		}
		return nil
	})
	if errors.Is(err, errReplayed) {
		if err := s.end(granted.ID); err != nil {
			return nil, err
		}
		return nil, authserver.Invalid("invalid_grant", "the refresh token was used before; the grant has ended")
	}
	if err != nil {
		return nil, err
	}
	s.revoked(dropped...)
	return answer, nil
}

// errReplayed reports that a refresh token of an existing grant is not the current one.
var errReplayed = authserver.Invalid("invalid_grant", "replayed")

// Lookup finds the grant of an opaque access token.
func (s *Server) Lookup(token string) (Grant, bool) {
	st := s.state.View()
	a, ok := st.Access[authserver.HashSecret(token)]
	if !ok || !s.config.Now().Before(a.Expires) {
		return Grant{}, false
	}
	g, ok := st.Grants[a.Grant]
	if !ok {
		return Grant{}, false
	}
	return *g, true
}

// grantOf reads the grant's id out of a refresh token; it is random, so only a party that has seen one of its tokens
// knows it.
func (s *Server) grantOf(refresh string) string {
	rest, ok := strings.CutPrefix(refresh, s.config.TokenPrefix+"rt_")
	id, _, found := strings.Cut(rest, ".")
	if !ok || !found {
		return ""
	}
	return id
}

// end revokes a grant and everything issued under it.
func (s *Server) end(grantID string) error {
	if _, ok := s.state.View().Grants[grantID]; !ok {
		return nil
	}
	if err := s.state.Update(func(st *state) error { st.drop(grantID); return nil }); err != nil {
		return err
	}
	s.revoked(grantID)
	return nil
}

func (s *Server) revoked(grantIDs ...string) {
	if s.config.Revoked == nil {
		return
	}
	for _, id := range grantIDs {
		s.config.Revoked(id)
	}
}

// narrowed returns the part of a grant that a request asked for; asking for nothing asks for all.
func (g Grant) narrowed(scopes, targets []string) Grant {
	if len(scopes) > 0 {
		g.Scopes = scopes
	}
	if len(targets) > 0 {
		g.Targets = targets
	}
	return g
}

// within reports whether every one of some is in all.
func within(some, all []string) bool {
	return !slices.ContainsFunc(some, func(s string) bool { return !slices.Contains(all, s) })
}
