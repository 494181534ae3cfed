package sqlite

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/durward-gateway/durward/storage"
	"github.com/durward-gateway/durward/storage/storagetest"
)

var keyTime = time.UnixMicro(1_700_000_000_000_000).UTC()

// seedAPIKey stores a user's key.
func seedAPIKey(tb testing.TB, s *Store) storage.APIKey {
	tb.Helper()
	c := seedConnection(tb, s)
	k := storage.APIKey{ID: "key", OrganizationID: c.OrganizationID, Name: "Key", Prefix: "dw-12345", HMAC: bytes.Repeat([]byte{7}, storage.APIKeyHMACSize),
		Scopes: []string{"llm"}, UserID: c.UserID, CreatedBy: c.UserID, CreatedAt: keyTime}
	if err := s.CreateAPIKey(tb.Context(), k); err != nil {
		tb.Fatal(err)
	}
	return k
}

// K08: a revocation that the disk refuses is not acknowledged, is not reported, and has not happened; when it is
// acknowledged, it is in the files, whatever happens to the process.
func TestRevokedKeyIsDurable(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "durward.db")
	s, err := Open(t.Context(), path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	k := seedAPIKey(t, s)
	told := 0
	defer s.OnChange(func(string) { told++ })()
	if _, err := s.writer.ExecContext(t.Context(), `PRAGMA query_only = 1`); err != nil {
		t.Fatal(err)
	}
	for name, revoke := range map[string]func() error{
		"the key": func() error { _, err := s.RevokeAPIKey(t.Context(), k.OrganizationID, k.ID, keyTime); return err },
		"an own key": func() error {
			_, err := s.RevokeUserAPIKey(t.Context(), k.OrganizationID, k.UserID, k.ID, keyTime)
			return err
		},
		"its user": func() error { _, err := s.RevokeUser(t.Context(), k.OrganizationID, k.UserID, keyTime); return err },
		"disabled": func() error {
			_, err := s.UpdateAPIKey(t.Context(), k.OrganizationID, k.ID, func(k *storage.APIKey) error { k.Disabled = true; return nil })
			return err
		},
	} {
		if err := revoke(); !errors.Is(err, storage.ErrUnavailable) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if h, err := s.APIKeyByHMAC(t.Context(), k.HMAC); err != nil || !h.Valid(keyTime) || told != 0 {
		t.Errorf("after refusals: %+v, %v, told %d times", h, err, told)
	}
	if _, err := s.writer.ExecContext(t.Context(), `PRAGMA query_only = 0`); err != nil {
		t.Fatal(err)
	}
	if _, err := s.RevokeAPIKey(t.Context(), k.OrganizationID, k.ID, keyTime); err != nil || told != 1 {
		t.Fatalf("got %v, told %d times", err, told)
	}

	left := filepath.Join(t.TempDir(), "durward.db") // the files that a process leaves that is killed now
	for _, suffix := range []string{"", "-wal"} {
		data, err := os.ReadFile(path + suffix)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(left+suffix, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	after, err := Open(t.Context(), left, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer after.Close()
	if h, err := after.APIKeyByHMAC(t.Context(), k.HMAC); err != nil || h.Valid(keyTime) {
		t.Errorf("got %+v, %v", h, err)
	}
}

// K01: a key is found by its whole HMAC in an index, never by comparing keys one by one.
func TestAPIKeyLookupIsIndexed(t *testing.T) {
	t.Parallel()
	s := open(t, Options{})
	for name, want := range map[string]string{
		"apiKeyByHMACSQL":     "(hmac=?)",
		"revokeKeysOfUserSQL": "(organization_id=? AND user_id=?)",
		"referredSQL":         "(organization_id=? AND kind=? AND target=?)",
	} {
		query := storagetest.Statement(t, "../records", name)
		var id, parent, unused int
		var plan string
		row := s.writer.QueryRowContext(t.Context(), `EXPLAIN QUERY PLAN `+query, "a", "b", "c", "d")
		if err := row.Scan(&id, &parent, &unused, &plan); err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(plan, "SEARCH") || !strings.HasSuffix(plan, want) {
			t.Errorf("%s: %s", query, plan)
		}
	}
}

func BenchmarkAPIKeyByHMAC(b *testing.B) {
	s, err := Open(b.Context(), filepath.Join(b.TempDir(), "durward.db"), Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	k := seedAPIKey(b, s)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.APIKeyByHMAC(b.Context(), k.HMAC); err != nil {
			b.Fatal(err)
		}
	}
}

// One operation adds a batch of a thousand rows that are there already.
func BenchmarkAddUsage(b *testing.B) {
	s, err := Open(b.Context(), filepath.Join(b.TempDir(), "durward.db"), Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	batch := storage.UsageBatch{Node: "node"}
	for i := range 1000 {
		batch.Usage = append(batch.Usage, storage.Usage{OrganizationID: "organization", Hour: keyTime, UserID: string(rune('A' + i)),
			UsageCounts: storage.UsageCounts{Requests: 1, InputTokens: 100, OutputTokens: 10, Cost: 1000}})
	}
	b.ReportAllocs()
	for b.Loop() {
		batch.Number++
		if _, err := s.AddUsage(b.Context(), batch); err != nil {
			b.Fatal(err)
		}
	}
}
