package format

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

// linesOf returns the complete lines of a file, where they end, and how many bytes are torn.
func linesOf(t *testing.T, r io.Reader) (all []string, offset, torn int64) {
	t.Helper()
	lines := NewLines(r)
	for {
		line, err := lines.Next()
		if errors.Is(err, io.EOF) {
			torn, err = lines.Torn()
			if err != nil {
				t.Fatal(err)
			}
			return all, lines.Offset, torn
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, string(line))
	}
}

// TestLines checks which lines of a file are complete, and what is torn behind them.
func TestLines(t *testing.T) {
	long, zeros := strings.Repeat("x", 3*64<<10), strings.Repeat("\x00", 100_000)
	for name, c := range map[string]struct {
		file string
		want []string
		torn int64
	}{
		"nothing":              {"", nil, 0},
		"whole":                {"a\n\nb\n", []string{"a", "", "b"}, 0},
		"long ones":            {long + "\n" + long + "y\nz\n", []string{long, long + "y", "z"}, 0},
		"cut off":              {"a\nbc", []string{"a"}, 2},
		"a long one cut off":   {"a\n" + long, []string{"a"}, int64(len(long))},
		"zeros behind":         {"a\n" + zeros, []string{"a"}, 0},
		"zeros alone":          {zeros, nil, 0},
		"a zero in a line":     {"a\nb\x00c\nd\n", []string{"a"}, 6},
		"a hole":               {"a\n" + zeros + "b\n", []string{"a"}, int64(len(zeros)) + 2},
		"a hole in a long one": {long + zeros + "b\n" + zeros, nil, int64(len(long)+len(zeros)) + 2},
		"cut off before zeros": {"a\nbc" + zeros, []string{"a"}, 2},
	} {
		for form, read := range map[string]func(io.Reader) io.Reader{
			"at once": func(r io.Reader) io.Reader { return r }, "by halves": iotest.HalfReader, "with the end": iotest.DataErrReader,
			"with pauses": func(r io.Reader) io.Reader { return &pausing{reader: r} },
		} {
			all, offset, torn := linesOf(t, read(strings.NewReader(c.file)))
			end := len(strings.Join(c.want, "\n"))
			if len(c.want) > 0 {
				end++
			}
			if strings.Join(all, "|") != strings.Join(c.want, "|") || offset != int64(end) || torn != c.torn {
				t.Errorf("%s, read %s: %d lines to %d, %d torn bytes", name, form, len(all), offset, torn)
			}
		}
	}
}

// pausing is a reader that gives nothing every other time.
type pausing struct {
	reader io.Reader
	pause  bool
}

func (p *pausing) Read(b []byte) (int, error) {
	if p.pause = !p.pause; p.pause {
		return 0, nil
	}
	return p.reader.Read(b)
}

// endless is a line without an end.
type endless struct{}

var manyX = bytes.Repeat([]byte{'x'}, 64<<10)

func (endless) Read(b []byte) (int, error) { return copy(b, manyX), nil }

// TestLongestLine checks that a line is refused when it is too long.
func TestLongestLine(t *testing.T) {
	room := make([]byte, 0, maxLine+1<<20) // so that it is not copied again and again
	for size, read := range map[int64]bool{maxLine - 1: true, maxLine: false} {
		lines := NewLines(io.MultiReader(io.LimitReader(endless{}, size), strings.NewReader("\n")))
		lines.buffer = room
		line, err := lines.Next()
		if (err == nil) != read || read && int64(len(line)) != size || !read && !errors.Is(err, ErrMalformed) {
			t.Errorf("a line of %d bytes: %d, %v", size, len(line), err)
		}
	}
}

// TestUnreadableLines checks that an error of a disk is not the end of a file.
func TestUnreadableLines(t *testing.T) {
	disk := errors.New("the disk fails")
	lines := NewLines(io.MultiReader(strings.NewReader("a\nb"), iotest.ErrReader(disk)))
	if line, err := lines.Next(); err != nil || string(line) != "a" {
		t.Errorf("%q, %v", line, err)
	}
	if line, err := lines.Next(); !errors.Is(err, disk) {
		t.Errorf("%q, %v", line, err)
	}
	lines = NewLines(io.MultiReader(strings.NewReader("b\x00"), iotest.ErrReader(disk)))
	if _, err := lines.Next(); !errors.Is(err, disk) && !errors.Is(err, io.EOF) {
		t.Error(err)
	}
	if _, err := lines.Torn(); !errors.Is(err, disk) {
		t.Errorf("what is behind an unreadable part is not torn: %v", err)
	}
}

// TestTrimZeros checks that zeros at the end are removed, also whole pages of them, and no other zeros.
func TestTrimZeros(t *testing.T) {
	for _, before := range []int{0, 1, pageSize - 1, pageSize, pageSize + 1} {
		for _, zeros := range []int{0, 1, pageSize - 1, pageSize, pageSize + 1, 3 * pageSize} {
			text := make([]byte, before+zeros)
			for i := range before {
				text[i] = 'x'
			}
			if got := len(trimZeros(text)); got != before {
				t.Errorf("of %d bytes and %d zeros %d are left", before, zeros, got)
			}
		}
	}
}
