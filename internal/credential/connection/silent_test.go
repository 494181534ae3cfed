package connection

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/durward-gateway/durward/internal/credential/oauth"
	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/internal/seal/sealtest"
)

// TestSilent checks L01: values that hold a credential, or secrets for redeeming one, do not show it.
func TestSilent(t *testing.T) {
	secret := seal.NewSecret(sealtest.Canary)
	g := grant{ID: "i", Access: secret, Refresh: secret, Key: secret, Username: secret, Password: secret}
	made := attempt{Verifier: secret, Answer: secret}
	sealtest.Silent(t, g, &g, made, &made, refresher{grant: g, got: &oauth.Tokens{Access: secret, Refresh: secret}},
		exchange{request: oauth.ExchangeRequest{Code: secret, Verifier: secret}}, held{cred: Credential{value: secret}},
		Credential{value: secret}, ConnectRequest{APIKey: secret, BearerToken: secret, Username: secret, Password: secret})
}

// TestSealedForms reads and writes sealed rows in the form of former versions.
func TestSealedForms(t *testing.T) {
	const sealedGrant = `{"id":"i","access_token":"a","refresh_token":"r","asked":"s","key":"k","username":"u","password":"p","forced":true,"unusable":true}`
	const sealedAttempt = `{"verifier":"v","redirect_uri":"r","return_url":"b","client_id":"c","origin":"o","resource":"s","scope":"p","answer":"code=x"}`
	g, err := decodeGrant([]byte(sealedGrant))
	if err != nil {
		t.Fatal(err)
	}
	made, err := decodeAttempt([]byte(sealedAttempt))
	if err != nil {
		t.Fatal(err)
	}
	for want, encode := range map[string]func() ([]byte, error){
		sealedGrant: g.encode, sealedAttempt: made.encode,
		`{"id":""}`: grant{}.encode, `{"verifier":"","redirect_uri":"","client_id":"","origin":"","resource":""}`: attempt{}.encode,
	} {
		got, err := encode()
		if diff := cmp.Diff(want, string(got)); diff != "" || err != nil {
			t.Error(diff, err)
		}
	}
	if _, err := decodeGrant([]byte("x")); err == nil {
		t.Error("no JSON is a grant")
	}
	if _, err := decodeAttempt([]byte("x")); err == nil {
		t.Error("no JSON is an attempt")
	}
}
