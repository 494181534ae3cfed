// Package authntest makes tokens and API keys for tests, with a store that knows their users.
package authntest

import (
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"maps"
	"sync/atomic"
	"testing"
	"time"

	"github.com/durward-gateway/durward/internal/identity/caller"
	"github.com/durward-gateway/durward/internal/identity/token"
)

const (
	// IssuerID is the `iss` of tokens.
	IssuerID = "https://id.example.com"
	// Audience is their `aud`.
	Audience = "https://gate.example.com"
	// OrganizationID is the organization of tokens and keys.
	OrganizationID = "0192f0c1-5bd2-7000-8000-0000000000aa"
)

// Issuer implements authn.Issuer with one key, which can be taken away, and a clock that can be turned.
type Issuer struct {
	// Gone is the key source's error instead of the key.
	Gone error
	// Verdicts counts the tokens that were verified anew.
	Verdicts atomic.Int64

	key      ed25519.PrivateKey
	verifier *token.Verifier
	now      atomic.Int64
}

// NewIssuer makes an issuer whose clock stands at now.
func NewIssuer(t testing.TB, now time.Time) *Issuer {
	t.Helper()
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	i := &Issuer{key: key}
	i.now.Store(now.Unix())
	i.verifier, err = token.NewVerifier(token.Options{Issuer: IssuerID, Audiences: []string{Audience}}, i, func() time.Time { return time.Unix(i.Now(), 0) })
	if err != nil {
		t.Fatal(err)
	}
	return i
}

// Verifier implements authn.Issuer.
func (i *Issuer) Verifier() *token.Verifier { return i.verifier }

// Rules implements authn.Issuer.
func (i *Issuer) Rules() caller.Rules {
	i.Verdicts.Add(1)
	return caller.Rules{Roles: caller.RoleNames{Admin: "admin"}}
}

// Key implements token.KeySource.
func (i *Issuer) Key(context.Context, string, string) (any, error) {
	if i.Gone != nil {
		return nil, i.Gone
	}
	return i.key.Public(), nil
}

// Now returns the issuer's time, in Unix seconds.
func (i *Issuer) Now() int64 { return i.now.Load() }

// Advance turns the issuer's clock.
func (i *Issuer) Advance(seconds int64) { i.now.Add(seconds) }

// Sign makes a token of alice, with changed claims; nil takes one away.
func (i *Issuer) Sign(changed map[string]any) string {
	claims := map[string]any{
		"iss": IssuerID, "sub": "alice", "aud": Audience, "org_id": OrganizationID,
		"iat": i.Now(), "exp": i.Now() + 600, "roles": []string{"admin", "reader"}, "azp": "agent",
	}
	maps.Copy(claims, changed)
	maps.DeleteFunc(claims, func(_ string, claim any) bool { return claim == nil })
	header, _ := json.Marshal(map[string]any{"alg": "EdDSA", "kid": "k"})
	payload, _ := json.Marshal(claims)
	text := base64.RawURLEncoding.EncodeToString(header) + "." + base64.RawURLEncoding.EncodeToString(payload)
	return text + "." + base64.RawURLEncoding.EncodeToString(ed25519.Sign(i.key, []byte(text)))
}
