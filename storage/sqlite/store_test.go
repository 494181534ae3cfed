package sqlite_test

import (
	"testing"

	"github.com/durward-gateway/durward/storage"
	"github.com/durward-gateway/durward/storage/sqlite/sqlitetest"
	"github.com/durward-gateway/durward/storage/storagetest"
)

// TestStore runs the suite of all stores.
func TestStore(t *testing.T) {
	t.Parallel()
	storagetest.Run(t, func(t *testing.T) storage.Store { return sqlitetest.Open(t) })
}
