package integration

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"testing"

	"github.com/durward-gateway/durward/integration/rig"
)

// These are names of the rig, under the names that tests use.
const (
	startTimeout = rig.StartTimeout
	stopTimeout  = rig.StopTimeout
	callTimeout  = rig.CallTimeout
	suiteTimeout = rig.SuiteTimeout
)

// process is a program that a test started. It is ended with the test, by its id.
type process struct {
	*rig.Process
	command *exec.Cmd
	output  *transcript
	exited  chan struct{} // closed when it has ended
}

type transcript = rig.Transcript

// startProcess starts a program and ends it with the test. Everything that it would keep in a home directory goes below
// home.
func startProcess(t testing.TB, home string, env []string, program string, arguments ...string) *process {
	t.Helper()
	return startProcessWith(t, nil, home, env, program, arguments...)
}

// startProcessWith does the work of startProcess for a program that gets open files, from descriptor 3 on.
func startProcessWith(t testing.TB, files []*os.File, home string, env []string, program string, arguments ...string) *process {
	t.Helper()
	p := rig.Start(t, files, home, env, program, arguments...)
	return &process{Process: p, command: p.Command, output: &p.Output, exited: p.Exited}
}

func (p *process) stop(t testing.TB) { t.Helper(); p.Stop(t) }

func (p *process) kill() { p.Kill() }

// waitFor waits until an address answers 200.
func (p *process) waitFor(t testing.TB, address string) { t.Helper(); p.WaitFor(t, address) }

// waitForListener waits until something listens on host:port.
func (p *process) waitForListener(t testing.TB, address string) {
	t.Helper()
	p.WaitForListener(t, address)
}

// checkLog fails the test when the process has panicked or raced.
func (p *process) checkLog(t testing.TB) { t.Helper(); p.CheckLog(t) }

func (p *process) poll(t testing.TB, address string, answers func() bool) {
	t.Helper()
	p.Poll(t, address, answers)
}

func freePort(t testing.TB) string { t.Helper(); return rig.FreePort(t) }

// exitCode returns the exit status of a process that has ended.
func exitCode(err error) int {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode()
	}
	return 0
}

// listeningSocket opens a socket that listens; it is closed with the test.
func listeningSocket(t testing.TB, address string) *os.File {
	t.Helper()
	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	file, err := listener.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() })
	return file
}

func tail(text string, size int) string { return rig.Tail(text, size) }

// durward returns the path of the built binary.
func durward(t testing.TB) string { t.Helper(); return rig.Durward(t) }
