package sqlite

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/durward-gateway/durward/storage"
)

func benchStore(b *testing.B) (*Store, storage.Connection) {
	b.Helper()
	s, err := Open(b.Context(), filepath.Join(b.TempDir(), "durward.db"), Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = s.Close() })
	return s, seedConnection(b, s)
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
		if _, err := s.ServerBySlug(b.Context(), c.OrganizationID, "server"); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkServersPageOfThousand(b *testing.B) {
	s, c := benchStore(b)
	for i := range 1000 {
		if err := s.CreateServer(b.Context(), storage.Server{ID: fmt.Sprint(i), OrganizationID: c.OrganizationID, Name: fmt.Sprint("Name ", i),
			Slug: fmt.Sprint("slug-", i), DirectoryID: "entry", Status: storage.ServerActive}); err != nil {
			b.Fatal(err)
		}
	}
	f := storage.ServerFilter{OrganizationID: c.OrganizationID, UserID: c.UserID, Now: time.UnixMicro(0), Page: storage.PageRequest{Number: 3, Limit: 10}}
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
