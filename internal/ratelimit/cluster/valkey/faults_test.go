package valkey

import (
	"strings"
	"testing"

	"github.com/durward-gateway/durward/internal/ratelimit/cluster/clustertest"
	"github.com/durward-gateway/durward/internal/ratelimit/cluster/valkey/valkeytest"
	"github.com/durward-gateway/durward/storage"
)

func TestT09Faults(t *testing.T) {
	s := valkeytest.New(t)
	clustertest.RunFaults(t, clustertest.Faulty{
		Open: func(t *testing.T) storage.SharedCounters {
			c, err := New(s.Address())
			if err != nil {
				t.Fatal(err)
			}
			return c
		},
		Stop: func(*testing.T) { s.Stop() }, Start: func(t *testing.T) { s.Start(t) },
		Pause: func(t *testing.T) { s.Pause(t) }, Resume: func(t *testing.T) { s.Resume(t) },
	})
}

// TestFull checks that a server without memory refuses, and then counts as unreachable.
func TestFull(t *testing.T) {
	s := valkeytest.New(t)
	c, err := New(s.Address())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	epoch := clustertest.Epoch(t, c)
	s.Do(t, "CONFIG SET maxmemory 1")
	_, _, charging := c.Charge(t.Context(), epoch, []storage.CounterCharge{{Amount: 1, Limit: 1}}, make([]storage.CounterState, 1))
	restoring := c.Restore(t.Context(), epoch, []storage.CounterSpent{{Amount: 1}})
	_, beating := c.Beat(t.Context(), "a", epoch)
	for _, err := range []error{charging, restoring, beating} {
		if err == nil || !strings.Contains(err.Error(), "OOM") {
			t.Error(err)
		}
	}
}

// TestSnapshot checks that a server that starts from a snapshot has lost the later changes.
func TestSnapshot(t *testing.T) {
	s := valkeytest.New(t)
	c, err := New(s.Address())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	before := clustertest.Epoch(t, c)
	key := storage.CounterKey{0: 1, 31: 1}
	if _, ok, err := c.Charge(t.Context(), before, []storage.CounterCharge{{Key: key, Amount: 5, Limit: 10}}, make([]storage.CounterState, 1)); err != nil || !ok {
		t.Fatal(ok, err)
	}
	s.Do(t, "SAVE")
	s.Stop()
	s.Start(t)
	after, used := clustertest.Epoch(t, c), make([]int64, 1)
	if err := c.Used(t.Context(), after, []storage.CounterKey{key}, used); err != nil || after == before || used[0] != 0 {
		t.Errorf("the epoch was %d and is %d, and the counter holds %d: %v", before, after, used[0], err)
	}
}

// TestWithoutInfo checks that counting works for users without permission for INFO.
func TestWithoutInfo(t *testing.T) {
	s := valkeytest.New(t)
	var all []*Counters
	for range 2 {
		c, err := New(s.Address())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		all = append(all, c)
	}
	before := clustertest.Epoch(t, all[0])
	s.Do(t, "ACL SETUSER default -info")
	for _, c := range all {
		if epoch := clustertest.Epoch(t, c); epoch != before {
			t.Errorf("the epoch was %d and is %d", before, epoch)
		}
	}
}

func TestAddresses(t *testing.T) {
	for _, address := range []string{"", "http://127.0.0.1", "://secret-word", "valkey://user:secret-word@[::1"} {
		if _, err := New(address); err == nil || strings.Contains(err.Error(), "secret-word") {
			t.Errorf("%q: %v", address, err)
		}
	}
}
