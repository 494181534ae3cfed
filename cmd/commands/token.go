//go:build !nodev

package commands

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/spf13/cobra"

	"github.com/durward-gateway/durward/cmd/commands/login"
	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/modules/devidp/idp"
)

const tokenTimeout = 30 * time.Second

func init() {
	caddycmd.RegisterCommand(caddycmd.Command{
		Name:  "token",
		Usage: "--as <user> [--agent <client>] [--url <address>]",
		Short: "Prints an access token of the development identity provider",
		Long: `
Logs in to the identity provider of a running 'durward dev' and prints the access
token, and nothing else:

	$ TOKEN=$(durward token --as alice@example.test)
	$ curl -H "Authorization: Bearer $TOKEN" http://127.0.0.1:8080/api/servers

The login is the one that agents use, authorization code with PKCE, through the same
pages. The token lives for 15 minutes.

--agent dev-service without --as prints a token that this service has for itself
(client credentials), without a user.
`,
		CobraFunc: func(cmd *cobra.Command) {
			var o tokenOptions
			cmd.Flags().StringVar(&o.user, "as", "", "Email of the user who logs in")
			cmd.Flags().StringVar(&o.agent, "agent", idp.ClientAgent, "OAuth client that asks: "+idp.ClientAgent+", "+idp.ClientConsole+" or "+idp.ClientService)
			cmd.Flags().StringVar(&o.gateway, "url", defaultGateway, "Address of the gateway")
			cmd.Args = cobra.NoArgs
			cmd.RunE = func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context(), cmd.OutOrStdout()) }
		},
	})
}

type tokenOptions struct{ user, agent, gateway string }

func (o tokenOptions) run(ctx context.Context, out io.Writer) error {
	gateway, err := parseGateway(o.gateway)
	if err != nil {
		return err
	}
	if o.user == "" && o.agent != idp.ClientService {
		return errors.New("say who logs in, such as --as alice@example.test")
	}
	ctx, cancel := context.WithTimeout(ctx, tokenTimeout)
	defer cancel()
	provider, err := login.Find(ctx, newClient(), gateway)
	if err != nil {
		return fmt.Errorf("%w; start `durward dev` in another terminal, or say with --url where it is", err)
	}
	token, err := o.login(ctx, provider)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(out, token.Reveal())
	return err
}

func (o tokenOptions) login(ctx context.Context, provider *login.Provider) (seal.Secret, error) {
	as := login.Credentials{ID: o.agent}
	if o.agent == idp.ClientService {
		as.Secret = seal.NewSecret(idp.ServiceSecret)
	}
	if o.user == "" {
		return provider.Client(ctx, as)
	}
	session, err := provider.User(ctx, o.user, as)
	if err != nil {
		return seal.Secret{}, err
	}
	return session.Token, nil
}
