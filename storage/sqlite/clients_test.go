package sqlite

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/durward-gateway/durward/storage"
)

// TestUnusedClients checks that registered clients with which nobody has logged in, each as long as can be, take less than
// 20 MB, because the oldest of too many makes room. One that was used stays.
func TestUnusedClients(t *testing.T) {
	t.Parallel()
	s := open(t, Options{})
	bytes := func() (n int64) {
		t.Helper()
		if err := s.writer.QueryRowContext(t.Context(), `SELECT page_count * page_size FROM pragma_page_count, pragma_page_size`).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	before := bytes()
	begin := time.Date(2026, 8, 1, 12, 0, 0, 0, time.UTC)
	register := func(after time.Duration) string {
		t.Helper()
		c := storage.RegisteredClient{
			ID: strings.ReplaceAll(uuid.NewString()+"-"+uuid.NewString(), "-", "")[:52], AuthMethod: "client_secret_basic", SecretHash: make([]byte, 64),
			RedirectURIs: []string{strings.Repeat("a", storage.MaxClientTexts-len(`[""]`))}, GrantTypes: []string{"authorization_code", "refresh_token"}, CreatedAt: begin.Add(after),
		}
		if err := s.RegisterClient(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		return c.ID
	}
	used, first, second := register(0), register(time.Microsecond), register(2*time.Microsecond)
	if err := s.ClientLoggedIn(t.Context(), used, begin); err != nil {
		t.Fatal(err)
	}
	// The others come in one statement: one by one they take a minute.
	_, err := s.writer.ExecContext(t.Context(), `WITH RECURSIVE more(n) AS (SELECT 3 UNION ALL SELECT n + 1 FROM more WHERE n < $1)
		INSERT INTO registered_clients SELECT hex(randomblob(26)), name, auth_method, secret_hash, redirect_uris, grant_types, created_at + n, logged_in_at
		FROM more, registered_clients WHERE id = $2`, storage.MaxUnusedClients, first)
	if err != nil {
		t.Fatal(err)
	}
	for step, known := range []map[string]bool{{used: true, first: true, second: true}, {used: true, first: false, second: true}, {used: true, first: false, second: false}} {
		for id, want := range known {
			if _, err := s.RegisteredClient(t.Context(), id); (err == nil) != want || err != nil && !errors.Is(err, storage.ErrNotFound) {
				t.Errorf("step %d: %v, want that it is known: %v", step, err, want)
			}
		}
		register(time.Minute + time.Duration(step))
	}
	var number int
	if err := s.writer.QueryRowContext(t.Context(), `SELECT count(*) FROM registered_clients`).Scan(&number); err != nil || number != storage.MaxUnusedClients+1 {
		t.Errorf("%d clients, %v", number, err)
	}
	if grown := bytes() - before; grown > 20_000_000 || grown < storage.MaxUnusedClients*storage.MaxClientTexts {
		t.Errorf("the clients take %d bytes", grown)
	}
}
