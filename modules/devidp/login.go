package devidp

import (
	"github.com/durward-gateway/durward/internal/identity/token"
	"github.com/durward-gateway/durward/modules/app"
	"github.com/durward-gateway/durward/modules/app/browsers"
	"github.com/durward-gateway/durward/modules/app/settings"
	"github.com/durward-gateway/durward/modules/devidp/idp"
)

// bindLogin makes the gateway's client at the provider, as a login_client is.
func (i *Identity) bindLogin(keys token.KeySource, b app.Binding) (*browsers.Login, error) {
	check, err := settings.ParseConnectCheck(i.ConnectCheck, settings.ConnectByState)
	if err != nil {
		return nil, err
	}
	verifier, err := token.NewIDVerifier(token.Options{
		Issuer: i.surroundings.provider.Issuer(), Algorithms: []string{"RS256"},
	}, idp.Client, keys, b.Now)
	if err != nil {
		return nil, err
	}
	return &browsers.Login{Client: idp.Client, Secret: i.surroundings.provider.Secret(), Verifier: verifier, ConnectCheck: check}, nil
}

// Login implements app.LoginIdentity.
func (i *Identity) Login() *browsers.Login { return i.login }
