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
	"github.com/durward-gateway/durward/cmd/commands/terminal"
	"github.com/durward-gateway/durward/cmd/commands/tour"
	"github.com/durward-gateway/durward/modules/devidp/welcome"
)

const connectTimeout = 30 * time.Second

func init() {
	caddycmd.RegisterCommand(caddycmd.Command{
		Name:  "connect",
		Usage: "<server> --as <user> [--account <name>] [--url <address>]",
		Short: "Connects a user's account to a server of a running 'durward dev'",
		Long: `
Connects the account of a user of development mode to a server, such as demo, as that
user would in a browser: it logs in, agrees on the demo third party's page, and comes
back. MCP clients of that user can call the server then.

	$ durward connect demo --as alice@example.test
`,
		CobraFunc: func(cmd *cobra.Command) {
			var o connectOptions
			cmd.Flags().StringVar(&o.user, "as", "", "Email of the user whose account it is")
			cmd.Flags().StringVar(&o.account, "account", "", "Name of the account at the third party (default: the one that it suggests)")
			cmd.Flags().StringVar(&o.gateway, "url", defaultGateway, "Address of the gateway")
			cmd.Args = func(_ *cobra.Command, arguments []string) error {
				if len(arguments) != 1 {
					return errors.New("name one server, such as `durward connect demo --as alice@example.test`")
				}
				return nil
			}
			cmd.RunE = func(cmd *cobra.Command, arguments []string) error {
				return o.run(cmd.Context(), cmd.OutOrStdout(), arguments[0])
			}
		},
	})
}

type connectOptions struct{ user, account, gateway string }

func (o connectOptions) run(ctx context.Context, out io.Writer, server string) error {
	gateway, err := parseGateway(o.gateway)
	if err != nil {
		return err
	}
	if o.user == "" {
		return errors.New("say whose account it is, such as --as alice@example.test")
	}
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	t := terminal.Of(out)
	account, err := tour.Connect(ctx, tour.Options{Gateway: gateway, Client: newClient(), Now: time.Now}, server, o.user, o.account)
	switch {
	case errors.Is(err, tour.ErrConnected):
		fmt.Fprintf(out, "%s is connected for %s already.\n", server, o.user)
		return nil
	case err != nil:
		err = fmt.Errorf("connecting %s for %s: %w", server, o.user, err)
		if unreachable := (*login.UnreachableError)(nil); errors.As(err, &unreachable) {
			err = fmt.Errorf("%w; `%s dev` must be running, at the address that --url names", err, welcome.Command())
		}
		return err
	}
	fmt.Fprintf(out, "%s %s is connected for %s, as %s.\nAdd it to an MCP client: %s\n", t.Good("✓"), server, o.user, account, t.Link(gateway+"/mcp/"+server))
	return nil
}
