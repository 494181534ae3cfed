package access

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

func TestMake(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	there := filepath.Join(home, "there")
	if err := os.WriteFile(there, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]error{
		there: nil, filepath.Join(home, "new"): nil, filepath.Join(home, "directory", "new"): nil,
		filepath.Join(home, "no", "such", "new"): fs.ErrNotExist, filepath.Join(there, "new"): syscall.ENOTDIR,
	} {
		if err := Make(path); (err == nil) != (want == nil) || want != nil && !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", path, err, want)
		}
	}
	if Make(home) == nil {
		t.Error("a directory can be written as a file")
	}
	entries, err := os.ReadDir(home)
	if err != nil || len(entries) != 1 {
		t.Errorf("left %v, %v", entries, err)
	}
}

// TestMakeWithoutRights needs a user to whom access rights apply.
func TestMakeWithoutRights(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	if err := os.Chmod(home, 0o500); err != nil { //nolint:gosec // a directory
		t.Fatal(err)
	}
	got := Make(filepath.Join(home, "new"))
	if os.Geteuid() == 0 {
		if got != nil {
			t.Errorf("root may: %v", got)
		}
		return
	}
	if !errors.Is(got, fs.ErrPermission) || !errors.Is(Make(filepath.Join(home, "directory", "new")), fs.ErrPermission) {
		t.Errorf("got %v", got)
	}
}
