package commands

import (
	"errors"
	"slices"
	"strings"
	"unicode"

	"github.com/caddyserver/caddy/v2"
	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/spf13/cobra"
)

// binarySwappers lists Caddy's own commands upgrade, add-package and remove-package. They fetch a binary from Caddy's
// build service and put it in place of the running one. That binary has no durward in it: the gateway would be gone
// after the next restart. They are replaced by an explanation.
var binarySwappers = []string{"upgrade", "add-package", "remove-package"}

var errBinarySwap = errors.New("not available: it would replace this binary by one from Caddy's build service, without durward.\n\n" + howToBuild)

const howToBuild = `To upgrade, build the version you want:
	$ go install github.com/durward-gateway/durward/cmd/durward@latest

To add plugins, name them in xcaddy.json or on the command line:
	$ go run github.com/durward-gateway/durward/cmd/durward-build@latest --with example.com/plugin@v1.2.3 --output durward`

func init() {
	// RegisterCommand refuses a name that is taken and does not return the root command, so the tree is reached
	// through a command of our own, once it is part of it.
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
	// This runs before the chosen command starts; it is not reached where help is asked for.
	cobra.OnInitialize(adjust)
	// This runs before help lists the commands: its template passes the description through this function of cobra's
	// first.
	cobra.AddTemplateFunc("trimTrailingWhitespaces", describe)
}

// own is the command through which the tree is reached.
var own *cobra.Command

// describe replaces cobra's function of that name, which cuts white space off the end. It also adjusts the tree
// before the rest of help is written.
func describe(text string) string {
	if own != nil && slices.ContainsFunc(own.Root().Commands(), func(cmd *cobra.Command) bool { return isBinarySwapper(cmd) && cmd.Long == text }) {
		text = errBinarySwap.Error() // the template has read the description already
	}
	adjust()
	return strings.TrimRightFunc(text, unicode.IsSpace)
}

// adjust turns Caddy's tree of commands into durward's.
func adjust() {
	if own == nil {
		return // another tree, of a test
	}
	root := own.Root()
	if root.Name() == caddy.CustomBinaryName {
		root.Example = examples
	}
	replaceBinarySwappers(root)
	adviseOnStart(root)
}

func replaceBinarySwappers(root *cobra.Command) {
	for _, cmd := range root.Commands() {
		if !isBinarySwapper(cmd) {
			continue
		}
		cmd.Hidden = true
		cmd.Use = cmd.Name()
		cmd.Short = "Not available in durward"
		cmd.Long = errBinarySwap.Error()
		if flag := cmd.Flags().Lookup("keep-backup"); flag != nil {
			flag.Hidden = true // still accepted, so that its user gets the explanation as well
		}
		cmd.Args = cobra.ArbitraryArgs
		cmd.RunE = refuseBinarySwap
	}
}

func isBinarySwapper(cmd *cobra.Command) bool { return slices.Contains(binarySwappers, cmd.Name()) }

func refuseBinarySwap(*cobra.Command, []string) error { return errBinarySwap }
