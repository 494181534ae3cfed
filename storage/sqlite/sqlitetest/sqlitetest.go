// Package sqlitetest makes embedded stores for tests. The migrations run once in a process: each store is a copy of the
// first one, which saves most of the time that a test spends on its store.
package sqlitetest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/durward-gateway/durward/storage/sqlite"
)

// Open returns a new empty store, which is closed when the test ends.
func Open(tb testing.TB) *sqlite.Store {
	tb.Helper()
	return OpenAt(tb, Path(tb), sqlite.Options{})
}

// OpenAt opens the store at a path, and closes it when the test ends.
func OpenAt(tb testing.TB, path string, options sqlite.Options) *sqlite.Store {
	tb.Helper()
	store, err := sqlite.Open(tb.Context(), path, options)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = store.Close() })
	return store
}

// Path makes an empty store with today's schema in a folder of the test, and returns the file's path.
func Path(tb testing.TB) string {
	tb.Helper()
	return PathIn(tb, tb.TempDir())
}

// PathIn makes an empty store with today's schema in a folder that has none, and returns the file's path.
func PathIn(tb testing.TB, folder string) string {
	tb.Helper()
	path := filepath.Join(folder, "durward.db")
	if _, err := os.Stat(path); err == nil {
		return path
	}
	contents, err := migrated()
	if err != nil {
		tb.Fatal(err)
	}
	if err := os.WriteFile(path, contents, 0o600); err != nil {
		tb.Fatal(err)
	}
	return path
}

// migrated returns the contents of an empty store's file.
var migrated = sync.OnceValues(func() (_ []byte, err error) {
	folder, err := os.MkdirTemp("", "sqlitetest")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	path := filepath.Join(folder, "durward.db")
	store, err := sqlite.Open(context.Background(), path, sqlite.Options{})
	if err != nil {
		return nil, fmt.Errorf("making the store that tests copy: %w", err)
	}
	if err := store.Close(); err != nil { // it empties the write-ahead log into the file
		return nil, fmt.Errorf("closing the store that tests copy: %w", err)
	}
	return os.ReadFile(path)
})
