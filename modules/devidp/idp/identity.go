package idp

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"math/big"

	"github.com/google/uuid"

	"github.com/durward-gateway/durward/modules/devidp/statefile"
)

// User is a person who can be picked on the login page.
type User struct {
	Email        string
	Name         string
	Organization string // slug
	Roles        []string
	Groups       []string
}

// Users returns all users: three of organization acme and one of rival.
func Users() []User {
	return []User{
		{Email: "admin@example.test", Name: "Admin", Organization: "acme", Roles: []string{"admin"}, Groups: []string{}},
		{Email: "alice@example.test", Name: "Alice", Organization: "acme", Roles: []string{}, Groups: []string{"engineering"}},
		{Email: "bob@example.test", Name: "Bob", Organization: "acme", Roles: []string{}, Groups: []string{"sales"}},
		{Email: "eve@rival.test", Name: "Eve", Organization: "rival", Roles: []string{"admin"}, Groups: []string{}},
	}
}

// identity holds the parts that stay the same at every address of the provider: its key, and the ids of users and
// organizations.
type identity struct {
	Key           []byte            `json:"key"` // PKCS #8
	Users         map[string]string `json:"users"`
	Organizations map[string]string `json:"organizations"`
}

// Clone implements statefile.Value.
func (i *identity) Clone() *identity {
	c := &identity{Key: i.Key, Users: map[string]string{}, Organizations: map[string]string{}}
	maps.Copy(c.Users, i.Users)
	maps.Copy(c.Organizations, i.Organizations)
	return c
}

// loadIdentity reads the identity at path and adds missing parts.
func loadIdentity(path string) (*identity, *rsa.PrivateKey, error) {
	file, err := statefile.Open(path, &identity{})
	if err != nil {
		return nil, nil, err
	}
	if !file.View().complete() {
		if err := file.Update((*identity).fill); err != nil {
			return nil, nil, err
		}
	}
	parsed, err := x509.ParsePKCS8PrivateKey(file.View().Key)
	if err != nil {
		return nil, nil, fmt.Errorf("reading signing key of %s: %w", path, err)
	}
	key, ok := parsed.(*rsa.PrivateKey)
	if !ok || key.N.BitLen() < 2048 {
		return nil, nil, fmt.Errorf("reading signing key of %s: %w", path, errors.New("not an RSA key of 2048 bits or more"))
	}
	return file.View(), key, nil
}

func (i *identity) complete() bool {
	if len(i.Key) == 0 {
		return false
	}
	for _, u := range Users() {
		if i.Users[u.Email] == "" || i.Organizations[u.Organization] == "" {
			return false
		}
	}
	return true
}

func (i *identity) fill() error {
	if len(i.Key) == 0 {
		key, err := rsa.GenerateKey(rand.Reader, 2048)
		if err != nil {
			return fmt.Errorf("making signing key: %w", err)
		}
		if i.Key, err = x509.MarshalPKCS8PrivateKey(key); err != nil {
			return fmt.Errorf("making signing key: %w", err)
		}
	}
	for _, u := range Users() {
		if err := give(i.Users, u.Email); err != nil {
			return err
		}
		if err := give(i.Organizations, u.Organization); err != nil {
			return err
		}
	}
	return nil
}

// give makes an id for name when it has none.
func give(ids map[string]string, name string) error {
	if ids[name] != "" {
		return nil
	}
	id, err := uuid.NewV7()
	if err != nil {
		return fmt.Errorf("making ids: %w", err)
	}
	ids[name] = id.String()
	return nil
}

// jwk is a public key in the form of RFC 7517; its kid is the thumbprint of RFC 7638.
type jwk struct {
	KeyType   string `json:"kty"`
	Use       string `json:"use"`
	Algorithm string `json:"alg"`
	ID        string `json:"kid"`
	Modulus   string `json:"n"`
	Exponent  string `json:"e"`
}

func publicJWK(key *rsa.PublicKey) jwk {
	n := base64.RawURLEncoding.EncodeToString(key.N.Bytes())
	e := base64.RawURLEncoding.EncodeToString(big.NewInt(int64(key.E)).Bytes())
	thumbprint := sha256.Sum256([]byte(`{"e":"` + e + `","kty":"RSA","n":"` + n + `"}`))
	return jwk{KeyType: "RSA", Use: "sig", Algorithm: "RS256", ID: base64.RawURLEncoding.EncodeToString(thumbprint[:]), Modulus: n, Exponent: e}
}
