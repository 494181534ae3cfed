//go:build !nodev

package commands

// firstSteps and firstExample are the part of help that is about development mode.
const (
	firstSteps = `To try it on this machine, with nothing else installed:

	$ durward dev

and, in a second terminal, the main job step by step:

	$ durward tour

`
	firstExample = "  $ durward dev\n"
)
