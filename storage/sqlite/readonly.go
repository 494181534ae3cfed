package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/durward-gateway/durward/storage"
)

// errOlder says that Open would bring the schema up to date; a newer one was refused before.
var errOlder = fmt.Errorf("%w", ErrSchema)

// OpenReadOnly opens the store at path for reading, beside a running gateway or without one. Methods that write must
// not be called. The schema is not brought up to date: it returns ErrSchema when it is not that of this program.
func OpenReadOnly(ctx context.Context, path string, opts Options) (*Store, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("opening the store: %w", err)
	}
	if _, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("opening the store: %w", err)
	}
	s := newStore(opts)
	params := url.Values{"mode": {"ro"}, "_query_only": {"1"}}
	if _, err := os.Stat(path + "-wal"); opts.Momentary && errors.Is(err, fs.ErrNotExist) {
		params.Set("immutable", "1") // it is not open: SQLite would leave its log and shared memory there
	}
	if err := s.openReadOnly(ctx, path, readers, s.timeout, params); err != nil {
		return nil, errors.Join(fmt.Errorf("opening the store %s: %w", path, err), s.Close())
	}
	return s, nil
}

func (s *Store) openReadOnly(ctx context.Context, path string, size int, busy time.Duration, params url.Values) error {
	var err error
	if s.readers, err = pool(path, busy, size, params); err != nil {
		return err
	}
	version, err := schemaVersion(ctx, s.readers)
	if err != nil {
		return s.translate(ctx, err)
	}
	steps, err := migrations()
	if err != nil {
		return err
	}
	if version != len(steps) {
		return fmt.Errorf("%w: the file has schema version %d, this durward reads version %d; use the durward that the gateway runs", errOlder, version, len(steps))
	}
	if s.reads, err = prepare(ctx, s.readers); err != nil {
		return s.translate(ctx, err)
	}
	return nil
}

// KeysBefore returns the data keys of a store that Open would open, and the reason why Open would refuse its file. It
// changes nothing. There are no keys when the file is missing, or when Open would bring its schema up to date first.
func KeysBefore(ctx context.Context, path string) (keys []storage.DataKey, err error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("opening the store: %w", err)
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("opening the store: %s is not a regular file", path)
	}
	s, err := OpenReadOnly(ctx, path, Options{Momentary: true})
	if errors.Is(err, errOlder) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	keys, err = s.DataKeys(ctx)
	return keys, errors.Join(err, s.Close())
}
