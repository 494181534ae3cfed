package oauth_test

import (
	"net/url"
	"testing"

	"github.com/durward-gateway/durward/internal/credential/oauth"
	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/internal/seal/sealtest"
)

// TestSilent checks L01: types that hold codes, verifiers, secrets and tokens do not show them.
func TestSilent(t *testing.T) {
	secret := seal.NewSecret(sealtest.Canary)
	callback, err := oauth.ParseCallback(url.Values{"state": {"s"}, "code": {sealtest.Canary}})
	if err != nil || callback.Code.Reveal() != sealtest.Canary {
		t.Fatal(callback, err)
	}
	auth := oauth.ClientAuth{ID: "x", Secret: secret}
	exchange := oauth.ExchangeRequest{Client: auth, Code: secret, Verifier: secret}
	sealtest.Silent(t, callback, &callback, exchange, &exchange, auth, oauth.PKCE{Verifier: secret},
		oauth.RefreshRequest{Client: auth, Token: secret}, oauth.RevokeRequest{Client: auth, Access: secret, Refresh: secret},
		oauth.Tokens{Access: secret, Refresh: secret, IDToken: secret})
}
