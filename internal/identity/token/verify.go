package token

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/durward-gateway/durward/internal/strictjson"
)

// Defaults of Options.
const (
	DefaultLeeway      = 30 * time.Second
	DefaultMaxLifetime = 24 * time.Hour
)

// Options describes which tokens of one issuer are accepted. For the durations, zero means the default and a negative
// value switches the check (or the tolerance) off.
type Options struct {
	// Issuer is compared with iss byte by byte, without normalization (RFC 8725 section 3.8). Required.
	Issuer string
	// Audiences lists the values of aud that are accepted for every request. At least one is required, unless
	// AnyAudience is set.
	Audiences []string
	// AnyAudience accepts tokens for every audience and tokens without one.
	AnyAudience bool
	// AudSingle refuses tokens that are also meant for another audience.
	AudSingle bool
	// Algorithms lists the accepted values of alg: RS, PS and ES with 256, 384 or 512, EdDSA. Default
	// DefaultAlgorithms.
	Algorithms []string
	// Leeway is the tolerance for the difference between clocks. Default DefaultLeeway.
	Leeway time.Duration
	// MaxLifetime bounds exp - iat, and the time left until exp when there is no iat. Default DefaultMaxLifetime.
	MaxLifetime time.Duration
	// MaxTokenAge bounds now - iat, and demands iat. Default off.
	MaxTokenAge time.Duration
	// RequireTyp accepts only the type of RFC 9068: at+jwt. Without it, JWT and an absent typ are accepted too.
	RequireTyp bool
}

// KeySource finds the key that a token names.
type KeySource interface {
	// Key returns the public key (*rsa.PublicKey, *ecdsa.PublicKey or ed25519.PublicKey) that kid names and alg fits.
	// An empty kid asks for the only key that fits. Errors are *Error: ErrInvalid when there is no such key,
	// ErrUnavailable when this cannot be found out now.
	Key(ctx context.Context, kid, alg string) (any, error)
}

// Verifier verifies the tokens of one issuer. It is safe for concurrent use.
type Verifier struct {
	options    Options
	algorithms map[string]algorithm
	keys       KeySource
	now        func() time.Time
	// known is the header of the last good token: an issuer writes the same into every token.
	known atomic.Pointer[knownHeader]
	// checkType refuses JWTs of the issuer that have another purpose: see checkAccessType.
	checkType func(o Options, typ string, payload strictjson.Value) error
}

// knownHeader holds a header with its text as it was sent.
type knownHeader struct {
	text string
	header
}

// NewVerifier returns a Verifier that takes keys from keys; now may be nil. It fails when options contradict themselves.
func NewVerifier(options Options, keys KeySource, now func() time.Time) (*Verifier, error) {
	if now == nil {
		now = time.Now
	}
	if options.Issuer == "" {
		return nil, errors.New("an issuer is needed")
	}
	if len(options.Audiences) == 0 && !options.AnyAudience {
		return nil, errors.New("an audience is needed; that any is good must be said")
	}
	if slices.Contains(options.Audiences, "") {
		return nil, errors.New("an audience is empty")
	}
	if keys == nil {
		return nil, errors.New("a source of keys is needed")
	}
	options.Audiences = slices.Clone(options.Audiences)
	options.Leeway = orDefault(options.Leeway, DefaultLeeway)
	options.MaxLifetime = orDefault(options.MaxLifetime, DefaultMaxLifetime)
	options.MaxTokenAge = orDefault(options.MaxTokenAge, 0)
	names := options.Algorithms
	if len(names) == 0 {
		names = DefaultAlgorithms()
	}
	v := &Verifier{options: options, algorithms: make(map[string]algorithm, len(names)), keys: keys, now: now, checkType: checkAccessType}
	for _, name := range names {
		a, ok := algorithmNamed(name)
		if !ok {
			return nil, fmt.Errorf("algorithm %q is not supported: use RS, PS or ES with 256, 384 or 512, or EdDSA", name)
		}
		v.algorithms[name] = a
	}
	return v, nil
}

// orDefault reads a duration of Options. In its result zero means off.
func orDefault(d, standard time.Duration) time.Duration {
	switch {
	case d < 0:
		return 0
	case d == 0:
		return standard
	default:
		return d
	}
}

// Verify returns the claims of raw when all checks pass. resource is one more audience that is accepted for this
// request ("" for none): the address of the protected resource that the request is for (RFC 8707). Errors are *Error.
func (v *Verifier) Verify(ctx context.Context, raw, resource string) (*Claims, error) {
	u, err := Parse(raw)
	if err != nil {
		return nil, err
	}
	return v.VerifyParsed(ctx, u, resource)
}

// VerifyParsed verifies a token like Verify, after Parse.
func (v *Verifier) VerifyParsed(ctx context.Context, u Unverified, resource string) (*Claims, error) {
	p := u.parsed
	var h header
	known := v.known.Load()
	repeated := known != nil && known.text == p.header
	if repeated {
		h = known.header
	} else {
		var err error
		if h, err = readHeader(p.header); err != nil {
			return nil, err
		}
	}
	alg, ok := v.algorithms[h.algorithm]
	if !ok {
		return nil, invalid("the algorithm is not accepted")
	}
	if err := v.checkType(v.options, h.typ, p.payload); err != nil {
		return nil, err
	}
	claims, err := v.readClaims(p.payload, resource)
	if err != nil {
		return nil, err
	}
	key, err := v.keys.Key(ctx, h.keyID, h.algorithm)
	if err != nil {
		return nil, err
	}
	// A key source is trusted to know keys, not algorithms: one key, one algorithm (J06).
	if !alg.fits(key) {
		return nil, invalid("the key is not one for the algorithm")
	}
	if err := alg.method.Verify(p.signed, p.signature, key); err != nil {
		return nil, invalidBecause("verifying the signature", err)
	}
	if !repeated { // only now: a token that anybody can make leaves nothing here
		v.known.Store(&knownHeader{strings.Clone(p.header), h})
	}
	claims.keyID, claims.algorithm, claims.key = h.keyID, h.algorithm, key
	return claims, nil
}

// Recheck checks whether a token that this verifier accepted earlier is still good: it has not expired, and the key
// that verified it is still the issuer's. A cache of verified tokens must call it at every hit; that also keeps a
// KeySet up to date, which is refreshed by use (J26, J30). It costs a fraction of Verify. Errors are *Error. The
// audience is not checked again: it must be part of the cache's key.
func (v *Verifier) Recheck(ctx context.Context, c *Vouched) error {
	now := v.now()
	if !now.Before(v.GoodUntil(c)) {
		return over("the token has expired")
	}
	if v.options.MaxTokenAge > 0 && now.Sub(c.IssuedAt) > v.options.MaxTokenAge+v.options.Leeway {
		return over("the token is too old")
	}
	key, err := v.keys.Key(ctx, c.keyID, c.algorithm)
	if err != nil {
		return err
	}
	if !sameKey(c.key, key) {
		return over("the key has been replaced")
	}
	return nil
}

// GoodUntil returns the time at which the verifier stops accepting a token with these claims: its expiry plus the
// leeway. Everything that was opened under the token ends then (W07).
func (v *Verifier) GoodUntil(c *Vouched) time.Time { return c.ExpiresAt.Add(v.options.Leeway) }

// checkAccessType refuses other JWTs of the same issuer (RFC 8725 section 3.11, J11). It decides by typ where the
// issuer sets it, and else by the claims that providers put into ID tokens, refresh tokens and security events.
func checkAccessType(o Options, typ string, payload strictjson.Value) error {
	switch typ {
	case "at+jwt":
	case "", "jwt":
		if o.RequireTyp {
			return invalid("typ is not at+jwt")
		}
	default:
		return invalid("typ is not that of an access token")
	}
	for _, name := range [...]string{"at_hash", "c_hash", "s_hash", "events"} {
		if _, ok := payload.Get(name); ok {
			return invalid("the token has " + name + ", which access tokens do not")
		}
	}
	if use, ok := payload.Get("token_use"); ok && !use.Is("access") { // Cognito
		return invalid("token_use is not access")
	}
	if kind, ok := payload.Get("typ"); ok { // Keycloak: Bearer and DPoP as against ID, Refresh, Offline, Logout, ...
		switch strings.ToLower(kind.Str()) {
		case "bearer", "dpop", "access", "access_token", "at+jwt", "jwt":
		default:
			return invalid("the claim typ is not that of an access token")
		}
	}
	return nil
}

// readClaims checks every claim that RFC 9068 section 4 gives a meaning.
func (v *Verifier) readClaims(payload strictjson.Value, resource string) (*Claims, error) {
	c := &Claims{Object: payload}
	iss, _ := payload.Get("iss")
	if !iss.Is(v.options.Issuer) {
		return nil, invalid("iss is not the issuer's")
	}
	c.Issuer = v.options.Issuer
	sub, _ := payload.Get("sub")
	if c.Subject = sub.Str(); !opaque(c.Subject, maxClaim) { // also when it is not a string
		return nil, invalid("sub is not a string of 1 to 255 bytes")
	}
	if jti, ok := payload.Get("jti"); ok && !opaque(jti.View(), maxClaim) {
		return nil, invalid("jti is not a string of 1 to 255 bytes")
	}
	if err := v.readTimes(c); err != nil {
		return nil, err
	}
	if err := v.readAudience(c, resource); err != nil {
		return nil, err
	}
	return c, nil
}

func (v *Verifier) readTimes(c *Claims) error {
	now := v.now()
	exp, ok, err := numericDate(c.Object, "exp")
	if err != nil {
		return err
	}
	if !ok {
		return invalid("exp is missing")
	}
	iat, issued, err := numericDate(c.Object, "iat") // the zero time when absent
	if err != nil {
		return err
	}
	nbf, _, err := numericDate(c.Object, "nbf") // the zero time when absent
	if err != nil {
		return err
	}
	leeway, longest, oldest := v.options.Leeway, v.options.MaxLifetime, v.options.MaxTokenAge
	switch {
	case !now.Before(exp.Add(leeway)):
		return over("the token has expired")
	case nbf.After(now.Add(leeway)):
		return invalid("the token is not valid yet")
	case iat.After(now.Add(leeway)):
		return invalid("the token was issued in the future")
	case iat.After(exp):
		return invalid("the token expired before it was issued")
	case longest > 0 && issued && exp.Sub(iat) > longest:
		return invalid("the token lives too long")
	case longest > 0 && exp.Sub(now) > longest+leeway: // whatever iat says, if present (J15)
		return invalid("the token lives too long")
	case oldest > 0 && !issued:
		return invalid("iat is missing")
	case oldest > 0 && now.Sub(iat) > oldest+leeway:
		return over("the token is too old")
	}
	c.ExpiresAt = exp
	if issued {
		c.IssuedAt = iat
	}
	return nil
}

// readAudience checks that one member of aud equals, byte by byte, one of our audiences (J17).
func (v *Verifier) readAudience(c *Claims, resource string) error {
	aud, ok := c.Object.Get("aud")
	switch {
	case !ok && v.options.AnyAudience && !v.options.AudSingle:
		return nil
	case !ok:
		return invalid("aud is missing")
	}
	members, err := audiences(aud)
	if err != nil {
		return err
	}
	if v.options.AudSingle && len(members) != 1 {
		return invalid("aud has not exactly one member")
	}
	if v.options.AnyAudience {
		return nil
	}
	for _, a := range members {
		if slices.ContainsFunc(v.options.Audiences, a.Is) || (resource != "" && a.Is(resource)) {
			return nil
		}
	}
	return invalid("aud does not name the gateway")
}

// audiences returns the members of aud, all of them strings.
func audiences(aud strictjson.Value) ([]strictjson.Value, error) {
	switch aud.Kind() {
	case strictjson.String:
		return []strictjson.Value{aud}, nil
	case strictjson.Array:
		members := aud.Elems()
		for _, m := range members {
			if m.Kind() != strictjson.String {
				return nil, invalid("aud has a member that is not a string")
			}
		}
		return members, nil
	}
	return nil, invalid("aud is neither a string nor an array")
}

// KeysStanding returns what the key source knows of its keys, as KeySet.Standing does. ok is false for a source whose keys
// are known from the start.
func (v *Verifier) KeysStanding() (fetched time.Time, failure error, ok bool) { //nolint:revive // the error is a fact, and not of this call
	source, ok := v.keys.(interface{ Standing() (time.Time, error) })
	if !ok {
		return time.Time{}, nil, false
	}
	fetched, failure = source.Standing()
	return fetched, failure, true
}
