package token

import (
	"context"
	"crypto/subtle"
	"slices"
	"strings"
	"time"

	"github.com/durward-gateway/durward/internal/strictjson"
)

// IDVerifier verifies the ID tokens of one issuer for one client (OpenID Connect Core section 2), which end a login.
// An access token is refused here, and a Verifier refuses an ID token that is marked as one. It is safe for
// concurrent use.
type IDVerifier struct {
	verifier *Verifier
	client   string
}

// NewIDVerifier returns an IDVerifier of tokens for client. Of options it uses the issuer, the algorithms and the
// leeway: the lifetime of an ID token does not matter, because it is checked only once. now may be nil.
func NewIDVerifier(options Options, client string, keys KeySource, now func() time.Time) (*IDVerifier, error) {
	v, err := NewVerifier(Options{
		Issuer: options.Issuer, Audiences: []string{client}, Algorithms: options.Algorithms, Leeway: options.Leeway, MaxLifetime: -1,
	}, keys, now)
	if err != nil {
		return nil, err
	}
	v.checkType = checkIDType
	return &IDVerifier{verifier: v, client: client}, nil
}

// Verify returns the claims of raw when all checks pass and the token answers the login for which nonce was made
// (OpenID Connect Core section 3.1.3.7). Errors are *Error.
func (i *IDVerifier) Verify(ctx context.Context, raw, nonce string) (*Claims, error) {
	c, err := i.verify(ctx, raw)
	if err != nil {
		return nil, err
	}
	got, _ := c.Object.Get("nonce")
	if nonce == "" || subtle.ConstantTimeCompare([]byte(got.Str()), []byte(nonce)) != 1 {
		return nil, invalid("nonce is not that of this login")
	}
	return c, nil
}

// ErrOtherUser says that a good ID token names another user than that of the login which it renews. It is an ErrInvalid.
var ErrOtherUser = invalid("sub is not that of the login")

// VerifyRenewed returns the claims of raw, which came with the refresh of a login of the user with that subject, when all
// checks pass (OpenID Connect Core section 12.2). Errors are *Error; ErrOtherUser when all but the subject is good.
func (i *IDVerifier) VerifyRenewed(ctx context.Context, raw, subject string) (*Claims, error) {
	c, err := i.verify(ctx, raw)
	if err != nil {
		return nil, err
	}
	if c.Subject != subject {
		return nil, ErrOtherUser
	}
	return c, nil
}

func (i *IDVerifier) verify(ctx context.Context, raw string) (*Claims, error) {
	c, err := i.verifier.Verify(ctx, raw, "")
	if err != nil {
		return nil, err
	}
	if c.IssuedAt.IsZero() {
		return nil, invalid("iat is missing")
	}
	azp, named := c.Object.Get("azp")
	aud, _ := c.Object.Get("aud")
	members, err := audiences(aud)
	if err != nil {
		return nil, err
	}
	switch {
	case named && !azp.Is(i.client):
		return nil, invalid("azp is another client")
	case !named && slices.ContainsFunc(members, func(a strictjson.Value) bool { return !a.Is(i.client) }):
		return nil, invalid("aud names others too, and azp is missing")
	}
	return c, nil
}

// checkIDType refuses other JWTs that an issuer may make for the same audience: access tokens (RFC 9068), logout
// tokens and security events.
func checkIDType(_ Options, typ string, payload strictjson.Value) error {
	if typ != "" && typ != "jwt" {
		return invalid("typ is not that of an ID token")
	}
	if _, ok := payload.Get("events"); ok {
		return invalid("the token has events, which ID tokens do not")
	}
	if use, ok := payload.Get("token_use"); ok && !use.Is("id") { // Cognito
		return invalid("token_use is not id")
	}
	if kind, ok := payload.Get("typ"); ok && !strings.EqualFold(kind.Str(), "ID") && !strings.EqualFold(kind.Str(), "JWT") { // Keycloak
		return invalid("the claim typ is not that of an ID token")
	}
	return nil
}
