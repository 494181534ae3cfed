package postgres

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/durward-gateway/durward/storage"
	"github.com/durward-gateway/durward/storage/postgres/pgtest"
	"github.com/durward-gateway/durward/storage/storagetest"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(pgtest.Main{M: m})
}

// open makes an empty store that is closed when the test ends.
func open(t *testing.T, opts Options) *Store {
	t.Helper()
	return openAt(t, pgtest.Database(t), opts)
}

// openAt opens the store of a database.
func openAt(t *testing.T, dsn string, opts Options) *Store {
	t.Helper()
	s, err := Open(t.Context(), dsn, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func TestStore(t *testing.T) {
	t.Parallel()
	storagetest.Run(t, func(t *testing.T) storage.Store { return open(t, Options{}) })
}
