package postgres

import (
	"context"
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
	return openAt(t, pgtest.Copy(t, migrated), opts)
}

// migrated brings the schema of an empty database up to date.
func migrated(dsn string) error {
	s, err := Open(context.Background(), dsn, Options{})
	if err != nil {
		return err
	}
	return s.Close()
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
