package sqlite

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"time"
)

// OpenReadOnly opens the store at path for reading, beside a gateway that runs on it or without one. Methods that write
// must not be called. The schema is not brought up to date: ErrSchema when it is not that of this program.
func OpenReadOnly(ctx context.Context, path string, opts Options) (*Store, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("opening the store: %w", err)
	}
	if _, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("opening the store: %w", err)
	}
	s := newStore(opts)
	if err := s.openReadOnly(ctx, path, readers, s.timeout, url.Values{"mode": {"ro"}, "_query_only": {"1"}}); err != nil {
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
		return fmt.Errorf("%w: the file has schema version %d, this durward reads version %d; use the durward that the gateway runs", ErrSchema, version, len(steps))
	}
	if s.reads, err = prepare(ctx, s.readers); err != nil {
		return s.translate(ctx, err)
	}
	return nil
}
