package terminal

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestOfWhatIsNoTerminal(t *testing.T) {
	file, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if got := Of(file); got != (Terminal{}) {
		t.Errorf("a file: %+v", got)
	}
	if got := Of(new(strings.Builder)); got != (Terminal{}) {
		t.Errorf("a buffer: %+v", got)
	}
	if got := (Terminal{}).Good("x") + (Terminal{}).Hang("a ", "  ", "b c"); got != "xa b c\n" {
		t.Errorf("%q", got)
	}
	if got := (Terminal{Color: true}).Bad("x"); got != "\x1b[31mx\x1b[0m" {
		t.Errorf("%q", got)
	}
}

func TestHang(t *testing.T) {
	got := Terminal{Width: 20}.Hang("- ", "    ", "one two three four five äöüäöüäöüäöüäöüäöüäöü six")
	want := "- one two three four\n    five\n    äöüäöüäöüäöüäöüäöüäöü\n    six\n"
	if got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := (Terminal{Width: 20}).Hang("- ", "  ", "one two three\nfour five six seven"), "- one two three\n  four five six\n  seven\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := (Terminal{}).Hang("- ", "  ", "one\ntwo"), "- one\n  two\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
