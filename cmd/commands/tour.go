//go:build !nodev

package commands

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/spf13/cobra"

	"github.com/durward-gateway/durward/cmd/commands/terminal"
	"github.com/durward-gateway/durward/cmd/commands/tour"
	"github.com/durward-gateway/durward/modules/devidp/welcome"
)

func init() {
	caddycmd.RegisterCommand(caddycmd.Command{
		Name:  "tour",
		Usage: "[--url <address>] [--json]",
		Short: "Shows the main job step by step, against a running 'durward dev'",
		Long: `
Runs the main job against a running 'durward dev' and shows what each step took and
what travelled, never a secret: alice logs in with the company's account, agrees to a
client, lists the servers and connects an account at the demo third party. An MCP client
with her token lists and calls tools with that account. A call waits until she agrees,
one of bob's is denied for its arguments, and the administrator reads all of it in the
audit log. An event arrives, the account is disconnected, and the same client is
refused. Then the administrator makes an API key, which gets a streamed completion, is
sent to a small or a large model by a smart one, reaches a limit, shows up in the usage
with what it cost, is revoked and refused.

An account that alice or bob connected before stays as it is; one that the tour
connects is disconnected at its end. The limit is removed; the revoked key stays in the
list of keys.

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
	if o.json {
		return runTour(ctx, gateway, reportJSON(out))
	}
	return tellTour(ctx, out, gateway)
}

func runTour(ctx context.Context, gateway string, report func(tour.Step)) error {
	return tour.Run(ctx, tour.Options{Gateway: gateway, Client: newClient(), Now: time.Now, Report: report})
}

// tellTour runs the tour for people. It prints the duration of each step and the data exchanged, the result, and
// suggestions for next steps.
func tellTour(ctx context.Context, out io.Writer, gateway string) error {
	t, began, passed := terminal.Of(out), time.Now(), 0
	fmt.Fprint(out, t.Hang("", "", "The main job, step by step, at "+gateway)+"\n")
	err := runTour(ctx, gateway, func(s tour.Step) {
		if s.OK {
			passed++
		}
		writeStep(out, t, s)
	})
	took := time.Since(began).Seconds()
	if err != nil {
		fmt.Fprintf(out, "\n%s %d steps passed in %.1f s, and one did not.\n", t.Bad("The tour failed:"), passed, took)
		return err
	}
	fmt.Fprintf(out, "\n%s %d steps in %.1f s.\n\n%s\n", t.Good("Everything works:"), passed, took, t.Bold("What to try next"))
	urlFlag := welcome.URLFlag(gateway)
	for _, next := range []struct{ what, how string }{
		{"look at it in a browser", gateway},
		{"add the demo server to your MCP client", gateway + "/mcp/demo"},
		{"connect alice's account, and leave it so", welcome.Command() + " connect demo --as alice@example.test" + urlFlag},
		{"decide on the calls that wait for you", gateway + "/approvals"},
		{"call the API with a token", welcome.Command() + " token --as admin@example.test" + urlFlag},
	} {
		fmt.Fprintf(out, "  %-42s %s\n", next.what, t.Link(next.how))
	}
	return nil
}

func writeStep(out io.Writer, t terminal.Terminal, s tour.Step) {
	mark := t.Good("✓")
	if !s.OK {
		mark = t.Bad("✗")
	}
	fmt.Fprintf(out, "%s %s  %s\n", mark, t.Bold(s.Title), t.Faint(fmt.Sprintf("(%.0f ms)", s.MS)))
	for _, line := range s.Detail {
		fmt.Fprint(out, t.Hang("    ", "      ", line))
	}
	if !s.OK {
		fmt.Fprint(out, t.Hang("    failed: ", "      ", s.Error)+t.Hang("    what to do: ", "      ", s.Hint))
	}
}

func reportJSON(out io.Writer) func(tour.Step) {
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	return func(s tour.Step) {
		_ = encoder.Encode(s) // a closed output does not end the tour
	}
}
