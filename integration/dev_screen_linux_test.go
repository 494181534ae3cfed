package integration

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// TestDevScreenComesFirst checks that Caddy's own lines stay out of a terminal until the screen of a start stands
// there, however long it takes to write it.
func TestDevScreenComesFirst(t *testing.T) {
	t.Parallel()
	home := newDevHome(t)
	terminal, shown := openTerminal(t)
	screen, stdout := fullPipe(t) // the screen is not written until somebody reads
	p := startProcessWith(t, []*os.File{terminal, stdout}, home.path, append(home.environment(), "TERM=xterm"),
		"sh", "-c", `exec "$0" dev --listen 127.0.0.1:0 2>&3 >&4 3>&- 4>&-`, durward(t))
	p.poll(t, "the address in its data directory", func() bool {
		_, err := os.Stat(home.file("data", "address"))
		return err == nil
	})
	// Caddy writes a line of INFO for each request of its admin endpoint, before it answers.
	administer := func() {
		t.Helper()
		client := &http.Client{Timeout: callTimeout, Transport: &http.Transport{DisableKeepAlives: true,
			DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				return new(net.Dialer).DialContext(ctx, "unix", home.file("data", "admin.sock"))
			}}}
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://127.0.0.1/config/", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		response, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
	}
	administer()
	// The test's own writes come after all earlier output.
	const mark = "END OF WHAT CAME BEFORE"
	if _, err := io.WriteString(terminal, mark); err != nil {
		t.Fatal(err)
	}
	p.poll(t, "what the terminal shows", func() bool { return strings.Contains(shown.String(), mark) })
	if early, _, _ := strings.Cut(shown.String(), mark); early != "" {
		t.Errorf("this came before the screen:\n%s", early)
	}
	var text strings.Builder
	for buffer := make([]byte, 4<<10); !strings.Contains(text.String(), " tour"); {
		n, err := screen.Read(buffer)
		if err != nil {
			t.Fatalf("%v after %q", err, text.String())
		}
		text.WriteString(strings.TrimLeft(string(buffer[:n]), "\x00"))
	}
	if !strings.HasPrefix(text.String(), "\ndurward is running in development mode") {
		t.Errorf("the screen is %q", text.String())
	}
	p.poll(t, "a line of Caddy's, after the screen", func() bool {
		administer()
		return strings.Contains(shown.String(), "INFO")
	})
}

// openTerminal opens a pseudo terminal, and collects what is written to it.
func openTerminal(t *testing.T) (*os.File, *transcript) {
	t.Helper()
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	master := os.NewFile(uintptr(fd), "/dev/ptmx")
	terminal, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	shown := new(transcript)
	var reading sync.WaitGroup
	reading.Go(func() { _, _ = io.Copy(shown, master) }) // ends with an error once nobody holds the terminal
	t.Cleanup(func() {
		_ = terminal.Close()
		reading.Wait()
		_ = master.Close()
	})
	return terminal, shown
}

// fullPipe makes a pipe into which nothing more fits until it is read. What fills it are zeros.
func fullPipe(t *testing.T) (from, to *os.File) {
	t.Helper()
	var ends [2]int
	if err := unix.Pipe2(ends[:], unix.O_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	from, to = os.NewFile(uintptr(ends[0]), "|0"), os.NewFile(uintptr(ends[1]), "|1")
	t.Cleanup(func() { _ = from.Close(); _ = to.Close() })
	size, err := unix.FcntlInt(uintptr(ends[1]), syscall.F_SETPIPE_SZ, os.Getpagesize())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := to.Write(make([]byte, size)); err != nil {
		t.Fatal(err)
	}
	return from, to
}
