package audit

import (
	"errors"
	"strings"
	"testing"

	"github.com/durward-gateway/durward/internal/audit/segments"
)

// tearing is a file of which the next write fails after some bytes.
type tearing struct {
	file
	tear      bool
	bytes     int
	truncate  []error // of the next calls; nil: they work
	truncated int
}

func (f *tearing) Write(p []byte) (int, error) {
	if f.tear {
		f.tear = false
		n, _ := f.file.Write(p[:f.bytes])
		return n, errDisk
	}
	return f.file.Write(p)
}

func (f *tearing) Truncate(size int64) error {
	f.truncated++
	if len(f.truncate) > 0 {
		err := f.truncate[0]
		f.truncate = f.truncate[1:]
		return err
	}
	return f.file.Truncate(size)
}

// TestTornLine checks that a part of a line is cut away before the next line is written.
func TestTornLine(t *testing.T) {
	for name, tc := range map[string]struct {
		bytes     int
		truncate  []error
		next      error // of the next record
		truncated int   // at the end
		fault     bool
	}{
		"nothing was written":          {0, nil, nil, 0, false},
		"cut away at once":             {40, nil, nil, 1, false},
		"cut away later":               {40, []error{errDisk}, nil, 2, false},
		"cut away after another error": {40, []error{errDisk, errDisk}, errDisk, 3, false},
		"the file cannot be mended":    {40, []error{errDisk, errFault}, errFault, 2, true},
	} {
		t.Run(name, func(t *testing.T) {
			dir, torn := t.TempDir(), new(tearing)
			o := testOptions(t, dir)
			o.create = func(path string) (file, error) {
				made, err := createFile(path)
				*torn = tearing{file: made}
				return torn, err
			}
			j := openJournal(t, o)
			leaveAlone(j)
			torn.tear, torn.bytes, torn.truncate = true, tc.bytes, tc.truncate
			if err := j.Append(acme, intent("refused")); !errors.Is(err, errDisk) {
				t.Fatalf("acknowledged: %v", err)
			}
			if err := j.Append(acme, intent("next")); !errors.Is(err, tc.next) {
				t.Fatalf("the next one: %v", err)
			}
			if fault := errors.Is(j.failure, errFault); fault != tc.fault {
				t.Fatalf("the file is given up: %v", fault)
			}
			if tc.fault {
				return
			}
			for range 2 {
				if err := j.Append(acme, intent("after")); err != nil {
					t.Fatal(err)
				}
			}
			if torn.truncated != tc.truncated {
				t.Errorf("cut %d times", torn.truncated)
			}
			text := readFile(t, segments.Path(j.dir, 1))
			if next := strings.Contains(text, "next"); next != (tc.next == nil) || strings.Contains(text, "refused") {
				t.Errorf("%q", text)
			}
			wantClean(t, dir, new(memory))
		})
	}
}
