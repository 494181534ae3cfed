package sqlite

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// ErrInUse says that another process, most likely a gateway, has the store open.
var ErrInUse = errors.New("the store is in use")

// OpenExclusively opens the store at path for reading, and keeps every other process out until it is closed. It
// returns ErrInUse when another process has it open, and ErrSchema as OpenReadOnly does. Methods that write must not
// be called. The directory must be writable: committed data that is still in the log is moved into the file.
func OpenExclusively(ctx context.Context, path string, opts Options) (*Store, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("opening the store: %w", err)
	}
	if _, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("opening the store: %w", err)
	}
	s := newStore(opts)
	// In this mode SQLite locks the file itself when it first reads, and the connection keeps the lock. There is only
	// one connection, which waits for no other.
	err = s.openReadOnly(ctx, path, 1, 0, url.Values{"mode": {"rw"}, "_pragma": {"locking_mode(EXCLUSIVE)"}, "_query_only": {"1"}})
	var refused *sqlite.Error
	if errors.As(err, &refused) && refused.Code()&0xff == sqlite3.SQLITE_BUSY {
		err = fmt.Errorf("%w: stop the gateway that runs on it", ErrInUse)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("opening the store %s: %w", path, err), s.Close())
	}
	return s, nil
}
