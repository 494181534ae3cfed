package oauth

import (
	"encoding/base64"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/internal/strictjson"
)

// Assertion holds what somebody else's signed statement says of itself, unverified. It decides to whom the statement may be
// shown, never who somebody is.
type Assertion struct {
	Type      string // of the header
	Audience  []string
	ExpiresAt time.Time
	resources []string // nil: it has no such claim
}

// ReadAssertion reads a JWT (RFC 7519). Errors are ErrMalformed, and show nothing of it.
func ReadAssertion(raw seal.Secret) (Assertion, error) {
	parts := strings.Split(raw.Reveal(), ".")
	if len(parts) != 3 || len(raw.Reveal()) > maxToken {
		return Assertion{}, fmt.Errorf("%w: the assertion is not a signed JWT", ErrMalformed)
	}
	header, err := jwtPart(parts[0])
	if err != nil {
		return Assertion{}, err
	}
	claims, err := jwtPart(parts[1])
	if err != nil {
		return Assertion{}, err
	}
	var a Assertion
	if a.Type, err = text(header, "typ"); err != nil {
		return Assertion{}, err
	}
	if a.Audience, err = oneOrMore(claims, "aud"); err != nil {
		return Assertion{}, err
	}
	if a.resources, err = oneOrMore(claims, "resource"); err != nil {
		return Assertion{}, err
	}
	exp, ok := claims.Get("exp")
	seconds, isNumber := number(exp)
	if !ok || !isNumber || exp.Kind() != strictjson.Number || seconds <= 0 || seconds > maxTime {
		return Assertion{}, fmt.Errorf("%w: the assertion has no end", ErrMalformed)
	}
	a.ExpiresAt = time.Unix(int64(math.Floor(seconds)), 0).UTC()
	return a, nil
}

func jwtPart(part string) (strictjson.Value, error) {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(part)
	if err != nil {
		return strictjson.Value{}, fmt.Errorf("%w: the assertion is not a signed JWT", ErrMalformed)
	}
	v, err := strictjson.Parse(raw, jsonLimits)
	if err != nil || v.Kind() != strictjson.Object {
		return strictjson.Value{}, fmt.Errorf("%w: the assertion is not a signed JWT", ErrMalformed)
	}
	return v, nil
}

// oneOrMore reads a claim that is a text or a list of texts; nil when it is absent.
func oneOrMore(v strictjson.Value, name string) ([]string, error) {
	m, ok := v.Get(name)
	if !ok {
		return nil, nil
	}
	if m.Kind() == strictjson.String {
		return []string{m.Str()}, nil
	}
	list, _, err := texts(v, name)
	if err == nil && list == nil {
		list = []string{}
	}
	return list, err
}
