package counters

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/goleak"

	"github.com/durward-gateway/durward/internal/ratelimit/cluster/clustertest"
	"github.com/durward-gateway/durward/storage"
	"github.com/durward-gateway/durward/storage/postgres/pgtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(pgtest.Main{M: m}) }

func TestCounters(t *testing.T) {
	clustertest.Run(t, func(t *testing.T) clustertest.Server {
		database := pgtest.Database(t)
		pool, err := pgxpool.New(context.Background(), database)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(pool.Close)
		open := func(t *testing.T) storage.SharedCounters {
			c, err := New(database)
			if err != nil {
				t.Fatal(err)
			}
			return c
		}
		// The schema is there before its clock is stopped.
		first := open(t)
		if _, err := first.Beat(t.Context(), "nobody", storage.AnyEpoch); err != nil {
			t.Fatal(err)
		}
		if err := first.Close(); err != nil {
			t.Fatal(err)
		}
		exec := func(t *testing.T, statement string) {
			t.Helper()
			if _, err := pool.Exec(t.Context(), statement); err != nil {
				t.Fatal(err)
			}
		}
		exec(t, `DELETE FROM durward_nodes_3; CREATE TABLE stopped (at numeric); INSERT INTO stopped VALUES (NULL);
			CREATE OR REPLACE FUNCTION durward_counters_now_1() RETURNS numeric LANGUAGE sql VOLATILE AS
				$$ SELECT coalesce((SELECT at FROM stopped), extract(epoch FROM clock_timestamp())) - 1700000000 $$`)
		return clustertest.Server{
			Open: open,
			Set: func(t *testing.T, at time.Time) {
				t.Helper()
				exec(t, fmt.Sprintf(`UPDATE stopped SET at = %d / 1000000.0`, at.UnixMicro()))
			},
			Keys: func(t *testing.T) (n int) {
				t.Helper()
				if err := pool.QueryRow(t.Context(), `SELECT count(*) FROM durward_counters_1 WHERE key <> ''`).Scan(&n); err != nil {
					t.Fatal(err)
				}
				return n
			},
		}
	})
}

func BenchmarkCharge(b *testing.B) {
	c, err := New(pgtest.Database(b))
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	clustertest.Benchmark(b, c)
}
