package sqlite

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
)

// Snapshot writes a copy of the store at path into a new file, beside a running gateway or without one. The copy holds
// everything that was committed when Snapshot began, and nothing of a later transaction halfway. It is compact: pages that
// hold nothing are left out. The file is readable by its owner only, and durable when Snapshot returns. It returns
// ErrSchema as OpenReadOnly does, and an error when the file exists.
func Snapshot(ctx context.Context, path, to string, opts Options) (err error) {
	from, err := OpenReadOnly(ctx, path, opts)
	if err != nil {
		return err
	}
	if err := from.Close(); err != nil {
		return err
	}
	if path, err = filepath.Abs(path); err != nil {
		return fmt.Errorf("copying the store: %w", err)
	}
	// SQLite takes an empty file for a new one. It would make its own with the rights that the umask leaves.
	file, err := os.OpenFile(to, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("copying the store: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	// The connection may write, because VACUUM INTO writes the new file through it. It opens the store itself read-only.
	db, err := pool(path, opts.Timeout, 1, url.Values{"mode": {"ro"}})
	if err != nil {
		return fmt.Errorf("copying the store: %w", err)
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if _, err := db.ExecContext(ctx, `VACUUM INTO $1`, to); err != nil {
		return fmt.Errorf("copying the store: %w", err)
	}
	if err := file.Sync(); err != nil {
		return fmt.Errorf("copying the store: %w", err)
	}
	return nil
}
