package postgres

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/durward-gateway/durward/storage"
)

// TestEndingsLookUpKeys ends as many connections at one moment as the store has database connections, or some more. In
// the transaction of each, a data key is looked up that another node has just added: none may wait for a database
// connection that only their ends would free.
func TestEndingsLookUpKeys(t *testing.T) {
	t.Parallel()
	s := open(t, Options{Timeout: 10 * time.Second, MaxConns: MinConns + 2})
	pool := s.main.Config().MaxConns
	var inside atomic.Int32
	full := make(chan struct{})
	ctx := storage.WithEnding(t.Context(), func(ctx context.Context, _ storage.Ended) ([]storage.Revocation, error) {
		if inside.Add(1) == pool {
			close(full)
		}
		<-full
		_, err := s.DataKeys(ctx)
		return nil, err
	})
	var all sync.WaitGroup
	for i := range pool + 2 {
		c := seed(t, s, "organization "+strconv.Itoa(int(i)))
		all.Go(func() {
			if _, err := s.DeleteConnection(ctx, c.ConnectionKey); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}
