package valkey

import (
	"strings"
	"testing"

	"github.com/durward-gateway/durward/internal/coordinate/coordinatetest"
	"github.com/durward-gateway/durward/internal/coordinate/valkey/valkeytest"
	"github.com/durward-gateway/durward/storage"
)

func TestT09Faults(t *testing.T) {
	s := valkeytest.New(t)
	coordinatetest.RunFaults(t, coordinatetest.Faulty{
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

// TestFull: a server without memory refuses, and is no server then.
func TestFull(t *testing.T) {
	s := valkeytest.New(t)
	c, err := New(s.Address())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	epoch := coordinatetest.Epoch(t, c)
	s.Do(t, "CONFIG SET maxmemory 1")
	_, _, charging := c.Charge(t.Context(), epoch, []storage.CounterCharge{{Amount: 1, Limit: 1}}, make([]storage.CounterState, 1))
	restoring := c.Restore(t.Context(), epoch, []storage.CounterSpent{{Amount: 1}})
	_, _, beating := c.Beat(t.Context(), "a")
	for _, err := range []error{charging, restoring, beating} {
		if err == nil || !strings.Contains(err.Error(), "OOM") {
			t.Error(err)
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
