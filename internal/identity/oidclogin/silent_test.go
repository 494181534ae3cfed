package oidclogin_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/durward-gateway/durward/internal/identity/oidclogin"
	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/internal/seal/sealtest"
)

// TestSilent checks L01: a login that has begun does not show its verifier, and has the form of former versions in
// the cookie.
func TestSilent(t *testing.T) {
	a := oidclogin.Attempt{Issuer: "i", State: "s", Nonce: "n", Verifier: seal.NewSecret(sealtest.Canary), Purpose: oidclogin.Purpose{Return: "/r"}, Expires: time.Unix(1, 0).UTC()}
	sealtest.Silent(t, a, &a)
	plain, err := a.Encode()
	want := `{"issuer":"i","state":"s","nonce":"n","verifier":"` + sealtest.Canary + `","return":"/r","expires":"1970-01-01T00:00:01Z"}`
	if diff := cmp.Diff(want, string(plain)); diff != "" || err != nil {
		t.Error(diff, err)
	}
	back, err := oidclogin.DecodeAttempt(plain)
	if err != nil || back.Verifier.Reveal() != sealtest.Canary || back.Expires != a.Expires {
		t.Error(back, err)
	}
	if _, err := oidclogin.DecodeAttempt([]byte("x")); err == nil {
		t.Error("no JSON is an attempt")
	}
}
