package token

import (
	"context"
	"time"

	"github.com/durward-gateway/durward/internal/strictjson"
)

// AssertionLifetime is the longest lifetime of an identity assertion. The tolerance for clocks comes on top of it: some
// issuers date their tokens back.
const AssertionLifetime = 5 * time.Minute

// Assertion holds the claims of a verified identity assertion: an Identity Assertion JWT Authorization Grant, or ID-JAG.
type Assertion struct {
	*Claims
	// ID is its jti.
	ID string
	// Client is the OAuth client for which the issuer made it: an id at its audience, not at the issuer.
	Client string
	// Resources lists the protected resources for which it is; nil when it names none.
	Resources []string
	// GoodUntil is the time from which it is refused.
	GoodUntil time.Time
}

// AssertionVerifier verifies the identity assertions of one issuer for one authorization server
// (draft-ietf-oauth-identity-assertion-authz-grant-04, sections 3.1 and 4.4.1). Every other JWT of the issuer is refused
// here, and an assertion is refused everywhere else. It is safe for concurrent use.
type AssertionVerifier struct{ verifier *Verifier }

// NewAssertionVerifier returns an AssertionVerifier of assertions for an audience. Of options it uses the issuer, the
// algorithms and the leeway. now may be nil.
func NewAssertionVerifier(options Options, audience string, keys KeySource, now func() time.Time) (*AssertionVerifier, error) {
	v, err := NewVerifier(Options{
		Issuer: options.Issuer, Audiences: []string{audience}, AudSingle: true, Algorithms: options.Algorithms, Leeway: options.Leeway,
		MaxLifetime: AssertionLifetime + orDefault(options.Leeway, DefaultLeeway),
	}, keys, now)
	if err != nil {
		return nil, err
	}
	v.checkType = checkAssertionType
	return &AssertionVerifier{v}, nil
}

// Verify returns the claims of an assertion when all checks pass. Errors are *Error. Whether it was used before is not
// checked.
func (a *AssertionVerifier) Verify(ctx context.Context, u Unverified) (*Assertion, error) {
	c, err := a.verifier.VerifyParsed(ctx, u, "")
	if err != nil {
		return nil, err
	}
	made := &Assertion{Claims: c, GoodUntil: a.verifier.GoodUntil(&c.Vouched)}
	if c.IssuedAt.IsZero() {
		return nil, invalid("iat is missing")
	}
	id, ok := c.Object.Get("jti") // its form was checked
	if !ok {
		return nil, invalid("jti is missing")
	}
	client, _ := c.Object.Get("client_id")
	if made.ID, made.Client = id.Str(), client.Str(); !opaque(made.Client, maxClaim) { // also when it is not a string
		return nil, invalid("client_id is not a string of 1 to 255 bytes")
	}
	// These claims narrow the grant in ways that nobody here checks. Without them it would be wider than its issuer meant:
	// a grant that is bound to a key would become one for whoever holds it.
	for _, name := range [...]string{"cnf", "authorization_details"} {
		if _, ok := c.Object.Get(name); ok {
			return nil, invalid("the assertion has " + name + ", which is not supported")
		}
	}
	if made.Resources, err = resources(c.Object); err != nil {
		return nil, err
	}
	return made, nil
}

// resources reads the claim resource: a string, or an array of strings.
func resources(payload strictjson.Value) ([]string, error) {
	claim, ok := payload.Get("resource")
	if !ok {
		return nil, nil
	}
	members := []strictjson.Value{claim}
	if claim.Kind() == strictjson.Array {
		members = claim.Elems()
	}
	names := make([]string, 0, len(members))
	for _, member := range members {
		if member.Str() == "" { // also when it is not a string
			return nil, invalid("resource is neither a string nor an array of strings")
		}
		names = append(names, member.Str())
	}
	if len(names) == 0 {
		return nil, invalid("resource is empty")
	}
	return names, nil
}

// checkAssertionType refuses all other JWTs of an issuer (RFC 8725 section 3.11): an ID token or an access token that
// somebody got for another purpose logs nobody in.
func checkAssertionType(_ Options, typ string, _ strictjson.Value) error {
	if typ != "oauth-id-jag+jwt" {
		return invalid("typ is not oauth-id-jag+jwt")
	}
	return nil
}
