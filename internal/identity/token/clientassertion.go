package token

import (
	"context"
	"time"

	"github.com/durward-gateway/durward/internal/strictjson"
)

// ClientAssertions verifies the assertions with which a client proves who it is (RFC 7523 section 3). It is safe for
// concurrent use.
type ClientAssertions struct {
	verifier *Verifier
	client   string
}

// ClientAssertion holds an assertion that was verified. It is good once: the caller has to remember its id until it is over.
type ClientAssertion struct {
	ID string // jti; 1 to 255 bytes
	// GoodUntil is the time from which it is refused for its age.
	GoodUntil time.Time
}

// NewClientAssertions returns ClientAssertions of a client, for one of the audiences, signed with one of the keys. They live as
// long as identity assertions.
func NewClientAssertions(client string, audiences []string, keys *ClientKeys, now func() time.Time) (*ClientAssertions, error) {
	v, err := NewVerifier(Options{Issuer: client, Audiences: audiences, AudSingle: true, MaxLifetime: AssertionLifetime + DefaultLeeway}, keys, now)
	if err != nil {
		return nil, err
	}
	v.checkType = checkClientAssertionType
	return &ClientAssertions{verifier: v, client: client}, nil
}

// Verify verifies an assertion. Errors are *Error.
func (c *ClientAssertions) Verify(ctx context.Context, u Unverified) (ClientAssertion, error) {
	claims, err := c.verifier.VerifyParsed(ctx, u, "")
	if err != nil {
		return ClientAssertion{}, err
	}
	jti, _ := claims.Object.Get("jti")
	switch {
	case claims.Subject != c.client: // one that the client made about somebody else
		return ClientAssertion{}, invalid("sub is not the client")
	case jti.Str() == "":
		return ClientAssertion{}, invalid("jti is missing")
	}
	return ClientAssertion{ID: jti.Str(), GoodUntil: c.verifier.GoodUntil(&claims.Vouched)}, nil
}

// checkClientAssertionType refuses a client's JWTs of another type, such as an access token (RFC 8725 section 3.11). The type
// client-authentication+jwt is that of draft-ietf-oauth-rfc7523bis.
func checkClientAssertionType(_ Options, typ string, _ strictjson.Value) error {
	switch typ {
	case "", "jwt", "client-authentication+jwt":
		return nil
	}
	return invalid("typ is not that of a client's assertion")
}
