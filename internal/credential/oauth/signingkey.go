package oauth

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/durward-gateway/durward/internal/seal"
)

// clientAssertionType is the client_assertion_type of a JWT (RFC 7523 section 2.2).
const clientAssertionType = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"

// assertionLifetime is the lifetime of a client's assertions: enough for clocks that differ, and too short to be stored.
const assertionLifetime = 2 * time.Minute

// Bounds of RSA keys, in bits.
const (
	minRSABits = 2048
	maxRSABits = 8192
)

// MaxSigningKey is the largest text of a key that ReadSigningKey reads, in bytes. An RSA key of 8192 bits has 6.5 KiB.
const MaxSigningKey = 16 << 10

// SigningKey is the private key of a client that proves who it is by signed assertions (private_key_jwt).
type SigningKey struct {
	id, algorithm string
	pkcs8         seal.Secret // kept encoded: no other type may hold a secret
}

// keyMark begins the encoded form of a key. A client secret has no line break (RFC 6749 appendix A.2). So a key is never
// taken for a secret, whatever an entry says later, and never sent.
const keyMark = AuthPrivateKey + "\n"

// encodedKey is the encoded form of a key, behind keyMark.
type encodedKey struct {
	ID        string `json:"kid,omitempty"`
	Algorithm string `json:"alg"`
	PKCS8     string `json:"pkcs8"`
}

// Encode returns the form in which a key is sealed.
func (k *SigningKey) Encode() (seal.Secret, error) {
	text, err := json.Marshal(encodedKey{k.id, k.algorithm, base64.StdEncoding.EncodeToString([]byte(k.pkcs8.Reveal()))})
	if err != nil {
		return seal.Secret{}, fmt.Errorf("encoding a key: %w", err)
	}
	return seal.NewSecret(keyMark + string(text)), nil
}

// SetCredential gives a client what an administrator stored for it: a secret, or an encoded key.
func (a *ClientAuth) SetCredential(plain seal.Secret) error {
	text, isKey := strings.CutPrefix(plain.Reveal(), keyMark)
	if !isKey {
		a.Secret = plain
		return nil
	}
	var e encodedKey
	if err := json.Unmarshal([]byte(text), &e); err != nil {
		return errors.New("reading a stored key: it is damaged") // the cause repeats parts of it
	}
	der, err := base64.StdEncoding.DecodeString(e.PKCS8)
	if err != nil {
		return errors.New("reading a stored key: it is damaged")
	}
	a.Key = &SigningKey{id: e.ID, algorithm: e.Algorithm, pkcs8: seal.NewSecret(string(der))}
	return nil
}

// ReadSigningKey reads a private key as administrators have it: in PEM (PKCS #8, PKCS #1, SEC 1), or as a JWK (RFC 7517),
// whose kid and alg then stand in the assertions. Errors name no part of a key.
func ReadSigningKey(text seal.Secret) (*SigningKey, error) {
	raw := strings.TrimSpace(text.Reveal())
	if len(raw) > MaxSigningKey {
		return nil, fmt.Errorf("a key has at most %d bytes", MaxSigningKey)
	}
	if strings.HasPrefix(raw, "{") {
		return readJWK([]byte(raw))
	}
	block, rest := pem.Decode([]byte(raw))
	switch {
	case block == nil:
		return nil, errors.New("it is neither PEM nor a JWK")
	case strings.TrimSpace(string(rest)) != "":
		return nil, errors.New("it holds more than one PEM block")
	case block.Type == "PUBLIC KEY" || block.Type == "CERTIFICATE":
		return nil, errors.New("it is public: the private key is needed")
	}
	var key any
	var err error
	switch block.Type {
	case "PRIVATE KEY":
		key, err = x509.ParsePKCS8PrivateKey(block.Bytes)
	case "EC PRIVATE KEY":
		key, err = x509.ParseECPrivateKey(block.Bytes)
	case "RSA PRIVATE KEY":
		key, err = x509.ParsePKCS1PrivateKey(block.Bytes)
	default:
		return nil, errors.New("it is not an unencrypted private key in PEM (PKCS #8, PKCS #1 or SEC 1)")
	}
	if err != nil {
		return nil, errors.New("it cannot be read, or is encrypted")
	}
	return newSigningKey(key, "", "")
}

// newSigningKey returns a key that signs with an algorithm; "": the usual one of its kind.
func newSigningKey(key any, id, algorithm string) (*SigningKey, error) {
	fitting, err := algorithmsOf(key)
	if err != nil {
		return nil, err
	}
	if algorithm == "" {
		algorithm = fitting[0]
	}
	if !slices.Contains(fitting, algorithm) {
		return nil, errors.New("its alg is not one for such a key")
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, errors.New("it cannot be encoded")
	}
	return &SigningKey{id: id, algorithm: algorithm, pkcs8: seal.NewSecret(string(der))}, nil
}

// algorithmsOf lists the algorithms that a key can sign with (RFC 7518 section 3.1), the usual one first.
func algorithmsOf(key any) ([]string, error) {
	switch k := key.(type) {
	case *ecdsa.PrivateKey:
		switch k.Curve {
		case elliptic.P256():
			return []string{"ES256"}, nil
		case elliptic.P384():
			return []string{"ES384"}, nil
		case elliptic.P521():
			return []string{"ES512"}, nil
		}
	case ed25519.PrivateKey:
		return []string{"EdDSA"}, nil
	case *rsa.PrivateKey:
		if bits := k.N.BitLen(); bits < minRSABits || bits > maxRSABits {
			return nil, fmt.Errorf("an RSA key has %d to %d bits", minRSABits, maxRSABits)
		}
		return []string{"RS256", "PS256", "RS384", "PS384", "RS512", "PS512"}, nil
	}
	return nil, errors.New("it is not a key for ES256, ES384, ES512, RS256, PS256 or EdDSA")
}

// assertion returns a new assertion by which the client proves who it is (RFC 7523 section 3). It is good for one audience,
// for minutes, and once.
func (a *ClientAuth) assertion(now time.Time) (seal.Secret, error) {
	if a.Key == nil || a.Audience == "" {
		return seal.Secret{}, fmt.Errorf("%w: the client has no key, or its server no name", ErrUnsupported)
	}
	return a.Key.sign(jwt.MapClaims{
		"iss": a.ID, "sub": a.ID, "aud": a.Audience, "iat": now.Unix(), "exp": now.Add(assertionLifetime).Unix(), "jti": rand.Text(),
	})
}

func (k *SigningKey) sign(claims jwt.MapClaims) (seal.Secret, error) {
	key, err := x509.ParsePKCS8PrivateKey([]byte(k.pkcs8.Reveal()))
	if err != nil {
		return seal.Secret{}, errors.New("signing an assertion: the key is damaged")
	}
	method := jwt.GetSigningMethod(k.algorithm)
	if _, ok := key.(crypto.Signer); !ok || method == nil {
		return seal.Secret{}, errors.New("signing an assertion: the key cannot sign")
	}
	token := jwt.NewWithClaims(method, claims)
	if k.id != "" {
		token.Header["kid"] = k.id
	}
	signed, err := token.SignedString(key)
	if err != nil {
		return seal.Secret{}, errors.New("signing an assertion: the key does not fit its algorithm")
	}
	return seal.NewSecret(signed), nil
}
