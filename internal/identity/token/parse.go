package token

import (
	"encoding/base64"
	"strings"

	"github.com/durward-gateway/durward/internal/strictjson"
)

// MaxSize is the maximum length of a raw token, in bytes. A longer one is refused.
const MaxSize = 16 << 10

const (
	maxKeyID  = 256 // J09
	maxClaim  = 255 // OpenID Connect Core section 2, of sub; used for jti as well
	maxDepth  = 32
	maxClaims = 1000
)

var encoding = base64.RawURLEncoding.Strict()

// parsed holds a token whose form is right and whose contents are unverified.
type parsed struct {
	header    string // as sent; see Verifier.header
	payload   strictjson.Value
	signed    string // header and payload as sent, over which the signature is made
	signature []byte
}

// parse splits and decodes a token in compact serialization.
func parse(raw string) (parsed, error) {
	var p parsed
	if len(raw) > MaxSize { // before anything is decoded or split (J22, J23, CVE-2025-30204)
		return p, invalid("the token is longer than 16 KiB")
	}
	first, last, err := dots(raw)
	if err != nil {
		return p, err
	}
	if p.payload, err = decodeObject(raw[first+1:last], "payload"); err != nil {
		return p, err
	}
	if p.signature, err = encoding.DecodeString(raw[last+1:]); err != nil {
		return p, invalidBecause("decoding the signature", err)
	}
	if len(p.signature) == 0 {
		return p, invalid("the signature is empty") // J04
	}
	p.header, p.signed = raw[:first], raw[:last]
	return p, nil
}

// dots finds the two dots of a JWS. Line breaks are refused here, because Go's decoder skips them even when it is
// strict, so that one token would have many spellings. The decoder itself refuses everything else outside the
// alphabet of base64url.
func dots(raw string) (first, last int, err error) {
	if strings.IndexByte(raw, '\n') >= 0 || strings.IndexByte(raw, '\r') >= 0 {
		return 0, 0, invalid("a character that is not base64url")
	}
	first, last = strings.IndexByte(raw, '.'), strings.LastIndexByte(raw, '.')
	// Five parts are a JWE, which is not supported: nothing is decompressed or derived (J31).
	if first == last || strings.IndexByte(raw[first+1:last], '.') >= 0 {
		return 0, 0, invalid("not three parts")
	}
	return first, last, nil
}

func decodeObject(part, name string) (strictjson.Value, error) {
	text, err := encoding.DecodeString(part)
	if err != nil {
		return strictjson.Value{}, invalidBecause("decoding the "+name, err)
	}
	v, err := strictjson.Parse(text, strictjson.Limits{MaxBytes: MaxSize, MaxDepth: maxDepth, MaxMembers: maxClaims})
	if err != nil {
		return strictjson.Value{}, invalidBecause("reading the "+name, err)
	}
	if v.Kind() != strictjson.Object {
		return strictjson.Value{}, invalid("the " + name + " is not an object")
	}
	return v, nil
}

// Unverified holds a token that has been parsed but not verified.
type Unverified struct{ parsed }

// Parse parses a token once, both for choosing its Verifier and for verifying it. The header has only been located
// yet. Errors are *Error.
func Parse(raw string) (Unverified, error) {
	p, err := parse(raw)
	return Unverified{p}, err
}

// Issuer returns the iss claim, for choosing the Verifier. Do not base any other decision on it, and do not change
// it.
func (u Unverified) Issuer() ([]byte, error) {
	v, _ := u.payload.Get("iss")
	if issuer := v.View(); len(issuer) > 0 {
		return issuer, nil
	}
	return nil, invalid("iss is not a string")
}

// header holds the members of the JOSE header that matter. Everything else is ignored: jwk, jku, x5u and x5c would
// let the sender choose the key or make us fetch (J08, RFC 8725 section 3.10).
type header struct {
	algorithm string
	keyID     string // "" when absent
	typ       string // lower-cased, without "application/"; "" when absent
}

func readHeader(part string) (header, error) {
	var h header
	v, err := decodeObject(part, "header")
	if err != nil {
		return h, err
	}
	// crit lists extensions that must be understood, and none is supported (RFC 7515 section 4.1.11, J10). b64, zip
	// and enc change the meaning of the bytes.
	for _, name := range [...]string{"crit", "b64", "zip", "enc"} {
		if _, ok := v.Get(name); ok {
			return h, invalid("the header has " + name)
		}
	}
	alg, _ := v.Get("alg")
	if h.algorithm = alg.Str(); h.algorithm == "" { // also when it is not a string
		return h, invalid("alg is not a string")
	}
	if kid, ok := v.Get("kid"); ok {
		if h.keyID = kid.Str(); !opaque(h.keyID, maxKeyID) { // also when it is not a string
			return h, invalid("kid is not a string of 1 to 256 bytes")
		}
	}
	if typ, ok := v.Get("typ"); ok {
		if typ.Str() == "" {
			return h, invalid("typ is not a string")
		}
		// Media type names are case-insensitive and "application/" may be left out (RFC 7515 section 4.1.9).
		h.typ = strings.TrimPrefix(strings.ToLower(typ.Str()), "application/")
	}
	return h, nil
}

// opaque reports whether s can be an identifier: 1 to limit bytes without control characters. For some programs that
// will store or print it a NUL ends the string (J19). Nothing else is checked, and nothing is trimmed or case-folded.
func opaque[T string | []byte](s T, limit int) bool {
	if len(s) == 0 || len(s) > limit {
		return false
	}
	for i := range len(s) {
		if s[i] < 0x20 || s[i] == 0x7f {
			return false
		}
	}
	return true
}
