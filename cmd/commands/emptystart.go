package commands

import (
	"errors"

	"github.com/spf13/cobra"
)

// errEmptyStart is the error of a start without a configuration. Caddy would start, serve nothing and say nothing.
var errEmptyStart = errors.New("there is no configuration: no Caddyfile in this folder, and no --config")

// refuseEmptyStart makes `run` fail when there is no configuration. `run --resume` starts an empty Caddy, which takes its
// configuration over the admin API.
func refuseEmptyStart(run func(*cobra.Command, []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, arguments []string) error {
		if flagValue(cmd, "config") == "" && flagValue(cmd, "resume") != "true" {
			text, err := loadQuietly("", flagValue(cmd, "adapter"))
			if err == nil && len(text) == 0 {
				return errEmptyStart
			}
		}
		return run(cmd, arguments)
	}
}
