// Command report runs a command that writes what `go test -json` does, and shows a line for each package as soon as it has
// ended: `go test` itself holds them back until all before them in the alphabet have ended, which takes minutes. Of tests
// that fail it shows what they wrote.
//
//	report go test -json ./...
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"
)

// quiet is the time without output after which the running tests are shown.
const quiet = 30 * time.Second

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "report: a command is missing, such as: report go test -json ./...")
		os.Exit(2)
	}
	code, err := run(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "report:", err)
		os.Exit(1)
	}
	os.Exit(code)
}

// run returns the command's exit status.
func run(arguments []string) (int, error) {
	// An interrupt reaches the command too, which ends then; its last output is shown.
	_, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	command := exec.Command(arguments[0], arguments[1:]...)
	command.Stderr = os.Stderr
	output, err := command.StdoutPipe()
	if err != nil {
		return 0, err
	}
	if err := command.Start(); err != nil {
		return 0, err
	}
	lines := make(chan []byte)
	var unread error
	go func() {
		defer close(lines)
		reader := bufio.NewReader(output)
		for {
			line, err := reader.ReadBytes('\n')
			if len(line) > 0 {
				lines <- line
			}
			if err != nil {
				unread = err
				return
			}
		}
	}()
	began := time.Now()
	s := newSummary(os.Stdout)
	silence := time.NewTimer(quiet)
	defer silence.Stop()
	for open := true; open; {
		select {
		case line, more := <-lines:
			if open = more; more && s.read(line) {
				silence.Reset(quiet)
			}
		case <-silence.C:
			s.stillRunning(time.Since(began))
			silence.Reset(quiet)
		}
	}
	err = command.Wait()
	s.end(time.Since(began))
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return max(exit.ExitCode(), 1), nil
	}
	if err == nil && !errors.Is(unread, io.EOF) {
		err = unread
	}
	return 0, err
}
