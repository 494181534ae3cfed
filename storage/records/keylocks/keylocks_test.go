package keylocks

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/durward-gateway/durward/storage"
)

func TestLocksAreFairAndLeaveNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var locks Locks
		key := storage.ConnectionKey{ServerID: "a"}
		release, err := locks.Acquire(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		if free, err := locks.Acquire(t.Context(), storage.ConnectionKey{ServerID: "b"}); err != nil {
			t.Fatal("another key waited")
		} else {
			free()
		}
		var order []int
		var mu sync.Mutex
		impatient, cancel := context.WithCancel(t.Context())
		for i := range 5 {
			go func() {
				ctx := t.Context()
				if i == 2 {
					ctx = impatient
				}
				release, err := locks.Acquire(ctx, key)
				if err != nil {
					if i != 2 || !errors.Is(err, context.Canceled) {
						t.Errorf("waiter %d: %v", i, err)
					}
					return
				}
				mu.Lock()
				order = append(order, i)
				mu.Unlock()
				release()
			}()
			synctest.Wait() // it queues before the next one
		}
		cancel()
		synctest.Wait()
		release()
		synctest.Wait()
		if len(order) != 4 || order[0] != 0 || order[1] != 1 || order[2] != 3 || order[3] != 4 {
			t.Errorf("turns %v, want 0 1 3 4", order)
		}
		if len(locks.held) != 0 {
			t.Errorf("%d keys are left", len(locks.held))
		}
	})
}

// A turn that comes at the moment a waiter gives up goes to the next: were it lost, the last one would wait forever.
func TestLocksPassOnRefusedTurns(t *testing.T) {
	t.Parallel()
	var locks Locks
	key := storage.ConnectionKey{ServerID: "a"}
	for range 500 {
		synctest.Test(t, func(t *testing.T) {
			release, err := locks.Acquire(t.Context(), key)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			go func() {
				if release, err := locks.Acquire(ctx, key); err == nil {
					release()
				}
			}()
			synctest.Wait()
			cancel() // the waiter wakes up to leave the queue, and at the same moment
			release()
			synctest.Wait()
			if len(locks.held) != 0 {
				t.Fatal("the turn was lost")
			}
		})
	}
}
