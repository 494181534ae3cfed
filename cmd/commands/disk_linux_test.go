package commands

import (
	"os"
	"path/filepath"
	"testing"
)

// TestHeldBy checks that root needs no access from others. A key of the gateway's user that its group may read is
// reported, whichever user runs the check.
func TestHeldBy(t *testing.T) {
	path, root := "/", os.Geteuid() == 0
	if root {
		path = filepath.Join(t.TempDir(), "key")
		if err := os.WriteFile(path, nil, 0o640); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(path, 65534, -1); err != nil {
			t.Fatal(err)
		}
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if others, _ := heldBy(path, info); others == root {
		t.Errorf("as root: %v, given by another user: %v", root, others)
	}
}
