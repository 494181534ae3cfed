package caddytest

import (
	"os"
	"testing"
	"time"
)

// removal bounds the time for which Directory waits for a gateway that ends.
const removal = 30 * time.Second

// Directory makes a directory for the files of a gateway, and removes it after the test. [testing.T.TempDir] would fail
// there: caddy.Stop does not wait for requests, and the last of them closes the gateway's store and audit journal.
func Directory(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "durward-test-*") //nolint:usetesting // t.TempDir does not wait, see above
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		tick := time.NewTicker(10 * time.Millisecond)
		defer tick.Stop()
		for deadline := time.After(removal); ; {
			err := os.RemoveAll(dir)
			if err == nil {
				return
			}
			select {
			case <-deadline:
				t.Errorf("removing the gateway's directory: %v", err)
				return
			case <-tick.C:
			}
		}
	})
	return dir
}
