package token

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"encoding/base64"
	"errors"
	"fmt"
	"math/big"
	"slices"

	"github.com/durward-gateway/durward/internal/strictjson"
)

// Bounds of a JWKS document.
const (
	maxDocument = 1 << 20 // bytes; of discovery documents too
	maxKeys     = 256
)

// jwk holds one usable public key.
type jwk struct {
	id        string // "" when the document gives none
	algorithm string // the only algorithm the key is for, or ""
	public    crypto.PublicKey
}

// keyList holds the usable keys of one document. It is never changed once made.
type keyList []jwk

// errAmbiguous says that several keys fit and nothing tells them apart.
var errAmbiguous = errors.New("several keys fit")

// find returns the key that kid names and alg fits; a nil key when there is none. Two different keys with one kid are
// told apart by their algorithm (some providers publish an RSA and an EC key under one kid). When that does not tell
// them apart, neither is used. A token without kid is good only when exactly one key fits.
func (l keyList) find(kid, alg string) (crypto.PublicKey, error) {
	a, ok := algorithmNamed(alg)
	if !ok {
		return nil, nil
	}
	var found crypto.PublicKey
	for _, k := range l {
		if kid != "" && k.id != kid || k.algorithm != "" && k.algorithm != alg || !a.fits(k.public) {
			continue
		}
		if found != nil && !sameKey(found, k.public) {
			return nil, errAmbiguous
		}
		found = k.public
	}
	return found, nil
}

// sameKey compares keys, by identity first: Equal takes apart big numbers, and this runs for every request.
func sameKey(a, b crypto.PublicKey) bool {
	switch a := a.(type) {
	case *rsa.PublicKey:
		if b, ok := b.(*rsa.PublicKey); ok && a == b {
			return true
		}
	case *ecdsa.PublicKey:
		if b, ok := b.(*ecdsa.PublicKey); ok && a == b {
			return true
		}
	}
	k, ok := a.(interface{ Equal(crypto.PublicKey) bool })
	return ok && k.Equal(b)
}

// parseKeys reads a JWKS document (RFC 7517 section 5). Unusable keys are left out, as section 5 demands; skipped
// holds one reason for each. An error means that the document as a whole is no JWKS.
func parseKeys(document []byte) (keys keyList, skipped []string, err error) {
	root, err := strictjson.Parse(document, strictjson.Limits{MaxBytes: maxDocument, MaxDepth: maxDepth})
	if err != nil {
		return nil, nil, fmt.Errorf("reading the key set: %w", err)
	}
	list, _ := root.Get("keys")
	if list.Kind() != strictjson.Array {
		return nil, nil, errors.New("reading the key set: keys is not an array")
	}
	if list.Len() > maxKeys {
		return nil, nil, fmt.Errorf("reading the key set: %d keys, at most %d accepted", list.Len(), maxKeys)
	}
	for i, v := range list.Elems() {
		k, err := parseKey(v)
		if err != nil {
			skipped = append(skipped, fmt.Sprintf("key %d: %v", i, err))
			continue
		}
		keys = append(keys, k)
	}
	return keys, skipped, nil
}

func parseKey(v strictjson.Value) (jwk, error) {
	var k jwk
	if v.Kind() != strictjson.Object {
		return k, errors.New("not an object")
	}
	if _, ok := v.Get("d"); ok { // the private key is public: anybody can sign with it
		return k, errors.New("it is a private key")
	}
	if use, ok := v.Get("use"); ok && !use.Is("sig") {
		return k, errors.New("use is not sig")
	}
	if ops, ok := v.Get("key_ops"); ok && !slices.ContainsFunc(ops.Elems(), func(op strictjson.Value) bool { return op.Is("verify") }) {
		return k, errors.New("key_ops does not have verify")
	}
	if kid, ok := v.Get("kid"); ok {
		if k.id = kid.Str(); !opaque(k.id, maxKeyID) { // also when it is not a string
			return k, errors.New("kid is not a string of 1 to 256 bytes")
		}
	}
	public, err := publicKey(v)
	if err != nil {
		return k, err
	}
	k.public = public
	if alg, ok := v.Get("alg"); ok {
		a, known := algorithmNamed(alg.Str())
		if !known || !a.fits(public) {
			return k, errors.New("alg is not supported or not one for the key")
		}
		k.algorithm = alg.Str()
	}
	return k, nil
}

// publicKey reads the key material: RFC 7518 section 6, RFC 8037 section 2. Symmetric keys (oct) are refused,
// whatever their kid is (J29).
func publicKey(v strictjson.Value) (crypto.PublicKey, error) {
	kty, _ := v.Get("kty")
	crv, _ := v.Get("crv")
	var key crypto.PublicKey
	var err error
	switch {
	case kty.Is("RSA"):
		key, err = rsaKey(v)
	case kty.Is("EC"):
		key, err = ecKey(v, crv.Str())
	case kty.Is("OKP") && crv.Is("Ed25519"):
		var x []byte
		x, err = material(v, "x", ed25519.PublicKeySize)
		key = ed25519.PublicKey(x)
	default:
		return nil, errors.New("kty or crv is not supported")
	}
	if err != nil {
		return nil, err
	}
	if err := checkKey(key); err != nil {
		return nil, err
	}
	return key, nil
}

func rsaKey(v strictjson.Value) (*rsa.PublicKey, error) {
	n, err := material(v, "n", maxRSABits/8+1)
	if err != nil {
		return nil, err
	}
	e, err := material(v, "e", 4)
	if err != nil {
		return nil, err
	}
	exponent := new(big.Int).SetBytes(e).Int64()
	if exponent > 1<<31-1 { // before int, which may have 32 bits
		return nil, errors.New("RSA exponent is too large")
	}
	return &rsa.PublicKey{N: new(big.Int).SetBytes(n), E: int(exponent)}, nil
}

func ecKey(v strictjson.Value, crv string) (*ecdsa.PublicKey, error) {
	var curve elliptic.Curve
	switch crv {
	case "P-256":
		curve = elliptic.P256()
	case "P-384":
		curve = elliptic.P384()
	case "P-521":
		curve = elliptic.P521()
	default:
		return nil, errors.New("crv is not supported")
	}
	size := (curve.Params().BitSize + 7) / 8
	point := []byte{4} // uncompressed, SEC 1 section 2.3.4
	for _, name := range [...]string{"x", "y"} {
		c, err := material(v, name, size)
		if err != nil {
			return nil, err
		}
		// RFC 7518 section 6.2.1.2 demands full length; some providers strip leading zeros.
		point = append(point, make([]byte, size-len(c))...)
		point = append(point, c...)
	}
	key, err := ecdsa.ParseUncompressedPublicKey(curve, point) // refuses points that are not on the curve
	if err != nil {
		return nil, fmt.Errorf("reading the EC point: %w", err)
	}
	return key, nil
}

// material decodes a base64url member of 1 to limit bytes.
func material(v strictjson.Value, name string, limit int) ([]byte, error) {
	m, _ := v.Get(name)
	if m.Kind() != strictjson.String {
		return nil, fmt.Errorf("%s is not a string", name)
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(m.Str())
	if err != nil {
		return nil, fmt.Errorf("decoding %s: %w", name, err)
	}
	if len(b) == 0 || len(b) > limit {
		return nil, fmt.Errorf("%s is of %d bytes, want 1 to %d", name, len(b), limit)
	}
	return b, nil
}
