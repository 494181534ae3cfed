package world

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/durward-gateway/durward/integration/rig"
)

// scriptTimeout is the longest time for a script, at least ten times as long as it takes on a loaded machine.
const scriptTimeout = 5 * time.Minute

// run runs one of the lab's scripts, which finds the installed packages, and returns its output. The test ends when the
// script fails. input is given to it as JSON.
func run(t testing.TB, input any, script string, arguments ...string) []byte {
	t.Helper()
	output, complaint, err := try(t, input, script, arguments...)
	if err != nil {
		t.Fatalf("%s %s: %v\n%s\n%s", script, strings.Join(arguments, " "), err, rig.Tail(string(output), 5_000), rig.Tail(complaint, 5_000))
	}
	return output
}

// try does the work of run for scripts that may fail.
func try(t testing.TB, input any, script string, arguments ...string) (output []byte, complaint string, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), scriptTimeout)
	defer cancel()
	command := exec.CommandContext(ctx, node(t), nodeArguments(t, script, arguments...)...)
	command.Env = environment(t)
	command.WaitDelay = 10 * time.Second
	encoded, err := json.Marshal(input)
	if err != nil {
		t.Fatal(err)
	}
	var wrote strings.Builder
	command.Stdin, command.Stderr = strings.NewReader(string(encoded)), &wrote
	output, err = command.Output()
	return output, wrote.String(), err
}

// converse runs a script and gives it its plan, a line of JSON. It answers with a line whenever heard holds of a line of the
// script's. It reads the last line, JSON too, into found.
func converse(t testing.TB, plan any, heard func(line string) bool, found any, script string, arguments ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), scriptTimeout)
	defer cancel()
	command := exec.CommandContext(ctx, node(t), nodeArguments(t, script, arguments...)...)
	var complaint rig.Transcript
	command.Env, command.Stderr, command.WaitDelay = environment(t), &complaint, 10*time.Second
	encoded, err := json.Marshal(plan)
	if err != nil {
		t.Fatal(err)
	}
	input, output := rig.Pipes(t, command)
	_, _ = fmt.Fprintf(input, "%s\n", encoded)
	var last string
	lines := bufio.NewScanner(output)
	for lines.Buffer(nil, 1<<20); lines.Scan(); {
		if last = lines.Text(); heard(last) {
			_, _ = fmt.Fprintln(input)
		}
	}
	if err := command.Wait(); err != nil {
		t.Fatalf("%s %s: %v\n%s", script, strings.Join(arguments, " "), err, rig.Tail(complaint.String(), 5_000))
	}
	if err := json.Unmarshal([]byte(last), found); err != nil {
		t.Fatalf("%s %s wrote %q: %v\n%s", script, strings.Join(arguments, " "), last, err, rig.Tail(complaint.String(), 5_000))
	}
}

// nodeArguments run a script as if it lay beside node_modules.
func nodeArguments(t testing.TB, script string, arguments ...string) []string {
	return append([]string{"--preserve-symlinks", "--preserve-symlinks-main", filepath.Join(tools(t), "lab", script)}, arguments...)
}

// environment returns the environment of other projects' programs: of the test's own only the path, and a home that is
// removed with the test.
func environment(t testing.TB, more ...string) []string {
	home := t.TempDir()
	path := filepath.Dir(node(t)) + ":" + os.Getenv("PATH")
	return append([]string{"PATH=" + path, "HOME=" + home, "TMPDIR=" + home, "NO_COLOR=1", "DO_NOT_TRACK=1", "NO_PROXY=127.0.0.1,localhost"}, more...)
}

// startNode starts a program of an npm package that listens on a port.
func startNode(t testing.TB, port string, env []string, arguments ...string) *rig.Process {
	t.Helper()
	home := t.TempDir()
	p := rig.Start(t, nil, home, append([]string{"PATH=" + filepath.Dir(node(t)) + ":" + os.Getenv("PATH"), "NO_COLOR=1", "DO_NOT_TRACK=1"}, env...), node(t), arguments...)
	if port != "" {
		p.WaitForListener(t, "127.0.0.1:"+port)
	}
	return p
}
