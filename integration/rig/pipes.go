package rig

import (
	"io"
	"os/exec"
	"testing"
)

// Pipes starts a command that reads from and writes to the test, and returns its standard input and output.
func Pipes(t testing.TB, command *exec.Cmd) (io.WriteCloser, io.ReadCloser) {
	t.Helper()
	input, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	output, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	return input, output
}
