package token

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"slices"

	"github.com/durward-gateway/durward/internal/strictjson"
)

// MaxClientKeys is the largest number of keys that a client may have at a time.
const MaxClientKeys = 5

// maxClientKeys bounds a client's key set, in bytes. Five RSA keys of 8192 bits take 7 KiB.
const maxClientKeys = 16 << 10

// ClientKeys holds the public keys with which a client signs. It is a KeySource, and is safe for concurrent use.
type ClientKeys struct{ keys keyList }

// ReadClientKeys reads a JWK set (RFC 7517 section 5). Other than in a fetched set, one bad key is an error: somebody
// waits for the answer, and would find out only later that the key is not there. Errors name no part of a key.
func ReadClientKeys(set strictjson.Value) (*ClientKeys, error) {
	list, _ := set.Get("keys")
	switch {
	case len(set.Raw()) > maxClientKeys:
		return nil, fmt.Errorf("a key set has at most %d bytes", maxClientKeys)
	case list.Kind() != strictjson.Array || list.Len() == 0 || list.Len() > MaxClientKeys:
		return nil, fmt.Errorf("keys must be an array of 1 to %d keys", MaxClientKeys)
	}
	c := new(ClientKeys)
	for i, v := range list.Elems() {
		k, err := clientKey(v)
		if err == nil && slices.ContainsFunc(c.keys, func(other jwk) bool { return sameKey(other.public, k.public) }) {
			err = errors.New("it is there twice")
		}
		if err == nil && k.id != "" && slices.ContainsFunc(c.keys, func(other jwk) bool { return other.id == k.id }) {
			err = errors.New("another key has the same kid")
		}
		if err != nil {
			return nil, fmt.Errorf("key %d: %w", i, err)
		}
		c.keys = append(c.keys, k)
	}
	return c, nil
}

// clientKey reads one key, with which an assertion can be verified.
func clientKey(v strictjson.Value) (jwk, error) {
	// Members of private and symmetric keys (RFC 7518 sections 6.2.2, 6.3.2 and 6.4): whoever sends them should learn of it.
	for _, private := range [...]string{"d", "p", "q", "dp", "dq", "qi", "oth", "k"} {
		if _, ok := v.Get(private); ok {
			return jwk{}, errors.New("it has a private member: send the public key alone")
		}
	}
	k, err := parseKey(v)
	if err != nil {
		return jwk{}, err
	}
	if !slices.ContainsFunc(DefaultAlgorithms(), func(name string) bool {
		a, ok := algorithmNamed(name)
		return ok && a.fits(k.public) && (k.algorithm == "" || k.algorithm == name)
	}) {
		return jwk{}, errors.New("none of the accepted algorithms is for it: ES256, ES384, RS256, PS256, EdDSA")
	}
	return k, nil
}

// Key implements KeySource.
func (c *ClientKeys) Key(_ context.Context, kid, alg string) (any, error) {
	return answer(c.keys.find(kid, alg))
}

// Document returns the set as a JSON object with the members that matter. ReadClientKeys reads it back.
func (c *ClientKeys) Document() (string, error) {
	set := make([]map[string]string, 0, len(c.keys))
	for _, k := range c.keys {
		members := publicMembers(k.public)
		if k.id != "" {
			members["kid"] = k.id
		}
		if k.algorithm != "" {
			members["alg"] = k.algorithm
		}
		set = append(set, members)
	}
	text, err := json.Marshal(map[string]any{"keys": set})
	if err != nil {
		return "", fmt.Errorf("writing a key set: %w", err)
	}
	return string(text), nil
}

// Thumbprints returns the SHA-256 thumbprint of each key (RFC 7638).
func (c *ClientKeys) Thumbprints() ([]string, error) {
	prints := make([]string, 0, len(c.keys))
	for _, k := range c.keys {
		text, err := json.Marshal(publicMembers(k.public)) // sorted by name, and of base64url, as section 3.3 wants them
		if err != nil {
			return nil, fmt.Errorf("writing a key: %w", err)
		}
		sum := sha256.Sum256(text)
		prints = append(prints, encoding.EncodeToString(sum[:]))
	}
	return prints, nil
}

// publicMembers returns the members that make up a public key (RFC 7638 section 3.2, RFC 8037 section 2).
func publicMembers(key crypto.PublicKey) map[string]string {
	text := base64.RawURLEncoding.EncodeToString
	switch k := key.(type) {
	case *rsa.PublicKey:
		return map[string]string{"kty": "RSA", "n": text(k.N.Bytes()), "e": text(big.NewInt(int64(k.E)).Bytes())}
	case *ecdsa.PublicKey:
		point, err := k.Bytes() // a 4, then x and y at full length
		if err != nil {
			return nil
		}
		half := (len(point)-1)/2 + 1
		return map[string]string{"kty": "EC", "crv": k.Curve.Params().Name, "x": text(point[1:half]), "y": text(point[half:])}
	case ed25519.PublicKey:
		return map[string]string{"kty": "OKP", "crv": "Ed25519", "x": text(k)}
	}
	return nil
}
