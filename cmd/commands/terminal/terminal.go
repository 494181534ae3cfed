// Package terminal lays text out for its reader: in colour and no wider than their terminal, or plain.
package terminal

import (
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"
)

// maxWidth bounds the width of text in wider terminals: longer lines are hard to read.
const maxWidth = 110

// Terminal describes the destination of text. The zero value means a file or another program.
type Terminal struct {
	Color bool
	Width int // in characters; 0: lines are left as they are
}

// Of returns the Terminal of out. Colour is left out when NO_COLOR is set (no-color.org), and where there is no
// terminal.
func Of(out io.Writer) Terminal {
	file, ok := out.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return Terminal{}
	}
	t := Terminal{Color: os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb", Width: maxWidth}
	if width, _, err := term.GetSize(int(file.Fd())); err == nil && width > 0 {
		t.Width = min(width, maxWidth)
	}
	return t
}

// Bold makes text stand out.
func (t Terminal) Bold(text string) string { return t.paint("1", text) }

// Faint makes text less prominent.
func (t Terminal) Faint(text string) string { return t.paint("2", text) }

// Good marks a success.
func (t Terminal) Good(text string) string { return t.paint("32", text) }

// Bad marks a failure.
func (t Terminal) Bad(text string) string { return t.paint("31", text) }

// Link marks addresses and commands.
func (t Terminal) Link(text string) string { return t.paint("36", text) }

func (t Terminal) paint(code, text string) string {
	if !t.Color {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// Hang writes text with first before its first line, and rest before every further line, including lines from
// wrapping.
func (t Terminal) Hang(first, rest, text string) string {
	var out strings.Builder
	for line := range strings.SplitSeq(text, "\n") {
		out.WriteString(t.hang(first, rest, line))
		first = rest
	}
	return out.String()
}

func (t Terminal) hang(first, rest, text string) string {
	if t.Width == 0 {
		return first + text + "\n"
	}
	var out strings.Builder
	line, blank := first, true
	for word := range strings.SplitSeq(text, " ") {
		if !blank && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > t.Width {
			out.WriteString(line + "\n")
			line, blank = rest, true
		}
		if !blank {
			line += " "
		}
		line, blank = line+word, false
	}
	return out.String() + line + "\n"
}
