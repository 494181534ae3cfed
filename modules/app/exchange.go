package app

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/durward-gateway/durward/internal/credential/connection"
	"github.com/durward-gateway/durward/internal/credential/exchange"
	"github.com/durward-gateway/durward/internal/credential/oauth"
	"github.com/durward-gateway/durward/internal/identity/caller"
	"github.com/durward-gateway/durward/internal/identity/logins"
	"github.com/durward-gateway/durward/internal/identity/token"
	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/modules/app/paths"
	"github.com/durward-gateway/durward/storage"
)

// newExchanger makes the exchanger of a configuration.
func (a *App) newExchanger(core *Core) *exchange.Exchanger {
	return exchange.New(exchange.Options{
		Memory: a.resources.exchanges, OAuth: oauth.New(core.Guard, time.Now), Keyring: core.Keyring, Log: core.Log, Now: time.Now,
		Upstreams: core.Broker, PublicURL: core.PublicURL, LoginClient: core.Logins.Client, Statement: readStatement,
		Known: func(issuer string) bool { return core.Issuers.ByName()[issuer] != nil },
		Opens: core.opens,
		Count: func(e exchange.Event) { core.Metrics.Connections.WithLabelValues(string(e)).Inc() },
	})
}

// maxStatement is the largest statement of a platform that is read, in bytes: it has to fit into a form.
const maxStatement = 16 << 10

// readStatement reads what the platform says about the gateway. Platforms replace the file again and again.
func readStatement(path string) (seal.Secret, error) {
	file, err := os.Open(path)
	if err != nil {
		return seal.Secret{}, err
	}
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, maxStatement+1))
	switch {
	case err != nil:
		return seal.Secret{}, err
	case len(content) > maxStatement:
		return seal.Secret{}, fmt.Errorf("it has more than %d bytes", maxStatement)
	}
	return seal.NewSecret(strings.TrimSpace(string(content))), nil
}

// opens reports whether a token is good at the gateway: anywhere, or on the path of a server, whose address is an audience
// too.
func (c *Core) opens(ctx context.Context, raw seal.Secret, audience, resource string) (bool, error) {
	unverified, err := token.Parse(raw.Reveal())
	if err != nil {
		return false, nil //nolint:nilerr // it is no JWT, which alone are accepted
	}
	name, err := unverified.Issuer()
	issuer, ok := c.Issuers.ByName()[string(name)]
	if err != nil || !ok {
		return false, nil //nolint:nilerr // nobody here accepts it
	}
	at := []string{""}
	for _, target := range []string{audience, resource} {
		if strings.HasPrefix(target, c.PublicURL) {
			at = append(at, target)
		}
	}
	for _, at := range at {
		_, err := issuer.Verifier().Verify(ctx, raw.Reveal(), at)
		if err == nil || !errors.Is(err, token.ErrInvalid) {
			return err == nil, err
		}
	}
	return false, nil
}

// Exchange gets the tokens with which a caller's calls reach servers, where users connect no account.
type Exchange struct {
	call    *Call
	request *http.Request
}

// Exchange returns the exchange of the proof with which the call's caller came. r is the call's request.
func (c *Call) Exchange(r *http.Request) Exchange { return Exchange{c, r} }

// Credential returns the caller's credential for a server, see exchange.Exchanger.
func (x Exchange) Credential(ctx context.Context, server *storage.Server) (connection.Credential, error) {
	asking, err := x.asking(ctx, server)
	if err != nil {
		return connection.Credential{}, err
	}
	return x.call.Core.Exchanger.Credential(ctx, asking)
}

// Rejected handles a server's 401 to a credential, see exchange.Exchanger.
func (x Exchange) Rejected(ctx context.Context, server *storage.Server, used connection.Credential) (connection.Credential, error) {
	asking, err := x.asking(ctx, server)
	if err != nil {
		return connection.Credential{}, err
	}
	return x.call.Core.Exchanger.Rejected(ctx, asking, used)
}

func (x Exchange) asking(ctx context.Context, server *storage.Server) (exchange.Asking, error) {
	who := x.call.Caller
	if connection.KindOf(&server.Entry).ForItself() {
		return exchange.ForItself(server, who.OrganizationID), nil
	}
	asking := exchange.Asking{OrganizationID: who.OrganizationID, UserID: who.UserID, Server: server}
	var err error
	switch {
	case who.Key != nil:
		err = unvouched("an API key proves nobody to the identity provider. Use a client that logs its user in")
	case who.Login != "":
		asking.Subject = x.login()
	default:
		asking.Subject, err = x.token(ctx)
	}
	return asking, err
}

func unvouched(reason string) error {
	return &connection.NotConnectedError{Reason: reason, NoStep: true}
}

// login returns the proof of a caller who logged in at the gateway: the identity provider's ID token for that login.
func (x Exchange) login() exchange.Subject {
	core, organization, id := x.call.Core, x.call.Caller.OrganizationID, x.call.Caller.Login
	return exchange.Subject{
		Issuer: x.call.bearer.IdentityProvider(), ID: id, Type: exchange.IDToken,
		Proof: func(ctx context.Context) (seal.Secret, error) {
			if core.Authorization == nil {
				return seal.Secret{}, unvouched("the gateway has no logins any more. Let your client log in at the identity provider")
			}
			idToken, err := core.Authorization.IDToken(ctx, organization, id)
			switch {
			case errors.Is(err, logins.ErrEnded):
				return idToken, unvouched("the identity provider has ended your login. Log in anew with your client")
			case errors.Is(err, logins.ErrNoIDToken):
				return idToken, unvouched("your login is too old for the identity provider, and it does not renew it. Log in anew with your client")
			case errors.Is(err, logins.ErrAway):
				return idToken, &connection.UnavailableError{Cause: err}
			}
			return idToken, err
		},
	}
}

// token returns the proof of a caller who came with a token of the identity provider: that token. It is read from the
// request, and proven once more: a handler of the operator's may have put another one there.
func (x Exchange) token(ctx context.Context) (exchange.Subject, error) {
	raw, who := bearerToken(x.request.Header), x.call.Caller
	again, err := x.call.Core.Authenticator.Token(ctx, raw.Reveal(), x.resource())
	switch {
	case errors.Is(err, token.ErrInvalid), errors.Is(err, caller.ErrForbidden), errors.Is(err, storage.ErrForeignOrganization):
		return exchange.Subject{}, unvouched("the request has no token of the identity provider")
	case err != nil:
		return exchange.Subject{}, err
	}
	if now := again.Caller(); now.OrganizationID != who.OrganizationID || now.UserID != who.UserID || now.Agent != who.Agent || now.Login != "" {
		return exchange.Subject{}, unvouched("the request has another's token by now")
	}
	digest := sha256.Sum256([]byte(raw.Reveal()))
	return exchange.Subject{
		Issuer: again.IdentityProvider(), ID: string(digest[:]), Type: exchange.AccessToken,
		Proof: func(context.Context) (seal.Secret, error) { return raw, nil },
	}, nil
}

// resource returns the audience that is good on the request's path alone.
func (x Exchange) resource() string {
	if prefix, name, ok := paths.ProxiedName(x.request.URL.Path); ok && prefix == paths.MCPPrefix {
		return x.call.Core.PublicURL + paths.MCPPrefix + name
	}
	return ""
}

// bearerToken returns the token of a request; empty when there is none, or more than one.
func bearerToken(h http.Header) seal.Secret {
	values := h.Values("Authorization")
	if len(values) != 1 {
		return seal.Secret{}
	}
	scheme, raw, _ := strings.Cut(values[0], " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return seal.Secret{}
	}
	return seal.NewSecret(raw)
}
