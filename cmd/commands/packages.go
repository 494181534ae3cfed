package commands

import (
	"errors"
	"slices"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/spf13/cobra"
)

// Caddy's own upgrade, add-package and remove-package fetch a binary from Caddy's
// build service and put it in place of the running one. That binary has no durward
// in it: the gateway would be gone after the next restart. They are replaced by an
// explanation.
var binarySwappers = []string{"upgrade", "add-package", "remove-package"}

var errBinarySwap = errors.New("not available: it would replace this binary by one from Caddy's build service, without durward.\n\n" + howToBuild)

const howToBuild = `To upgrade, build the version you want:
	$ go install github.com/durward-gateway/durward/cmd/durward@latest

To add plugins, name them in xcaddy.json or on the command line:
	$ go run github.com/durward-gateway/durward/cmd/durward-build@latest --with example.com/plugin@v1.2.3 --output durward`

func init() {
	// RegisterCommand refuses a name that is taken and hands out no root command, so
	// the tree is reached through a command of our own, once it hangs in it.
	var own *cobra.Command
	caddycmd.RegisterCommand(caddycmd.Command{
		Name:  "packages",
		Short: "Explains how this binary is upgraded and extended",
		CobraFunc: func(cmd *cobra.Command) {
			own = cmd
			cmd.Hidden = true
			cmd.Args = cobra.NoArgs
			cmd.Run = func(cmd *cobra.Command, _ []string) { cmd.Println(howToBuild) }
		},
	})
	cobra.OnInitialize(func() {
		if own != nil {
			replaceBinarySwappers(own.Root())
		}
	})
}

// replaceBinarySwappers runs after the command line was read and before the chosen
// command starts, which is the last moment to change what it will do.
func replaceBinarySwappers(root *cobra.Command) {
	for _, cmd := range root.Commands() {
		if !slices.Contains(binarySwappers, cmd.Name()) {
			continue
		}
		cmd.Hidden = true
		cmd.Short = "Not available in durward"
		cmd.Long = errBinarySwap.Error()
		cmd.Args = cobra.ArbitraryArgs
		cmd.RunE = refuseBinarySwap
	}
}

func refuseBinarySwap(*cobra.Command, []string) error { return errBinarySwap }
