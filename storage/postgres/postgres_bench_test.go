package postgres

import (
	"context"
	"fmt"
	"testing"

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
