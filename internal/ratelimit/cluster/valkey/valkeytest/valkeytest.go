// Package valkeytest gives tests a server that speaks Valkey's protocol: Debian's redis-server, or valkey-server, on a
// socket in a temporary folder.
package valkeytest

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"
)

// Server is a server for one test.
type Server struct {
	program, folder string
	process         *os.Process
	ended           chan struct{}
	output          bytes.Buffer // read when ended is closed
}

// New starts a server that is stopped and removed when the test ends.
func New(tb testing.TB) *Server {
	tb.Helper()
	s := &Server{}
	for _, name := range []string{"valkey-server", "redis-server"} {
		if path, err := exec.LookPath(name); err == nil {
			s.program = path
			break
		}
	}
	if s.program == "" {
		tb.Fatal("there is neither a valkey-server nor a redis-server; `make setup` installs one")
	}
	folder, err := os.MkdirTemp("", "durward-vk-") //nolint:usetesting // names of sockets are short, TempDir's may be too long
	if err != nil {
		tb.Fatal(err)
	}
	s.folder = folder
	tb.Cleanup(func() {
		s.end()
		if err := os.RemoveAll(folder); err != nil {
			tb.Error(err)
		}
	})
	s.Start(tb)
	return s
}

// Address returns the server's address as a URL.
func (s *Server) Address() string { return "unix://" + s.socket() }

func (s *Server) socket() string { return filepath.Join(s.folder, "s") }

// Start starts a stopped server, without its former data.
func (s *Server) Start(tb testing.TB) {
	tb.Helper()
	args := []string{"--port", "0", "--unixsocket", s.socket(), "--dir", s.folder, "--save", "", "--appendonly", "no"}
	s.output.Reset()
	s.ended = make(chan struct{})
	started := make(chan error)
	go func() {
		// The server dies with the thread that started it, so that a killed test binary leaves no server behind.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		cmd := exec.Command(s.program, args...) //nolint:gosec // a test's
		dieWithParent(cmd)
		cmd.Stdout, cmd.Stderr = &s.output, &s.output
		err := cmd.Start()
		s.process = cmd.Process
		started <- err
		if err == nil {
			_ = cmd.Wait() // its output says why
			close(s.ended)
		}
	}()
	if err := <-started; err != nil {
		tb.Fatal("starting the server: ", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for ; ; runtime.Gosched() {
		conn, err := net.Dial("unix", s.socket())
		if err == nil {
			_ = conn.Close()
			return
		}
		select {
		case <-s.ended:
			tb.Fatalf("the server ended: %s", s.output.Bytes())
		default:
		}
		if ctx.Err() != nil {
			tb.Fatal("the server does not answer: ", err)
		}
	}
}

// Stop ends the server as a crash does.
func (s *Server) Stop() { s.end() }

// Pause makes the server hang, with its connections open, until Resume.
func (s *Server) Pause(tb testing.TB)  { s.signal(tb, syscall.SIGSTOP) }
func (s *Server) Resume(tb testing.TB) { s.signal(tb, syscall.SIGCONT) }

// Do runs a command, such as FLUSHALL, whose answer is OK.
func (s *Server) Do(tb testing.TB, command string) {
	tb.Helper()
	conn, err := net.Dial("unix", s.socket())
	if err != nil {
		tb.Fatal(err)
	}
	defer conn.Close()
	if _, err := fmt.Fprintf(conn, "%s\r\n", command); err != nil {
		tb.Fatal(err)
	}
	if answer, err := bufio.NewReader(conn).ReadString('\n'); err != nil || answer != "+OK\r\n" {
		tb.Fatalf("%s was answered with %q, %v", command, answer, err)
	}
}

func (s *Server) signal(tb testing.TB, signal syscall.Signal) {
	tb.Helper()
	if err := s.process.Signal(signal); err != nil {
		tb.Fatal(err)
	}
}

func (s *Server) end() {
	if s.ended == nil || s.process == nil {
		return
	}
	select {
	case <-s.ended:
	default:
		_ = s.process.Kill()
		<-s.ended
	}
}
