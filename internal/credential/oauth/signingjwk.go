package oauth

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"encoding/base64"
	"errors"
	"math/big"

	"github.com/durward-gateway/durward/internal/strictjson"
)

var errJWK = errors.New("it is not a private JWK (RFC 7517) of type EC, RSA or OKP")

// maxKeyID bounds a kid, in bytes.
const maxKeyID = 255

// readJWK reads a private key from a JWK (RFC 7518 sections 6.2.2 and 6.3.2, RFC 8037 section 2).
func readJWK(raw []byte) (*SigningKey, error) {
	v, err := strictjson.Parse(raw, jsonLimits)
	if err != nil || v.Kind() != strictjson.Object {
		return nil, errors.New("it is not JSON") // the parser's error may repeat a part
	}
	kind, id, algorithm := member(v, "kty"), member(v, "kid"), member(v, "alg")
	if !printable(id, maxKeyID) {
		return nil, errors.New("its kid is too long, or has other characters than visible ASCII")
	}
	if m, ok := v.Get("d"); !ok || m.Str() == "" {
		return nil, errors.New("it has no member d: the private key is needed")
	}
	var key any
	switch kind {
	case "EC":
		key, err = ecKey(v)
	case "RSA":
		key, err = rsaKey(v)
	case "OKP":
		key, err = edKey(v)
	default:
		err = errJWK
	}
	if err != nil {
		return nil, err
	}
	return newSigningKey(key, id, algorithm)
}

// member returns a text of a JWK; "" when it is absent or something else.
func member(v strictjson.Value, name string) string {
	m, _ := v.Get(name)
	return m.Str()
}

// bytesOf returns a member that is base64url; nil when it is not.
func bytesOf(v strictjson.Value, name string) []byte {
	b, err := base64.RawURLEncoding.Strict().DecodeString(member(v, name))
	if err != nil {
		return nil
	}
	return b
}

func ecKey(v strictjson.Value) (*ecdsa.PrivateKey, error) {
	curves := map[string]elliptic.Curve{"P-256": elliptic.P256(), "P-384": elliptic.P384(), "P-521": elliptic.P521()}
	curve := curves[member(v, "crv")]
	if curve == nil {
		return nil, errJWK
	}
	key, err := ecdsa.ParseRawPrivateKey(curve, bytesOf(v, "d"))
	if err != nil {
		return nil, errJWK
	}
	point, err := key.PublicKey.Bytes()
	// The server has the public half: nobody would accept the signatures of a key with another one.
	if err != nil || string(point[1:]) != string(bytesOf(v, "x"))+string(bytesOf(v, "y")) {
		return nil, errors.New("its private half does not belong to its public half")
	}
	return key, nil
}

func rsaKey(v strictjson.Value) (*rsa.PrivateKey, error) {
	number := func(name string) *big.Int { return new(big.Int).SetBytes(bytesOf(v, name)) }
	e := number("e")
	p, q := number("p"), number("q")
	if !e.IsInt64() || e.Int64() > 1<<31-1 || p.Sign() == 0 || q.Sign() == 0 || len(bytesOf(v, "n")) > maxRSABits/8 {
		return nil, errors.New("an RSA key needs n, e, d, p and q")
	}
	key := &rsa.PrivateKey{PublicKey: rsa.PublicKey{N: number("n"), E: int(e.Int64())}, D: number("d"), Primes: []*big.Int{p, q}}
	if err := key.Validate(); err != nil {
		return nil, errors.New("its private half does not belong to its public half")
	}
	key.Precompute()
	return key, nil
}

func edKey(v strictjson.Value) (ed25519.PrivateKey, error) {
	seed := bytesOf(v, "d")
	if member(v, "crv") != "Ed25519" || len(seed) != ed25519.SeedSize {
		return nil, errJWK
	}
	key := ed25519.NewKeyFromSeed(seed)
	if public, ok := key.Public().(ed25519.PublicKey); !ok || string(public) != string(bytesOf(v, "x")) {
		return nil, errors.New("its private half does not belong to its public half")
	}
	return key, nil
}
