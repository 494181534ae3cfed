package sqlite

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/durward-gateway/durward/storage"
)

// TestOpenReadOnly checks that a store is read beside its writer, after it was closed, and from a directory that
// cannot be written.
func TestOpenReadOnly(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "durward.db")
	if _, err := OpenReadOnly(t.Context(), path, Options{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
	writer, err := Open(t.Context(), path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := writer.AddAuditCheckpoint(t.Context(), storage.AuditCheckpoint{Node: "n", Number: 1, Segment: "s", Data: []byte("{}"), Signature: []byte("s")}); err != nil {
		t.Fatal(err)
	}
	read := func() {
		t.Helper()
		s, err := OpenReadOnly(t.Context(), path, Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		if all, err := s.AuditCheckpoints(t.Context(), ""); err != nil || len(all) != 1 {
			t.Errorf("%v, %v", all, err)
		}
	}
	read()
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	read()
	if err := os.Chmod(dir, 0o500); err != nil {
		t.Fatal(err)
	}
	defer os.Chmod(dir, 0o700) //nolint:errcheck // the test's directory goes anyway
	read()
}
