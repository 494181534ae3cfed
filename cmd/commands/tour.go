package commands

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/spf13/cobra"

	"github.com/durward-gateway/durward/cmd/commands/tour"
)

func init() {
	caddycmd.RegisterCommand(caddycmd.Command{
		Name:  "tour",
		Usage: "[--url <address>] [--json]",
		Short: "Shows the main job step by step, against a running 'durward dev'",
		Long: `
Runs the main job against a running 'durward dev' and shows what each step took and
what travelled, never a secret: alice logs in, lists the servers, connects an account
at the demo third party, an MCP client with her token lists and calls tools with that
account. A call waits until she agrees, one of bob's is denied for its arguments, and
the administrator reads all of it in the audit log. An event arrives, the account is
disconnected, and the same client is refused. Then the administrator makes an API key,
which gets a streamed completion, is sent to a small or a large model by a smart one,
reaches a limit, shows up in the usage with what it cost, is revoked and refused.

It uses what alice and bob have on that gateway: alice's account is disconnected at
the end, also when it was connected before; bob's stays connected. The limit is
removed; the revoked key stays in the list of keys.

The exit code is 1 when a step fails. With --json every step is one JSON object on
one line: step, ok, ms, detail, and error and hint when it failed.
`,
		CobraFunc: func(cmd *cobra.Command) {
			var o tourOptions
			cmd.Flags().StringVar(&o.gateway, "url", defaultGateway, "Address of the gateway")
			cmd.Flags().BoolVar(&o.json, "json", false, "One JSON object per step")
			cmd.Args = cobra.NoArgs
			cmd.RunE = func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context(), cmd.OutOrStdout()) }
		},
	})
}

type tourOptions struct {
	gateway string
	json    bool
}

func (o tourOptions) run(ctx context.Context, out io.Writer) error {
	gateway, err := parseGateway(o.gateway)
	if err != nil {
		return err
	}
	report := reportText(out)
	if o.json {
		report = reportJSON(out)
	}
	return runTour(ctx, gateway, report)
}

func runTour(ctx context.Context, gateway string, report func(tour.Step)) error {
	return tour.Run(ctx, tour.Options{Gateway: gateway, Client: newClient(), Now: time.Now, Report: report})
}

func reportText(out io.Writer) func(tour.Step) {
	return func(s tour.Step) {
		mark := "✓"
		if !s.OK {
			mark = "✗"
		}
		fmt.Fprintf(out, "%s %s  (%.0f ms)\n", mark, s.Title, s.MS)
		for _, line := range s.Detail {
			fmt.Fprintf(out, "    %s\n", line)
		}
		if !s.OK {
			fmt.Fprintf(out, "    failed: %s\n    what to do: %s\n", s.Error, s.Hint)
		}
	}
}

func reportJSON(out io.Writer) func(tour.Step) {
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	return func(s tour.Step) {
		_ = encoder.Encode(s) // a reader that has gone does not end the tour
	}
}
