package audit

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/durward-gateway/durward/storage"
)

// busyStore is one that a gateway ships to while it is read.
type busyStore struct {
	*memory
	once sync.Once
	ship func()
}

func (s *busyStore) AuditChunks(ctx context.Context, f storage.AuditFilter) ([]storage.AuditChunk, error) {
	s.once.Do(s.ship)
	return s.memory.AuditChunks(ctx, f)
}

// TestEverythingOnce: each record comes once, also when a gateway ships it, and removes its segment, while it is read.
func TestEverythingOnce(t *testing.T) {
	for _, meanwhile := range []string{"nothing happens", "shipped", "shipped and removed"} {
		t.Run(meanwhile, func(t *testing.T) {
			o := testOptions(t, t.TempDir())
			j := openJournal(t, o)
			store := new(memory)
			s := newShipper(j, store)
			var want []string
			add := func(n int) {
				for range n {
					e := intent(fmt.Sprint("tool ", len(want)))
					if err := j.Append(acme, e); err != nil {
						t.Fatal(err)
					}
					want = append(want, e.Tool)
				}
			}
			ship := func() {
				if err := s.ship(t.Context()); err != nil {
					t.Error(err)
				}
			}
			add(5)
			ship()
			add(5)
			busy := &busyStore{memory: store, ship: func() {
				switch meanwhile {
				case "shipped":
					ship()
				case "shipped and removed":
					if err := j.Close(); err != nil {
						t.Error(err)
					}
					s.growing = func() int { return maxSegment }
					ship()
				}
			}}
			var got []string
			if err := Everything(t.Context(), o.Dir, busy, acme, time.Now().Add(-time.Hour), time.Now().Add(time.Hour), func(r *storage.AuditRecord) error {
				e, err := EntryOf(r)
				got = append(got, e.Tool)
				return err
			}); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
