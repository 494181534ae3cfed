package token

import (
	"strings"
	"time"

	"github.com/durward-gateway/durward/internal/strictjson"
)

// ClaimAuthTime names the claim with the time of a login.
const ClaimAuthTime = "auth_time"

const (
	// maxNumericDate is far beyond every date that a token can have, and far below the limits of time.Duration and
	// other readers.
	maxNumericDate = 1e12
	// maxDateLexeme and maxDateExponent bound the work before maxNumericDate can be checked.
	maxDateLexeme   = 64
	maxDateExponent = 32
)

// numericDate reads a NumericDate (RFC 7519 section 2): seconds since 1970, with a fraction where the issuer writes
// one. The digits are read as they stand and never pass through a float, in which two readers could see different
// times (J13). ok is false when there is none.
func numericDate(payload strictjson.Value, name string) (at time.Time, ok bool, err error) {
	v, ok := payload.Get(name)
	if !ok {
		return time.Time{}, false, nil
	}
	if v.Kind() != strictjson.Number {
		return time.Time{}, false, invalid(name + " is not a number")
	}
	seconds, nanoseconds, ok := readDecimal(string(v.Raw()))
	if !ok {
		return time.Time{}, false, invalid(name + " is out of range")
	}
	return time.Unix(seconds, nanoseconds).UTC(), true, nil
}

// AuthTime returns the time at which the user logged in at the issuer (OpenID Connect Core section 2). It reports false when
// the issuer names none that can be read.
func (c *Claims) AuthTime() (at time.Time, ok bool) {
	at, ok, err := numericDate(c.Object, ClaimAuthTime)
	return at, ok && err == nil
}

// readDecimal reads a JSON number as seconds from 0 to below maxNumericDate. Digits beyond nanoseconds are cut off.
func readDecimal(lexeme string) (seconds, nanoseconds int64, ok bool) {
	if len(lexeme) > maxDateLexeme || strings.HasPrefix(lexeme, "-") {
		return 0, 0, false
	}
	mantissa, exponent := lexeme, 0
	if at := strings.IndexAny(lexeme, "eE"); at >= 0 {
		mantissa = lexeme[:at]
		if exponent, ok = readExponent(lexeme[at+1:]); !ok {
			return 0, 0, false
		}
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits, point := whole+fraction, len(whole)+exponent // the decimal point stands before digits[point]
	digit := func(i int) int64 {
		if i < 0 || i >= len(digits) {
			return 0
		}
		return int64(digits[i] - '0')
	}
	for i := range max(point, 0) {
		if seconds = seconds*10 + digit(i); seconds >= maxNumericDate {
			return 0, 0, false
		}
	}
	for i := range 9 {
		nanoseconds = nanoseconds*10 + digit(point+i)
	}
	return seconds, nanoseconds, true
}

func readExponent(text string) (exponent int, ok bool) {
	digits := strings.TrimLeft(text, "+-")
	for _, c := range digits {
		if exponent = exponent*10 + int(c-'0'); exponent > maxDateExponent {
			return 0, false
		}
	}
	if strings.HasPrefix(text, "-") {
		exponent = -exponent
	}
	return exponent, true
}
