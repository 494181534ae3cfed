package identities

import (
	"errors"
	"fmt"
	"time"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/durward-gateway/durward/internal/identity/token"
	"github.com/durward-gateway/durward/modules/app"
	"github.com/durward-gateway/durward/modules/app/browsers"
	"github.com/durward-gateway/durward/modules/app/settings"
)

// provisionLogin reads the configuration of the login client; nil when there is none.
func (o *OIDC) provisionLogin() (*browsers.Login, error) {
	if o.LoginClient == "" {
		check, err := settings.ParseConnectCheck(o.ConnectCheck, settings.ConnectByState)
		switch {
		case err != nil:
			return nil, err
		case check == settings.ConnectByLogin:
			return nil, errors.New("connect_check login needs a login_client: users could not log in")
		case o.LoginSecret != "":
			return nil, errors.New("login_secret needs a login_client")
		case o.Assertions:
			return nil, errors.New("id_jag needs a login_client: users who could not log in themselves would be logged in")
		}
		return nil, nil
	}
	login := &browsers.Login{Client: o.LoginClient}
	var err error
	if login.ConnectCheck, err = settings.ParseConnectCheck(o.ConnectCheck, settings.ConnectByLogin); err != nil {
		return nil, err
	}
	if o.LoginSecret != "" {
		if login.Secret, err = settings.ResolveSecret(o.LoginSecret); err != nil {
			return nil, fmt.Errorf("login_client: %w", err)
		}
	}
	return login, nil
}

// bindLogin makes the verifiers of the login client's ID tokens and of identity assertions, which use the same keys as that
// of access tokens.
func (o *OIDC) bindLogin(b app.Binding) error {
	if o.login == nil {
		return nil
	}
	options := token.Options{Issuer: o.Issuer, Algorithms: o.Algorithms, Leeway: time.Duration(o.Leeway)}
	var err error
	if o.login.Verifier, err = token.NewIDVerifier(options, o.login.Client, o.keys, b.Now); err != nil || !o.Assertions {
		return err
	}
	o.login.Assertions, err = token.NewAssertionVerifier(options, b.PublicURL, o.keys, b.Now)
	return err
}

// Login implements app.LoginIdentity.
func (o *OIDC) Login() *browsers.Login { return o.login }

func (o *OIDC) unmarshalLoginClient(d *caddyfile.Dispenser) error {
	arguments := d.RemainingArgs()
	if len(arguments) < 1 || len(arguments) > 2 {
		return d.ArgErr()
	}
	o.LoginClient = arguments[0]
	if len(arguments) == 2 {
		if !settings.IsReference(arguments[1]) {
			return d.Err("login_client takes a reference to its secret, {env.NAME} or {file./path}: a secret written here would be readable on the admin endpoint")
		}
		o.LoginSecret = arguments[1]
	}
	return nil
}
