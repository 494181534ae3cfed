//go:build !race

package postgres

import (
	"testing"

	"github.com/durward-gateway/durward/storage"
	"github.com/durward-gateway/durward/storage/storagetest"
)

// Z-F09: on the schema of the next version, which only adds, this one does all that it does on its own. It runs before the
// tests that run at once: making so many schemas slows the server down for those that take the time. The race detector sees the
// same code in TestStore: `make postgres-test` runs this one, without it, when it runs everything.
func TestStoreOfNextVersion(t *testing.T) {
	adds, _ := nextVersions(t)
	storagetest.Run(t, func(t *testing.T) storage.Store {
		s := open(t, Options{})
		upgrade(t, s, adds)
		return s
	})
}
