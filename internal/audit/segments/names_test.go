package segments

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/durward-gateway/durward/internal/audit/format"
)

// directory makes empty files, and directories where a name ends with a slash.
func directory(t *testing.T, names ...string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for _, name := range names {
		path := filepath.Join(dir, name)
		var err error
		if name[len(name)-1] == '/' {
			err = os.Mkdir(path, 0o700)
		} else {
			err = os.WriteFile(path, nil, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestList checks which files are segments, and their order, which is not that of their names.
func TestList(t *testing.T) {
	dir := directory(t, "00000003.ndjson", "100000000.ndjson", "99999999.ndjson", "00000001.ndjson", "00000002.ndjson.damaged", "00000004", "5.ndjson", "store.ndjson", "lock")
	if got, err := List(dir); err != nil || !slices.Equal(got, []int{1, 3, 99999999, 100000000}) {
		t.Errorf("%d, %v", got, err)
	}
	if got, err := NumbersOf(dir, Suffix+DamagedSuffix); err != nil || !slices.Equal(got, []int{2}) {
		t.Errorf("set aside: %d, %v", got, err)
	}
	if got, err := List(filepath.Join(dir, "missing")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%d, %v", got, err)
	}
}

// TestNodes checks which directories are journals.
func TestNodes(t *testing.T) {
	dir := directory(t, "00112233445566ff/", "00112233445566fe", "00112233445566/", "00112233445566ff00/", "00112233445566ff.old/", "lost+found/")
	if got, err := Nodes(dir); err != nil || !slices.Equal(got, []string{filepath.Join(dir, "00112233445566ff")}) {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := Nodes(filepath.Join(dir, "missing")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%q, %v", got, err)
	}
}

// TestFormatOf checks that a segment has a format when its first line can be read, and else none.
func TestFormatOf(t *testing.T) {
	header := string(format.Marshal(format.Header{Format: 5, Node: "n", Segment: Name(1)}))
	for text, want := range map[string]int{header + "\n": 5, header + "\nmore": 5, header: 0, "": 0, "\n": 0, `{"format":5,"node":7}` + "\n": 0, "\x01\n" + header + "\n": 0} {
		dir := t.TempDir()
		if err := os.WriteFile(Path(dir, 1), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := FormatOf(dir, 1); got != want {
			t.Errorf("%q has format %d, want %d", text, got, want)
		}
		if got := FormatOf(dir, 2); got != 0 {
			t.Errorf("a segment that is not there has format %d", got)
		}
	}
}

// TestLock checks that one at a time has a lock, and that a lock which cannot be taken is another error.
func TestLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	unlock, err := Lock(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Lock(path); !errors.Is(err, ErrLocked) {
		t.Errorf("locked twice: %v", err)
	}
	unlock()
	again, err := Lock(path)
	if err != nil {
		t.Fatal(err)
	}
	again()
	if _, err := Lock(filepath.Join(path, "missing")); err == nil || errors.Is(err, ErrLocked) {
		t.Errorf("a file that cannot be made: %v", err)
	}
}

// TestSegmentNumber checks that a segment has one name.
func TestSegmentNumber(t *testing.T) {
	for name, want := range map[string]int{"00000001": 1, "99999999": 99999999, "100000000": 100000000, "1073741823": MaxNumber - 1, "1073741824": 0, "9223372036854775807": 0, "00000000": 0, "1": 0, "000000001": 0, "-0000001": 0, "store": 0, "": 0, "+0000001": 0} {
		if got, ok := Number(name); ok != (want > 0) || got != want {
			t.Errorf("%q is segment %d, %v", name, got, ok)
		}
	}
}
