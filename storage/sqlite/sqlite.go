package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"modernc.org/sqlite"

	"github.com/durward-gateway/durward/storage"
	"github.com/durward-gateway/durward/storage/records"
	"github.com/durward-gateway/durward/storage/records/keylocks"
	"github.com/durward-gateway/durward/storage/records/listeners"
)

// readers is the number of reads that run at once. SQLite reads come from the page cache: more connections than cores
// gain nothing.
const readers = 4

// Options tunes a store. The zero value is right for production.
type Options struct {
	// Timeout bounds one call, waiting for other writers included; 0 is 5 s. In UpdateConnection it bounds the
	// reading and the writing, but neither the waiting for another edit nor the edit: those have the caller's
	// context.
	Timeout time.Duration
	// Momentary leaves no files beside a store that is not open elsewhere. It is for OpenReadOnly, and for a short
	// use: writes of others meanwhile are not seen, or only partly.
	Momentary bool
}

// Store is a storage.Store in one SQLite file.
type Store struct {
	*records.Store

	writer  *sql.DB // one connection: SQLite has one writer, queueing in Go honours contexts
	readers *sql.DB
	reads   *preparedReads // on readers
	timeout time.Duration
	locks   keylocks.Locks
	changes listeners.List[string]
	closed  atomic.Bool
	// failing is set when the disk refused a write, until one succeeds: Ping then tries a real write.
	failing atomic.Bool
}

func newStore(opts Options) *Store {
	if opts.Timeout <= 0 {
		opts.Timeout = 5 * time.Second
	}
	s := &Store{timeout: opts.Timeout}
	s.Store = records.New(driver{s}, dialect)
	return s
}

// Open opens or makes the store at path, with its directory, and brings the schema up to date. The files are readable by
// their owner only. A file that a newer durward wrote, or that is not durward's, is refused with ErrSchema.
func Open(ctx context.Context, path string, opts Options) (*Store, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("opening the store: %w", err)
	}
	if err := prepareFiles(path); err != nil {
		return nil, fmt.Errorf("opening the store: %w", err)
	}
	s := newStore(opts)
	if err := s.open(ctx, path); err != nil {
		return nil, errors.Join(fmt.Errorf("opening the store %s: %w", path, err), s.Close())
	}
	return s, nil
}

func (s *Store) open(ctx context.Context, path string) error {
	var err error
	if s.writer, err = pool(path, s.timeout, 1, url.Values{
		"mode": {"rw"}, "_txlock": {"immediate"}, "_journal_mode": {"WAL"}, "_synchronous": {"FULL"},
		"_pragma": {"secure_delete(ON)", "journal_size_limit(67108864)"},
	}); err != nil {
		return err
	}
	// SQLite keeps another mode without an error where WAL's shared memory does not work (network file systems).
	var mode string
	if err := s.writer.QueryRowContext(ctx, `PRAGMA journal_mode`).Scan(&mode); err != nil {
		return s.translate(ctx, err)
	}
	if mode != "wal" {
		return fmt.Errorf("write-ahead logging does not work on this file system (journal mode is %s)", mode)
	}
	if err := migrate(ctx, s.writer); err != nil {
		return s.translate(ctx, err)
	}
	if s.readers, err = pool(path, s.timeout, readers, url.Values{"mode": {"ro"}, "_query_only": {"1"}}); err != nil {
		return err
	}
	if s.reads, err = prepare(ctx, s.readers); err != nil {
		return s.translate(ctx, err)
	}
	return s.Ping(ctx)
}

// pool opens connections with the settings that every one of them needs: enforced foreign keys, SQLite's own defences
// (against a crafted schema, and against quoted identifiers read as strings), nothing in temporary files.
func pool(path string, busy time.Duration, size int, params url.Values) (*sql.DB, error) {
	params.Set("_foreign_keys", "1")
	params.Set("_busy_timeout", strconv.FormatInt(busy.Milliseconds(), 10))
	params.Set("_defensive", "1")
	params.Set("_dqs", "0")
	params.Set("_error_rc", "1")
	params["_pragma"] = append(params["_pragma"], "trusted_schema(0)", "temp_store(MEMORY)")
	slashed := filepath.ToSlash(path)
	if !strings.HasPrefix(slashed, "/") {
		slashed = "/" + slashed
	}
	dsn := url.URL{Scheme: "file", Path: slashed, RawQuery: params.Encode()}
	connector, err := sqlite.NewConnector(dsn.String())
	if err != nil {
		return nil, err
	}
	db := sql.OpenDB(connector)
	db.SetMaxOpenConns(size)
	db.SetMaxIdleConns(size)
	return db, nil
}

// tryWriteSQL writes a row: no organization has this id, so that no caches are dropped.
const tryWriteSQL = `INSERT INTO epochs (organization_id, epoch) VALUES ('ping', 1) ON CONFLICT (organization_id) DO UPDATE SET epoch = epochs.epoch + 1`

// Ping implements storage.Store: it reads, and takes the write lock.
func (s *Store) Ping(ctx context.Context) error {
	if err := s.read(ctx, func(ctx context.Context, q records.Querier) error {
		_, err := records.One(ctx, q, records.ScanInt, schemaVersionSQL)
		return err
	}); err != nil {
		return err
	}
	return s.write(ctx, func(ctx context.Context, tx *writeTx) error {
		if !s.failing.Load() {
			return nil // nothing was written: the commit costs no sync
		}
		_, err := tx.Exec(ctx, tryWriteSQL)
		return err
	})
}

// OnChange implements storage.Store.
func (s *Store) OnChange(f func(organization string)) (cancel func()) { return s.changes.Add(f) }

// Close implements storage.Store. Closing twice is harmless.
func (s *Store) Close() error {
	if s.closed.Swap(true) {
		return nil
	}
	var errs []error
	// Readers come first: the last connection to close moves the log into the database, which a read-only one cannot.
	if s.readers != nil {
		errs = append(errs, s.readers.Close())
	}
	if s.writer != nil {
		errs = append(errs, s.writer.Close())
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("closing the store: %w", err)
	}
	return nil
}

// Interface guards
var _ storage.Store = (*Store)(nil)
