package commands

import (
	"errors"
	"fmt"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
)

// adviseOnStart makes the errors of the commands that start a gateway end in what to do about them.
func adviseOnStart(root *cobra.Command) {
	for _, cmd := range root.Commands() {
		if (cmd.Name() != "run" && cmd.Name() != "start") || cmd.RunE == nil || cmd.Annotations["durward"] != "" {
			continue
		}
		start := cmd.RunE
		cmd.Annotations = map[string]string{"durward": "advises"}
		cmd.RunE = func(cmd *cobra.Command, arguments []string) error {
			err := start(cmd, arguments)
			if err == nil {
				return nil
			}
			config := ""
			if flag := cmd.Flags().Lookup("config"); flag != nil {
				config = flag.Value.String()
			}
			cmd.SilenceErrors = true
			fmt.Fprintln(cmd.ErrOrStderr(), "Error: "+withAdvice(err, config).Error())
			return err // it has the exit code
		}
	}
}

// withAdvice adds to an error of the start what to do about it, in the same line. Caddy logs it in JSON before, which is for
// programs.
func withAdvice(err error, config string) error {
	return fmt.Errorf("%w. What to do: %s", err, advice(err, config))
}

func advice(err error, config string) string {
	file := ""
	if config != "" {
		file = " --config " + config
	}
	text := err.Error()
	says := func(code syscall.Errno) bool { return errors.Is(err, code) || strings.Contains(text, code.Error()) }
	switch {
	case says(syscall.EADDRINUSE):
		return "another program listens on that address. Stop it, or choose another address."
	case says(syscall.EACCES) && strings.Contains(text, "listen"):
		return "only root may listen on ports below 1024. Give the binary the right (setcap cap_net_bind_service=+ep), or choose a higher port."
	case strings.Contains(text, "adapting config"):
		return "correct the Caddyfile at the line that is named, and try it with `durward adapt" + file + "`."
	case strings.Contains(text, "does not resolve"):
		return "put the secret where the configuration says, readable for the user that runs the gateway."
	case says(syscall.EACCES):
		return "let the user that runs the gateway read and write there, or run it as the user that owns it."
	case says(syscall.ENOENT):
		return "make that file or directory, or correct its path in the configuration."
	case says(syscall.ENOSPC):
		return "make room on the disk: nothing can be written."
	}
	return "`durward doctor" + file + "` looks for what is wrong and says how to mend it."
}
