// Package health has the command that asks a running gateway whether it serves, for health checks of containers in which
// there is no other program.
package health

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/spf13/cobra"
)

// defaultAddress is the health checks' own site in caddyfile/edge.caddyfile.
const defaultAddress = "http://127.0.0.1:8081/healthz"

// maxAnswer bounds the part of an answer that is shown.
const maxAnswer = 1 << 10

func init() {
	caddycmd.RegisterCommand(caddycmd.Command{
		Name:  "health",
		Usage: "[--address <url>] [--timeout <duration>]",
		Short: "Asks a running gateway whether it serves",
		Long: `
Asks /healthz of a gateway, and exits with 0 when it answers 200, otherwise with 1 and
the answer. For health checks of containers and scripts. Ask /readyz to learn whether
the gateway takes requests now.

The address is --address, otherwise the environment's DURWARD_HEALTH_URL, otherwise
` + defaultAddress + `, which the shipped Caddyfile has for
this machine only.
`,
		CobraFunc: func(cmd *cobra.Command) {
			address := cmd.Flags().String("address", "", "The address to ask")
			timeout := cmd.Flags().Duration("timeout", 2*time.Second, "How long to wait for the answer")
			cmd.Args = cobra.NoArgs
			cmd.RunE = func(cmd *cobra.Command, _ []string) error {
				return ask(cmd.Context(), cmp.Or(*address, os.Getenv("DURWARD_HEALTH_URL"), defaultAddress), *timeout)
			}
		},
	})
}

// ask returns an error unless the address answers 200 in time.
func ask(ctx context.Context, address string, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	// No proxy of the environment's: the gateway is beside this.
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(request)
	if err != nil {
		return fmt.Errorf("the gateway does not answer: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode == http.StatusOK {
		return nil
	}
	said, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return fmt.Errorf("%s answers %s, and breaks off: %w", address, response.Status, err)
	}
	return fmt.Errorf("%s answers %s: %s", address, response.Status, strings.TrimSpace(string(said)))
}
