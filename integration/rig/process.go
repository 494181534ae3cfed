// Package rig holds the common parts of tests of the built binary: the binary, processes that end with their tests,
// ports.
package rig

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Process is a program that a test started. It is ended with the test, by its id.
type Process struct {
	Command *exec.Cmd
	Output  Transcript
	Exited  chan struct{} // closed when it has ended
	Err     error         // the result of Wait; read after Exited
}

// Transcript collects the output of a process, from several goroutines.
type Transcript struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (l *Transcript) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *Transcript) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// Start starts a program with open files from descriptor 3 on, and ends it with the test. All its files of a home
// directory go below home.
func Start(t testing.TB, files []*os.File, home string, env []string, program string, arguments ...string) *Process {
	t.Helper()
	p := &Process{Command: exec.Command(program, arguments...), Exited: make(chan struct{})}
	p.Command.Dir, p.Command.ExtraFiles = home, files
	p.Command.Env = append([]string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + home, "XDG_DATA_HOME=" + home + "/.data", "XDG_CONFIG_HOME=" + home + "/.config",
		"TMPDIR=" + home, "GORACE=halt_on_error=0",
	}, env...)
	p.Command.Stdout, p.Command.Stderr = &p.Output, &p.Output
	// Processes that it starts itself must not keep the test waiting for the end of their output.
	p.Command.WaitDelay = StopTimeout
	if err := p.Command.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		p.Err = p.Command.Wait()
		close(p.Exited)
	}()
	t.Cleanup(func() {
		p.Stop(t)
		if t.Failed() {
			t.Logf("%s wrote:\n%s", program, Tail(p.Output.String(), 20_000))
		}
	})
	return p
}

// Stop asks the process to end and waits for it. It may have ended already.
func (p *Process) Stop(t testing.TB) {
	t.Helper()
	select {
	case <-p.Exited:
		return
	default:
	}
	_ = p.Command.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.Exited:
	case <-time.After(StopTimeout):
		t.Errorf("%s did not end within %v of SIGTERM", p.Command.Path, StopTimeout)
		p.Kill()
	}
}

// Kill ends the process without asking (SIGKILL).
func (p *Process) Kill() {
	_ = p.Command.Process.Kill()
	<-p.Exited
}

// WaitFor waits until an address answers 200.
func (p *Process) WaitFor(t testing.TB, address string) {
	t.Helper()
	p.Poll(t, address, func() bool {
		status, _ := get(address)
		return status == http.StatusOK
	})
}

// WaitForListener waits until a process listens on host:port.
func (p *Process) WaitForListener(t testing.TB, address string) {
	t.Helper()
	p.Poll(t, address, func() bool {
		connection, err := net.Dial("tcp", address)
		if err == nil {
			_ = connection.Close()
		}
		return err == nil
	})
}

// Poll waits until answers returns true; the test ends when the process does, or when it takes too long.
func (p *Process) Poll(t testing.TB, address string, answers func() bool) {
	t.Helper()
	deadline := time.After(StartTimeout)
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for !answers() {
		select {
		case <-p.Exited:
			t.Fatalf("%s ended instead of answering on %s: %v", p.Command.Path, address, p.Err)
		case <-deadline:
			t.Fatalf("%s does not answer on %s", p.Command.Path, address)
		case <-ticker.C:
		}
	}
}

// distress matches text that a log of the gateway must never contain.
var distress = regexp.MustCompile(`panic|DATA RACE|fatal error:|concurrent map`)

// CheckLog fails the test when the process has panicked or raced.
func (p *Process) CheckLog(t testing.TB) {
	t.Helper()
	for line := range strings.Lines(p.Output.String()) {
		if distress.MatchString(line) {
			t.Errorf("the log says: %s", Tail(line, 2_000))
			return
		}
	}
}

func get(address string) (int, error) {
	client := &http.Client{Timeout: CallTimeout, Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Get(address)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	_, err = io.Copy(io.Discard, response.Body)
	return response.StatusCode, err
}

// Tail returns the end of a text.
func Tail(text string, size int) string {
	if len(text) <= size {
		return text
	}
	return fmt.Sprintf("... (%d bytes before)\n%s", len(text)-size, text[len(text)-size:])
}
