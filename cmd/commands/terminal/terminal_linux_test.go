package terminal

import (
	"fmt"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// pseudoTerminal opens a terminal of 90 columns that has no viewer.
func pseudoTerminal(t *testing.T) *os.File {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = master.Close() })
	fd := int(master.Fd())
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	slave, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = slave.Close() })
	if err := unix.IoctlSetWinsize(int(slave.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: 90}); err != nil {
		t.Fatal(err)
	}
	return slave
}

// TestOfTerminal checks that a terminal gets colour, unless its user does not want any or it cannot show it.
func TestOfTerminal(t *testing.T) {
	slave := pseudoTerminal(t)
	for _, tc := range []struct {
		no, term string
		color    bool
	}{{"", "xterm", true}, {"1", "xterm", false}, {"", "dumb", false}} {
		t.Setenv("NO_COLOR", tc.no)
		t.Setenv("TERM", tc.term)
		if got := Of(slave); got != (Terminal{Color: tc.color, Width: 90}) {
			t.Errorf("NO_COLOR=%q TERM=%q: %+v", tc.no, tc.term, got)
		}
	}
}
