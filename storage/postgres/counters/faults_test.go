package counters

import (
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/durward-gateway/durward/internal/ratelimit/cluster/clustertest"
	"github.com/durward-gateway/durward/storage"
	"github.com/durward-gateway/durward/storage/postgres/pgtest"
)

func TestT09Faults(t *testing.T) {
	s := pgtest.NewServer(t)
	clustertest.RunFaults(t, clustertest.Faulty{
		Open: func(t *testing.T) storage.SharedCounters {
			c, err := New(s.URL())
			if err != nil {
				t.Fatal(err)
			}
			return c
		},
		Stop: func(t *testing.T) { s.Stop(t) }, Start: func(t *testing.T) { s.Start(t) },
	})
}

// TestNodesStartAtOnce checks that the tables are made once, and again when they were dropped.
func TestNodesStartAtOnce(t *testing.T) {
	database := pgtest.Database(t)
	var charged atomic.Int64
	var wait sync.WaitGroup
	for range 4 {
		wait.Go(func() {
			c, err := New(database)
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			epoch := clustertest.Epoch(t, c)
			for range 25 {
				_, ok, err := c.Charge(t.Context(), epoch, []storage.CounterCharge{{Amount: 1, Limit: 60}}, make([]storage.CounterState, 1))
				if err != nil {
					t.Error(err)
				}
				if ok {
					charged.Add(1)
				}
			}
		})
	}
	wait.Wait()
	if n := charged.Load(); n != 60 {
		t.Errorf("%d charges passed, want 60", n)
	}
	c, err := New(database)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	epoch := clustertest.Epoch(t, c)
	charge := func() error {
		_, _, err := c.Charge(t.Context(), epoch, []storage.CounterCharge{{Amount: 1, Limit: 100}}, make([]storage.CounterState, 1))
		return err
	}
	if err := charge(); err != nil {
		t.Fatal(err)
	}
	conn, err := pgx.Connect(t.Context(), database)
	if err != nil {
		t.Fatal(err)
	}
	_, err = conn.Exec(t.Context(), `DROP TABLE durward_counters_1, durward_nodes_3 CASCADE`)
	if err := errors.Join(err, conn.Close(t.Context())); err != nil {
		t.Fatal(err)
	}
	if err := charge(); err == nil {
		t.Error("charged without tables")
	}
	if err := charge(); !errors.Is(err, storage.ErrCountersLost) {
		t.Errorf("the tables were not made again, or are taken for the old ones: %v", err)
	}
}

// TestIdleConnections checks Z-F06: connections from a busy moment go back to the server, because the store may need
// them.
func TestIdleConnections(t *testing.T) {
	t.Parallel()
	const idle = 2 * time.Second
	c, err := open(pgtest.Database(t), idle)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	beat := func() error {
		_, err := c.Beat(t.Context(), "one", storage.AnyEpoch)
		return err
	}
	for c.pool.Stat().TotalConns() < MaxConns {
		var busy sync.WaitGroup
		for range 2 * MaxConns {
			busy.Go(func() {
				if err := beat(); err != nil {
					t.Error(err)
				}
			})
		}
		if busy.Wait(); t.Failed() {
			return
		}
	}
	tick := time.NewTicker(idle / 10)
	defer tick.Stop()
	late := time.After(30 * idle)
	for c.pool.Stat().TotalConns() > 1 {
		if err := beat(); err != nil { // as nodes do all the time
			t.Fatal(err)
		}
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("%d connections are open", c.pool.Stat().TotalConns())
		}
	}
}

func TestAddresses(t *testing.T) {
	for _, address := range []string{"postgres://user:secret-word@host:port/x", "host=a password=secret-word port=x"} {
		if _, err := New(address); err == nil || strings.Contains(err.Error(), "secret-word") {
			t.Errorf("%q: %v", address, err)
		}
	}
}
