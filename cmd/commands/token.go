//go:build !nodev

package commands

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/spf13/cobra"

	"github.com/durward-gateway/durward/cmd/commands/login"
	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/modules/devidp/clients"
)

const tokenTimeout = 30 * time.Second

func init() {
	caddycmd.RegisterCommand(caddycmd.Command{
		Name:  "token",
		Usage: "--as <user> [--agent <client>] [--url <address>]",
		Short: "Prints an access token of a running 'durward dev'",
		Long: `
Logs in at the gateway of a running 'durward dev' and prints its access token, and
nothing else:

	$ TOKEN=$(durward token --as alice@example.test)
	$ curl -H "Authorization: Bearer $TOKEN" http://127.0.0.1:8080/api/servers

The login is the one of MCP clients, authorization code with PKCE, through the same
pages: the gateway sends the user to the development identity provider, which is
what a company's is, and asks whether the client may act for them. The token lives
for 15 minutes.

--agent dev-service without --as prints a token that this service has for itself
(client credentials), without a user.
`,
		CobraFunc: func(cmd *cobra.Command) {
			var o tokenOptions
			cmd.Flags().StringVar(&o.user, "as", "", "Email of the user who logs in")
			cmd.Flags().StringVar(&o.agent, "agent", clients.Agent, "OAuth client that asks: "+clients.Agent+", "+clients.Console+" or "+clients.Service)
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
	switch machine := o.agent == clients.Service; {
	case o.user == "" && !machine:
		return errors.New("say who logs in, such as --as alice@example.test")
	case o.user != "" && machine:
		return fmt.Errorf("%s is an agent without a person: nobody logs in with it, so leave --as out", clients.Service)
	}
	ctx, cancel := context.WithTimeout(ctx, tokenTimeout)
	defer cancel()
	found, err := login.Find(ctx, newClient(), gateway)
	unreachable := (*login.UnreachableError)(nil)
	switch {
	case errors.As(err, &unreachable), errors.Is(err, login.ErrNotDevelopment):
		return fmt.Errorf("%w; start `durward dev` in another terminal, or say with --url where it is", err)
	case err != nil:
		return err
	}
	token, err := o.login(ctx, found)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(out, token.Reveal())
	return err
}

func (o tokenOptions) login(ctx context.Context, gateway *login.Gateway) (seal.Secret, error) {
	if o.agent == clients.Service {
		token, err := gateway.Machine(ctx, clients.ServiceID, seal.NewSecret(clients.ServiceSecret))
		if err != nil {
			err = fmt.Errorf("%w; `durward dev --reset` makes %s and its credential anew", err, clients.Service)
		}
		return token, err
	}
	session, err := gateway.User(ctx, o.user, o.agent)
	if known := knownAgents(); err != nil && !slices.Contains(known, o.agent) {
		err = fmt.Errorf("%w; the agents of development mode are %s", err, strings.Join(known, ", "))
	}
	if err != nil {
		return seal.Secret{}, err
	}
	return session.Token, nil
}

// knownAgents lists the clients of development mode.
func knownAgents() (ids []string) {
	for _, c := range clients.Users() {
		ids = append(ids, c.ID)
	}
	return append(ids, clients.Machine().ID)
}
