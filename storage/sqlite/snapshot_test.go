package sqlite

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/durward-gateway/durward/storage"
)

// TestSnapshot checks that a copy holds what was committed, beside the store's writer, and that no file is replaced.
func TestSnapshot(t *testing.T) {
	dir := t.TempDir()
	path, to := filepath.Join(dir, "durward.db"), filepath.Join(dir, "it's a copy.db")
	if err := Snapshot(t.Context(), path, to, Options{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing store: %v", err)
	}
	writer, err := Open(t.Context(), path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer writer.Close()
	if err := writer.AddDataKey(t.Context(), storage.DataKey{Version: 1, MasterKeyID: "m", Wrapped: []byte("w")}); err != nil {
		t.Fatal(err)
	}
	if err := Snapshot(t.Context(), path, to, Options{}); err != nil {
		t.Fatal(err)
	}
	if err := Snapshot(t.Context(), path, to, Options{}); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a copy over another file: %v", err)
	}
	if info, err := os.Stat(to); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the copy's mode: %v, %v; others may read it", info.Mode(), err)
	}
	keys, err := KeysBefore(t.Context(), to)
	if err != nil || len(keys) != 1 {
		t.Errorf("the copy has the keys %v, %v; want one", keys, err)
	}
}
