package sqlite

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/durward-gateway/durward/storage"
)

// Callers that leave in the middle of writes break nothing: acknowledged writes are there, the connections that the
// driver had to interrupt are replaced with the same settings, and the store continues to work.
func TestCanceledWriters(t *testing.T) {
	t.Parallel()
	s := open(t, Options{Timeout: time.Minute})
	acked := make([]bool, 401)
	var all sync.WaitGroup
	for worker := range 8 {
		all.Go(func() {
			for i := 1; i <= 50; i++ {
				version := worker*50 + i
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rand.Int64N(int64(3*time.Millisecond))))
				switch err := s.AddDataKey(ctx, storage.DataKey{Version: version, Wrapped: []byte{1}}); {
				case err == nil:
					acked[version] = true
				case !errors.Is(err, storage.ErrUnavailable):
					t.Errorf("write %d: %v", version, err)
				}
				_, _ = s.DataKeys(ctx)
				cancel()
			}
		})
	}
	all.Wait()
	keys, err := s.DataKeys(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range keys {
		acked[k.Version] = false
	}
	for version, lost := range acked {
		if lost {
			t.Errorf("write %d was acknowledged and is lost", version)
		}
	}
	var settings [3]string
	for i, query := range []string{`PRAGMA synchronous`, `PRAGMA foreign_keys`, `PRAGMA integrity_check`} {
		if err := s.writer.QueryRowContext(t.Context(), query).Scan(&settings[i]); err != nil {
			t.Fatal(err)
		}
	}
	if settings != [3]string{"2", "1", "ok"} {
		t.Errorf("settings %q", settings)
	}
	if err := s.AddDataKey(t.Context(), storage.DataKey{Version: 1000, Wrapped: []byte{1}}); err != nil {
		t.Error(err)
	}
	t.Logf("%d of 400 writes came through", len(keys))
}
