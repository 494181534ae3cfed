package postgres

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/durward-gateway/durward/storage"
	"github.com/durward-gateway/durward/storage/postgres/pgtest"
)

func benchStore(b *testing.B) (*Store, storage.Connection) {
	b.Helper()
	s, err := Open(b.Context(), pgtest.Database(b), Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = s.Close() })
	return s, seed(b, s, "a")
}

func BenchmarkConnection(b *testing.B) {
	s, c := benchStore(b)
	for b.Loop() {
		if _, err := s.Connection(b.Context(), c.ConnectionKey); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkServerBySlug(b *testing.B) {
	s, c := benchStore(b)
	for b.Loop() {
		if _, err := s.ServerBySlug(b.Context(), c.OrganizationID, "notes"); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkServersPageOfThousand(b *testing.B) {
	s, c := benchStore(b)
	for i := range 1000 {
		if err := s.CreateServer(b.Context(), storage.Server{ID: fmt.Sprint(i), OrganizationID: c.OrganizationID, Name: fmt.Sprint("Name ", i),
			Slug: fmt.Sprint("slug-", i), DirectoryID: "entry-a", Status: storage.ServerActive}); err != nil {
			b.Fatal(err)
		}
	}
	f := storage.ServerFilter{OrganizationID: c.OrganizationID, UserID: c.UserID, Now: start, Page: storage.PageRequest{Number: 3, Limit: 10}}
	for b.Loop() {
		if _, err := s.Servers(b.Context(), f); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkUpdateConnection(b *testing.B) {
	s, c := benchStore(b)
	n := 0
	for b.Loop() {
		n++
		if _, err := s.UpdateConnection(b.Context(), c.ConnectionKey, func(_ context.Context, c *storage.Connection) error {
			c.Scope = fmt.Sprint(n)
			return nil
		}); err != nil {
			b.Fatal(err)
		}
	}
}

// benchWriters is the number of callers that write at once in BenchmarkWrites, each in an organization of its own.
const benchWriters = 32

// BenchmarkWrites measures how many transactions one server commits in a second: the smallest possible one, the same
// with NOTIFY, which takes a lock of the whole server for its commit, and a write of the store, which notifies.
func BenchmarkWrites(b *testing.B) {
	parallel := func(b *testing.B, write func(writer int) error) {
		b.SetParallelism(benchWriters / 2) // times the processors
		var writers atomic.Int64
		b.RunParallel(func(pb *testing.PB) {
			writer := int(writers.Add(1) - 1)
			for pb.Next() {
				if err := write(writer); err != nil {
					b.Error(err)
					return
				}
			}
		})
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "writes/s")
	}
	for name, statement := range map[string]string{
		"plain":  `INSERT INTO written VALUES (DEFAULT)`,
		"notify": `WITH one AS (INSERT INTO written VALUES (DEFAULT) RETURNING n) SELECT pg_notify('written', n::text) FROM one`,
	} {
		b.Run(name, func(b *testing.B) {
			config, err := pgxpool.ParseConfig(pgtest.Database(b))
			if err != nil {
				b.Fatal(err)
			}
			config.MaxConns = benchWriters
			pool, err := pgxpool.NewWithConfig(b.Context(), config)
			if err != nil {
				b.Fatal(err)
			}
			defer pool.Close()
			if _, err := pool.Exec(b.Context(), `CREATE TABLE written (n bigserial)`); err != nil {
				b.Fatal(err)
			}
			parallel(b, func(int) error {
				_, err := pool.Exec(b.Context(), statement)
				return err
			})
		})
	}
	b.Run("store", func(b *testing.B) {
		s, err := Open(b.Context(), pgtest.Database(b), Options{MaxConns: benchWriters})
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = s.Close() })
		var connections []storage.Connection
		for i := range benchWriters {
			connections = append(connections, seed(b, s, fmt.Sprint("organization", i)))
		}
		parallel(b, func(writer int) error { return put(s, connections[writer%benchWriters]) })
	})
}
