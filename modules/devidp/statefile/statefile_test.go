package statefile

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"testing"
)

type names map[string]int

func (n names) Clone() names { return maps.Clone(n) }

func TestFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "state.json")
	f, err := Open(path, names{})
	if err != nil {
		t.Fatal(err)
	}
	before := f.View()
	if err := f.Update(func(n names) error { n["a"] = 1; return nil }); err != nil {
		t.Fatal(err)
	}
	if len(before) != 0 || f.View()["a"] != 1 {
		t.Errorf("before %v, now %v", before, f.View())
	}
	refused := errors.New("no")
	if err := f.Update(func(n names) error { n["b"] = 2; return refused }); !errors.Is(err, refused) {
		t.Errorf("error %v", err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	again, err := Open(path, names{})
	if err != nil || len(again.View()) != 1 || again.View()["a"] != 1 {
		t.Errorf("read again: %v, %v", again.View(), err)
	}
}

func TestFileThatCannotBeWritten(t *testing.T) {
	f, err := Open(filepath.Join(t.TempDir(), "missing", "state.json"), names{})
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Update(func(n names) error { n["a"] = 1; return nil }); err == nil {
		t.Error("no error")
	}
	if len(f.View()) != 0 {
		t.Errorf("a change that is not on disk is visible: %v", f.View())
	}
}

func TestTornFileIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state.json")
	if err := os.WriteFile(path, []byte(`{"a":`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(path, names{}); err == nil {
		t.Error("a torn file was taken")
	}
}
