package token

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	_ "crypto/sha512" // ES384 and ES512 ask for it by number
	"errors"
	"fmt"
	"math/big"

	"github.com/golang-jwt/jwt/v5"
)

// Bounds of RSA keys, in bits. The lower one is that of NIST SP 800-131A; the upper one bounds the work of a
// verification.
const (
	minRSABits = 2048
	maxRSABits = 8192
)

// DefaultAlgorithms returns the algorithms that are accepted when the operator names none.
func DefaultAlgorithms() []string { return []string{"RS256", "PS256", "ES256", "ES384", "EdDSA"} }

// family names the kind of key that an algorithm takes.
type family int

const (
	familyRSA family = iota + 1
	familyEC
	familyEd25519
)

type algorithm struct {
	// method verifies a signature over signed, with a key that fits.
	method interface {
		Verify(signed string, signature []byte, key any) error
	}
	family family
	curve  elliptic.Curve // of familyEC
}

// algorithmNamed returns a supported algorithm. HS* and "none" are not in the table and so cannot be switched on: a
// symmetric algorithm would turn the published key into a signing key (J05). Names are compared exactly (J04).
func algorithmNamed(name string) (algorithm, bool) {
	switch name {
	case "RS256":
		return algorithm{jwt.SigningMethodRS256, familyRSA, nil}, true
	case "RS384":
		return algorithm{jwt.SigningMethodRS384, familyRSA, nil}, true
	case "RS512":
		return algorithm{jwt.SigningMethodRS512, familyRSA, nil}, true
	case "PS256":
		return algorithm{jwt.SigningMethodPS256, familyRSA, nil}, true
	case "PS384":
		return algorithm{jwt.SigningMethodPS384, familyRSA, nil}, true
	case "PS512":
		return algorithm{jwt.SigningMethodPS512, familyRSA, nil}, true
	case "ES256":
		return algorithm{jwt.SigningMethodES256, familyEC, elliptic.P256()}, true
	case "ES384":
		return algorithm{jwt.SigningMethodES384, familyEC, elliptic.P384()}, true
	case "ES512":
		return algorithm{jwt.SigningMethodES512, familyEC, elliptic.P521()}, true
	case "EdDSA":
		return algorithm{jwt.SigningMethodEdDSA, familyEd25519, nil}, true
	}
	return algorithm{}, false
}

// fits reports whether key has the type and curve for which the algorithm is defined (RFC 7518 section 3). The
// methods themselves do not check the curve.
func (a algorithm) fits(key crypto.PublicKey) bool {
	switch k := key.(type) {
	case *rsa.PublicKey:
		return a.family == familyRSA
	case *ecdsa.PublicKey:
		return a.family == familyEC && k.Curve == a.curve
	case ed25519.PublicKey:
		return a.family == familyEd25519
	}
	return false
}

// checkKey refuses keys with which a signature proves nothing (J07).
func checkKey(key crypto.PublicKey) error {
	switch k := key.(type) {
	case *rsa.PublicKey:
		return checkRSA(k)
	case *ecdsa.PublicKey:
		if k == nil || k.Curve == nil {
			return errors.New("empty EC key")
		}
		switch k.Curve {
		case elliptic.P256(), elliptic.P384(), elliptic.P521():
		default:
			return errors.New("EC key on a curve that is not supported")
		}
		if _, err := k.ECDH(); err != nil { // checks that the point is on the curve and not at infinity
			return fmt.Errorf("checking the EC point: %w", err)
		}
		return nil
	case ed25519.PublicKey:
		return checkEd25519(k)
	}
	return fmt.Errorf("keys of type %T are not supported", key)
}

func checkRSA(k *rsa.PublicKey) error {
	switch {
	case k == nil || k.N == nil:
		return errors.New("empty RSA key")
	case k.N.Sign() <= 0 || k.N.Bit(0) == 0:
		return errors.New("RSA modulus is not odd and positive")
	case k.N.BitLen() < minRSABits:
		return fmt.Errorf("RSA key of %d bits, at least %d needed", k.N.BitLen(), minRSABits)
	case k.N.BitLen() > maxRSABits:
		return fmt.Errorf("RSA key of %d bits, at most %d accepted", k.N.BitLen(), maxRSABits)
	case k.E < 3 || k.E&1 == 0 || int64(k.E) > 1<<31-1:
		return errors.New("RSA exponent is not an odd number from 3 to 2^31-1")
	}
	return nil
}

// smallOrder lists the y coordinates, little-endian and without the sign bit, of the points of small order on
// edwards25519, including the two non-canonical spellings. Anybody can make signatures for such a key.
var smallOrder = [...][32]byte{
	{}, // y = 0, order 4: the all-zero key
	{1},
	fieldElement(-1), fieldElement(0), fieldElement(1), // p-1, p, p+1
	{0x26, 0xe8, 0x95, 0x8f, 0xc2, 0xb2, 0x27, 0xb0, 0x45, 0xc3, 0xf4, 0x89, 0xf2, 0xef, 0x98, 0xf0,
		0xd5, 0xdf, 0xac, 0x05, 0xd3, 0xc6, 0x33, 0x39, 0xb1, 0x38, 0x02, 0x88, 0x6d, 0x53, 0xfc, 0x05},
	{0xc7, 0x17, 0x6a, 0x70, 0x3d, 0x4d, 0xd8, 0x4f, 0xba, 0x3c, 0x0b, 0x76, 0x0d, 0x10, 0x67, 0x0f,
		0x2a, 0x20, 0x53, 0xfa, 0x2c, 0x39, 0xcc, 0xc6, 0x4e, 0xc7, 0xfd, 0x77, 0x92, 0xac, 0x03, 0x7a},
}

// fieldElement returns 2^255 - 19 + offset as 32 little-endian bytes.
func fieldElement(offset int64) [32]byte {
	p := new(big.Int).Lsh(big.NewInt(1), 255)
	p.Add(p, big.NewInt(offset-19))
	var out [32]byte
	for i, b := range p.FillBytes(make([]byte, 32)) {
		out[31-i] = b
	}
	return out
}

func checkEd25519(k ed25519.PublicKey) error {
	if len(k) != ed25519.PublicKeySize {
		return fmt.Errorf("Ed25519 key of %d bytes, want %d", len(k), ed25519.PublicKeySize)
	}
	y := [32]byte(k)
	y[31] &= 0x7f
	for _, bad := range smallOrder {
		if y == bad {
			return errors.New("Ed25519 key of small order")
		}
	}
	return nil
}
