package oauthflow_test

import (
	"net/url"
	"testing"

	"github.com/durward-gateway/durward/internal/oauthflow"
	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/internal/seal/sealtest"
)

// TestSilent checks L01: types that hold codes, verifiers, secrets and tokens do not show them.
func TestSilent(t *testing.T) {
	secret := seal.NewSecret(sealtest.Canary)
	callback, err := oauthflow.ParseCallback(url.Values{"state": {"s"}, "code": {sealtest.Canary}})
	if err != nil || callback.Code.Reveal() != sealtest.Canary {
		t.Fatal(callback, err)
	}
	auth := oauthflow.ClientAuth{ID: "x", Secret: secret}
	exchange := oauthflow.ExchangeRequest{Client: auth, Code: secret, Verifier: secret}
	sealtest.Silent(t, callback, &callback, exchange, &exchange, auth, oauthflow.PKCE{Verifier: secret},
		oauthflow.RefreshRequest{Client: auth, Token: secret}, oauthflow.RevokeRequest{Client: auth, Access: secret, Refresh: secret},
		oauthflow.Tokens{Access: secret, Refresh: secret, IDToken: secret})
}
