package app

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/durward-gateway/durward/internal/credential/connection"
	"github.com/durward-gateway/durward/internal/credential/exchange"
	"github.com/durward-gateway/durward/internal/identity/authn/authntest"
	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/storage"
)

// TestReadStatement checks that what a platform says is read anew each time, as far as it may be one.
func TestReadStatement(t *testing.T) {
	path := filepath.Join(t.TempDir(), "statement")
	for content, want := range map[string]string{"a.b.c": "a.b.c", "\na.b.c\n": "a.b.c", strings.Repeat("x", maxStatement): strings.Repeat("x", maxStatement), strings.Repeat("x", maxStatement+1): ""} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := readStatement(path)
		if got.Reveal() != want || (err == nil) != (want != "") {
			t.Errorf("%d bytes become %d: %v", len(content), len(got.Reveal()), err)
		}
	}
	for _, path := range []string{path + "-elsewhere", filepath.Dir(path)} {
		if got, err := readStatement(path); err == nil || !got.Empty() {
			t.Errorf("%s is read", path)
		}
	}
}

// TestOwnToken checks that a token of the gateway's own is asked for without anything of the caller's.
func TestOwnToken(t *testing.T) {
	k := newKeyring(t)
	call, err := k.show(k.issuer.Sign(nil))
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/mcp/payroll", nil) // no proof is read
	for _, provider := range []storage.Provider{storage.ProviderClientCredentials, storage.ProviderWorkloadIdentity} {
		server := &storage.Server{Entry: storage.DirectoryEntry{Provider: provider, RequiresAuth: true}}
		got, err := call.Exchange(r).asking(t.Context(), server)
		if err != nil || got.Server != server || got.OrganizationID != call.Caller.OrganizationID || got.UserID != "" || got.Subject.Proof != nil || got.Subject.ID != "" {
			t.Errorf("%s: %+v, %v", provider, got, err)
		}
	}
}

// TestProof checks that the proof of a caller is the token that was proven, whatever stands in the request by the time that it
// is needed.
func TestProof(t *testing.T) {
	k := newKeyring(t)
	raw := k.issuer.Sign(nil)
	call, err := k.show(raw)
	if err != nil {
		t.Fatal(err)
	}
	ask := func(call *Call, authorization ...string) (exchange.Asking, error) {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/mcp/payroll", nil)
		r.Header["Authorization"] = authorization
		return call.Exchange(r).asking(t.Context(), new(storage.Server))
	}
	for _, scheme := range []string{"Bearer ", "bearer "} {
		got, err := ask(call, scheme+raw)
		if err != nil {
			t.Fatal(err)
		}
		proof, err := got.Subject.Proof(t.Context())
		if err != nil || proof.Reveal() != raw || got.Subject.Issuer != authntest.IssuerID || got.Subject.Type != exchange.AccessToken || got.UserID != k.User.ID || got.OrganizationID != authntest.OrganizationID {
			t.Errorf("%+v, error %v", got, err)
		}
	}
	first, _ := ask(call, "Bearer "+raw)
	second, err := ask(call, "Bearer "+k.issuer.Sign(map[string]any{"jti": "another"}))
	if err != nil || first.Subject.ID == second.Subject.ID {
		t.Errorf("two tokens are one proof, error %v", err)
	}
	for name, authorization := range map[string][]string{
		"nothing": nil, "two": {"Bearer " + raw, "Bearer " + raw}, "another scheme": {"Basic " + raw}, "something else": {"Bearer x"},
		"another user's":   {"Bearer " + k.issuer.Sign(map[string]any{"sub": "bob"})},
		"another client's": {"Bearer " + k.issuer.Sign(map[string]any{"azp": "other"})},
		"for another":      {"Bearer " + k.issuer.Sign(map[string]any{"aud": "other"})},
		"an old one":       {"Bearer " + k.issuer.Sign(map[string]any{"exp": k.issuer.Now() - 3600})},
	} {
		_, err := ask(call, authorization...)
		if said, ok := errors.AsType[*connection.NotConnectedError](err); !ok || !said.NoStep {
			t.Errorf("%s: %v", name, err)
		}
	}
	key, _ := k.Make(nil)
	byKey, err := k.use(key, here)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ask(byKey, "Bearer "+key); !errors.Is(err, connection.ErrNotConnected) {
		t.Errorf("a key: %v", err)
	}
}

// TestOpens checks which tokens open the gateway.
func TestOpens(t *testing.T) {
	k := newKeyring(t)
	k.core.PublicURL = "https://gate.example.com"
	const path = "https://gate.example.com/mcp/payroll"
	for name, c := range map[string]struct {
		token    string
		audience string
		want     bool
	}{
		"the gateway's audience":  {k.issuer.Sign(nil), "payroll", true},
		"an audience beside":      {k.issuer.Sign(map[string]any{"aud": []string{"payroll", authntest.Audience}}), "payroll", true},
		"the address of a server": {k.issuer.Sign(map[string]any{"aud": path}), path, true},
		"another audience":        {k.issuer.Sign(map[string]any{"aud": "payroll"}), "payroll", false},
		"another issuer":          {k.issuer.Sign(map[string]any{"iss": "https://other.example"}), "payroll", false},
		"opaque":                  {"opaque", "payroll", false},
	} {
		if got, err := k.core.opens(t.Context(), seal.NewSecret(c.token), c.audience, ""); got != c.want || err != nil {
			t.Errorf("%s: %v, %v", name, got, err)
		}
		if got, err := k.core.opens(t.Context(), seal.NewSecret(c.token), "", c.audience); got != c.want || err != nil {
			t.Errorf("%s, as resource: %v, %v", name, got, err)
		}
	}
}
