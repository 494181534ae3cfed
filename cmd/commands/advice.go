package commands

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
)

// advised lists the commands of Caddy whose errors end with advice.
var advised = []string{"run", "start", "validate", "reload", "stop"}

// adviseOnStart adds advice to the errors of the commands that start and manage a gateway.
func adviseOnStart(root *cobra.Command) {
	for _, cmd := range root.Commands() {
		if !slices.Contains(advised, cmd.Name()) || cmd.RunE == nil || cmd.Annotations["durward"] != "" {
			continue
		}
		start := cmd.RunE
		if cmd.Name() == "validate" {
			start = validateByTrial(start)
		}
		if cmd.Name() == "run" {
			start = refuseEmptyStart(refuseSecondStart(start))
		}
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

// withAdvice returns an error of the start together with advice, in one line. Caddy logs the whole error in JSON
// before, which is for programs.
func withAdvice(err error, config string) error {
	return &advisedError{text: problem(err, config) + ". What to do: " + advice(err, config), cause: err}
}

// advisedError is an error in the form for people.
type advisedError struct {
	text  string
	cause error
}

func (e *advisedError) Error() string { return e.text }
func (e *advisedError) Unwrap() error { return e.cause }

// remedy is the advice for the errors that have its signs.
type remedy struct {
	texts  []string        // an error has all of them
	codes  []syscall.Errno // and one of these, where there are any
	advice string          // {config} stands for the option --config with its file
}

// remedies holds advice. The first remedy that fits an error counts.
var remedies = []remedy{
	{[]string{"process exited with error"}, nil, "see the line above: the process that was started has written it."},
	{[]string{"reading config from file"}, []syscall.Errno{syscall.ENOENT}, "check the path behind --config: the file is not there."},
	{[]string{"did you mean to use a config adapter"}, nil, "a Caddyfile of that name needs `--adapter caddyfile`; anything else has to be JSON."},
	{[]string{"performing request"}, []syscall.Errno{syscall.ECONNREFUSED, syscall.ENOENT}, "no gateway of this configuration runs on this machine: start one with `durward run{config}`."},
	{nil, []syscall.Errno{syscall.EADDRINUSE}, "another program listens on that address. Stop it, or choose another address."},
	{[]string{"listen tcp"}, []syscall.Errno{syscall.EACCES}, "only root may listen on ports below 1024. Give the binary the right (setcap cap_net_bind_service=+ep), or choose a higher port."},
	{[]string{"adapting config"}, nil, "correct the Caddyfile at the line that is named, and try it with `durward adapt{config}`."},
	{[]string{"does not resolve"}, nil, "put the secret where the configuration says, readable for the user that runs the gateway."},
	{nil, []syscall.Errno{syscall.EACCES}, "let the user that runs the gateway read and write there, or run it as the user that owns it."},
	{nil, []syscall.Errno{syscall.ENOENT}, "make that file or directory, or correct its path in the configuration."},
	{nil, []syscall.Errno{syscall.ENOSPC}, "make room on the disk: nothing can be written."},
}

// fits reports whether an error has the signs. A code may stand in its text alone.
func (r *remedy) fits(err error) bool {
	text := err.Error()
	for _, piece := range r.texts {
		if !strings.Contains(text, piece) {
			return false
		}
	}
	return len(r.codes) == 0 || slices.ContainsFunc(r.codes, func(code syscall.Errno) bool {
		return errors.Is(err, code) || strings.Contains(text, code.Error())
	})
}

func advice(err error, config string) string {
	file := ""
	if config != "" {
		file = " --config " + config
	}
	if second := (*secondStart)(nil); errors.As(err, &second) {
		if second.pid == 0 {
			return "stop that program, or give this gateway an `admin` address of its own."
		}
		return "`durward reload" + file + "` has it take a changed configuration, `durward stop" + file + "` stops it."
	}
	if errors.Is(err, errEmptyStart) {
		return "name one with `durward run --config FILE`, or start a gateway to try with `durward dev`."
	}
	for i := range remedies {
		if r := &remedies[i]; r.fits(err) {
			return strings.ReplaceAll(r.advice, "{config}", file)
		}
	}
	if saysWhatToDo(err.Error()) {
		return "correct the configuration there, and try it with `durward validate" + file + "`."
	}
	return "`durward doctor" + file + "` looks for what is wrong and says how to mend it."
}

// saysWhatToDo reports whether an error is about the configuration alone: then no other cause has to be looked for.
func saysWhatToDo(text string) bool {
	return slices.ContainsFunc([]string{"provision ", "app module: ", "decoding config", "unrecognized"}, func(piece string) bool { return strings.Contains(text, piece) })
}
