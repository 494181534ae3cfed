package oidclogin

import (
	"context"
	"errors"
	"fmt"

	"github.com/durward-gateway/durward/internal/credential/oauth"
	"github.com/durward-gateway/durward/internal/identity/caller"
	"github.com/durward-gateway/durward/internal/identity/token"
	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/internal/strictjson"
)

// maxClaims bounds an ID token's claims and those of userinfo together.
const maxClaims = 64 << 10

// complete adds claims from userinfo that an ID token leaves out: many providers keep all but the subject there
// (OpenID Connect Core section 5.4). Userinfo is not asked when nothing is missing. When only details are missing, a
// provider that cannot be asked is no reason to refuse a login.
func (p *Provider) complete(ctx context.Context, claims *token.Claims, d oauth.Discovery, access seal.Secret) (*token.Claims, error) {
	if p.Lacks == nil || d.UserinfoEndpoint == "" {
		return claims, nil
	}
	lack := p.Lacks(claims)
	if lack == caller.LacksNothing {
		return claims, nil
	}
	more, err := p.OAuth.Userinfo(ctx, d.UserinfoEndpoint, access)
	if err == nil {
		return merge(claims, more)
	}
	if lack == caller.LacksDetail {
		p.Log.Warn("userinfo cannot be read; the login goes on without what it would have added", "issuer", p.Issuer, "error", err)
		return claims, nil
	}
	return nil, fmt.Errorf("%w: userinfo: %w", ErrProvider, err)
}

// merge adds the members of userinfo that the ID token does not have. Claims of the ID token stay: it is signed, and
// for this login. Userinfo of another subject belongs to another user, whose claims must not be used (OpenID Connect
// Core section 5.3.2).
func merge(claims *token.Claims, more strictjson.Value) (*token.Claims, error) {
	sub, _ := claims.Object.Get("sub")
	if other, _ := more.Get("sub"); other.Kind() != strictjson.String || !other.Is(sub.Str()) {
		return nil, fmt.Errorf("%w: userinfo is another user's", ErrAnswer)
	}
	text := claims.Object.AppendWithout(nil, func([]byte) bool { return false })
	added := more.AppendWithout(nil, func(name []byte) bool {
		_, has := claims.Object.Get(string(name))
		return has || protocolClaim(string(name))
	})
	if len(added) > len("{}") { // the ID token has members in any case
		text = append(append(text[:len(text)-1], ','), added[1:]...)
	}
	whole, err := strictjson.Parse(text, strictjson.Limits{MaxBytes: maxClaims, MaxDepth: 33, MaxMembers: 2_000})
	if err != nil {
		return nil, errors.Join(ErrProvider, errors.New("userinfo is too much"))
	}
	completed := *claims
	completed.Object = whole
	return &completed, nil
}

// protocolClaim reports whether a claim describes the ID token itself, about which userinfo has no say.
func protocolClaim(name string) bool {
	switch name {
	case "iss", "sub", "aud", "exp", "iat", "nbf", "jti", "azp", "client_id", "cid", "nonce", "auth_time", "acr", "amr", "at_hash", "c_hash", "s_hash", "typ", "token_use", "events",
		"gty", "grant_type", "idtyp":
		return true
	}
	return false
}
