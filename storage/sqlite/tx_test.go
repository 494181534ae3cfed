package sqlite

import (
	"context"
	"path/filepath"
	"slices"
	"testing"
)

// TestFailedCommit fails a commit that changes an organization: every cache of its facts is dropped.
func TestFailedCommit(t *testing.T) {
	s, err := Open(t.Context(), filepath.Join(t.TempDir(), "durward.db"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	key := seedConnection(t, s).ConnectionKey
	var told []string
	defer s.OnChange(func(organization string) { told = append(told, organization) })()
	write := func(fails error) error {
		return s.write(t.Context(), func(ctx context.Context, tx *writeTx) error {
			if _, err := tx.Change(ctx, key.OrganizationID); err != nil {
				return err
			}
			for _, query := range []string{`PRAGMA defer_foreign_keys = ON`, `UPDATE connections SET user_id = 'nobody'`} {
				if _, err := tx.Exec(ctx, query); err != nil {
					t.Error(err)
				}
			}
			return fails
		})
	}
	if err := write(nil); err == nil {
		t.Fatal("it is committed")
	}
	if want := []string{key.OrganizationID}; !slices.Equal(told, want) {
		t.Errorf("told of %v, want %v", told, want)
	}
	if err := write(context.Canceled); err == nil || len(told) != 1 {
		t.Errorf("told of %v after a write that was given up: %v", told, err)
	}
	if _, err := s.Connection(t.Context(), key); err != nil {
		t.Errorf("the connection: %v", err)
	}
}
