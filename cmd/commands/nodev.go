//go:build nodev

package commands

import (
	"errors"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/spf13/cobra"
)

// Help says nothing about development mode.
const firstSteps, firstExample = "", ""

var errNoDevelopment = errors.New("not part of this binary, which was built for production. Development mode is in the binary that this builds and starts:\n" +
	"\t$ go run " + ourModule + "/cmd/durward@latest dev")

// The commands of development mode say where they are.
func init() {
	for _, name := range []string{"connect", "dev", "token", "tour"} {
		caddycmd.RegisterCommand(caddycmd.Command{
			Name:  name,
			Short: "Belongs to development mode, which this binary does not have",
			CobraFunc: func(cmd *cobra.Command) {
				cmd.Hidden, cmd.DisableFlagParsing = true, true
				cmd.RunE = func(*cobra.Command, []string) error { return errNoDevelopment }
			},
		})
	}
}
