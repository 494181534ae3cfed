package idp

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/uuid"

	"github.com/durward-gateway/durward/internal/identity/authserver"
	"github.com/durward-gateway/durward/modules/devidp/oauthserver"
)

// typAccess is the typ of access tokens (RFC 9068 section 2.1), which tells them from id tokens.
const typAccess = "at+jwt"

// sign makes the access token of a grant and, for a user who is asked for openid, an id token.
func (p *Provider) sign(g oauthserver.Grant) (string, map[string]any, error) {
	now := p.now()
	audience := slices.Clone(p.audiences)
	for _, t := range g.Targets {
		if !slices.Contains(audience, t) {
			audience = append(audience, t)
		}
	}
	claims := jwt.MapClaims{
		"iss": p.issuer, "aud": audience, "azp": g.ClientID, "client_id": g.ClientID, "scope": strings.Join(g.Scopes, " "),
		"iat": now.Unix(), "exp": now.Add(AccessLifetime).Unix(), "jti": uuid.NewString(),
	}
	user, ok := p.users[g.Subject]
	if !ok {
		return "", nil, errors.New("the user of the grant is gone")
	}
	maps.Copy(claims, p.userClaims(user))
	token, err := p.signed(typAccess, claims)
	if err != nil || !slices.Contains(g.Scopes, "openid") {
		return token, nil, err
	}
	idClaims := p.userClaims(user)
	maps.Copy(idClaims, jwt.MapClaims{
		"iss": p.issuer, "aud": g.ClientID, "azp": g.ClientID, "iat": now.Unix(), "exp": now.Add(AccessLifetime).Unix(), "auth_time": g.LoginTime.Unix(),
	})
	if g.Nonce != "" {
		idClaims["nonce"] = g.Nonce
	}
	idToken, err := p.signed("JWT", idClaims)
	return token, map[string]any{"id_token": idToken}, err
}

// userClaims returns the claims that describe a user. Arrays are never null.
func (p *Provider) userClaims(u User) jwt.MapClaims {
	return jwt.MapClaims{
		"sub": p.identity.Users[u.Email], "email": u.Email, "name": u.Name, "org_id": p.identity.Organizations[u.Organization],
		"organization_slug": u.Organization, "roles": u.Roles, "groups": u.Groups,
	}
}

func (p *Provider) signed(typ string, claims jwt.MapClaims) (string, error) {
	t := jwt.NewWithClaims(jwt.SigningMethodRS256, claims)
	t.Header["typ"], t.Header["kid"] = typ, p.kid
	s, err := t.SignedString(p.key)
	if err != nil {
		return "", fmt.Errorf("signing token: %w", err)
	}
	return s, nil
}

// serveUserinfo serves OpenID Connect Core section 5.3: the claims of the bearer of an access token with scope openid.
func (p *Provider) serveUserinfo(w http.ResponseWriter, r *http.Request) {
	values := r.Header.Values("Authorization")
	var scheme, token string
	if len(values) == 1 {
		scheme, token, _ = strings.Cut(values[0], " ")
	}
	if !strings.EqualFold(scheme, "Bearer") || token == "" {
		w.Header().Set("WWW-Authenticate", "Bearer")
		authserver.WriteJSON(w, http.StatusUnauthorized, map[string]string{"error": "invalid_token"})
		return
	}
	claims, ok := p.verify(token)
	if !ok {
		w.Header().Set("WWW-Authenticate", `Bearer error="invalid_token"`)
		authserver.WriteJSON(w, http.StatusUnauthorized, map[string]string{"error": "invalid_token"})
		return
	}
	user, known := p.users[claims.Email]
	if !known || !slices.Contains(strings.Fields(claims.Scope), "openid") {
		w.Header().Set("WWW-Authenticate", `Bearer error="insufficient_scope", scope="openid"`)
		authserver.WriteJSON(w, http.StatusForbidden, map[string]string{"error": "insufficient_scope"})
		return
	}
	authserver.WriteJSON(w, http.StatusOK, p.userClaims(user))
}

type accessClaims struct {
	jwt.RegisteredClaims
	Email string `json:"email"`
	Scope string `json:"scope"`
}

// verify checks one of the provider's own access tokens.
func (p *Provider) verify(token string) (accessClaims, bool) {
	var claims accessClaims
	parser := jwt.NewParser(jwt.WithValidMethods([]string{"RS256"}), jwt.WithIssuer(p.issuer), jwt.WithExpirationRequired(), jwt.WithTimeFunc(p.now), jwt.WithStrictDecoding())
	t, err := parser.ParseWithClaims(token, &claims, func(*jwt.Token) (any, error) { return &p.key.PublicKey, nil })
	if err != nil || t.Header["typ"] != typAccess || t.Header["kid"] != p.kid {
		return accessClaims{}, false
	}
	return claims, true
}
