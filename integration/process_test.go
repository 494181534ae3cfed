package integration

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Bounds of waiting, ten times and more what a loaded machine needs.
const (
	startTimeout = 60 * time.Second
	stopTimeout  = 60 * time.Second
	callTimeout  = 60 * time.Second
)

// process is a program that a test started. It is ended with the test, by its id.
type process struct {
	command *exec.Cmd
	output  transcript
	exited  chan struct{} // closed when it has ended
	err     error         // what Wait said; read after exited
}

// transcript collects what a process writes, from several goroutines.
type transcript struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *transcript) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *transcript) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// startProcess starts a program and ends it with the test. Everything that it would keep in a home directory goes below
// home.
func startProcess(t testing.TB, home string, env []string, program string, arguments ...string) *process {
	t.Helper()
	return startProcessWith(t, nil, home, env, program, arguments...)
}

// startProcessWith is startProcess for a program that gets open files, from descriptor 3 on.
func startProcessWith(t testing.TB, files []*os.File, home string, env []string, program string, arguments ...string) *process {
	t.Helper()
	p := &process{command: exec.Command(program, arguments...), exited: make(chan struct{})}
	p.command.Dir, p.command.ExtraFiles = home, files
	p.command.Env = append([]string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + home, "XDG_DATA_HOME=" + home + "/.data", "XDG_CONFIG_HOME=" + home + "/.config",
		"TMPDIR=" + home, "GORACE=halt_on_error=0",
	}, env...)
	p.command.Stdout, p.command.Stderr = &p.output, &p.output
	// What the process starts itself must not keep the test waiting for the end of its output.
	p.command.WaitDelay = 10 * time.Second
	if err := p.command.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		p.err = p.command.Wait()
		close(p.exited)
	}()
	t.Cleanup(func() {
		p.stop(t)
		if t.Failed() {
			t.Logf("%s wrote:\n%s", program, tail(p.output.String(), 20_000))
		}
	})
	return p
}

// stop asks the process to end and waits for it. It may have ended already.
func (p *process) stop(t testing.TB) {
	t.Helper()
	select {
	case <-p.exited:
		return
	default:
	}
	_ = p.command.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.exited:
	case <-time.After(stopTimeout):
		t.Errorf("%s did not end within %v of SIGTERM", p.command.Path, stopTimeout)
		p.kill()
	}
}

// kill ends the process without asking (SIGKILL).
func (p *process) kill() {
	_ = p.command.Process.Kill()
	<-p.exited
}

// waitFor waits until an address answers 200.
func (p *process) waitFor(t testing.TB, address string) {
	t.Helper()
	p.poll(t, address, func() bool {
		status, _ := get(address)
		return status == http.StatusOK
	})
}

// waitForListener waits until something listens on host:port.
func (p *process) waitForListener(t testing.TB, address string) {
	t.Helper()
	p.poll(t, address, func() bool {
		connection, err := net.Dial("tcp", address)
		if err == nil {
			_ = connection.Close()
		}
		return err == nil
	})
}

func (p *process) poll(t testing.TB, address string, answers func() bool) {
	t.Helper()
	deadline := time.After(startTimeout)
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for !answers() {
		select {
		case <-p.exited:
			t.Fatalf("%s ended instead of answering on %s: %v", p.command.Path, address, p.err)
		case <-deadline:
			t.Fatalf("%s does not answer on %s", p.command.Path, address)
		case <-ticker.C:
		}
	}
}

// distress is what a log of the gateway never holds.
var distress = regexp.MustCompile(`panic|DATA RACE|fatal error:|concurrent map`)

// checkLog fails the test when the process has panicked or raced.
func (p *process) checkLog(t testing.TB) {
	t.Helper()
	for line := range strings.Lines(p.output.String()) {
		if distress.MatchString(line) {
			t.Errorf("the log says: %s", tail(line, 2_000))
			return
		}
	}
}

func get(address string) (int, error) {
	client := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Get(address)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	_, err = io.Copy(io.Discard, response.Body)
	return response.StatusCode, err
}

// portsGiven are the ports that freePort has given out. None is given twice: Caddy shares a port with whoever has it
// (SO_REUSEPORT), so that two gateways that start at once on one port would answer each other's requests.
var portsGiven sync.Map

// freePort finds a port to listen on. It is below those that the system gives to outgoing connections, so that none of
// them takes it before the process does.
func freePort(t testing.TB) string {
	t.Helper()
	for range 1000 {
		port := strconv.Itoa(20_000 + rand.IntN(10_000))
		if _, given := portsGiven.LoadOrStore(port, true); given {
			continue
		}
		listener, err := net.Listen("tcp", "127.0.0.1:"+port)
		if err != nil {
			continue
		}
		if err := listener.Close(); err != nil {
			t.Fatal(err)
		}
		return port
	}
	t.Fatal("no port is free")
	return ""
}

// exitCode is the exit status of a process that has ended.
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

func tail(text string, size int) string {
	if len(text) <= size {
		return text
	}
	return fmt.Sprintf("... (%d bytes before)\n%s", len(text)-size, text[len(text)-size:])
}
