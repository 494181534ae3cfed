package postgres

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/durward-gateway/durward/storage"
)

//go:embed migrations/*.sql
var migrationFiles embed.FS

// ErrSchema says that this program cannot work with the database's schema: a newer durward brought it up to date, it
// is older than this program needs, or it is the database of another program.
var ErrSchema = errors.New("unusable schema")

const (
	// hasMigrationsSQL counts our first table, and all tables, from one snapshot, because another node may be making them.
	// to_regclass has a snapshot of its own, an older one at times, and would find no first table beside all the others.
	// Counters of rate limits are in tables of their own, which can exist before ours.
	hasMigrationsSQL = `SELECT count(*) FILTER (WHERE tablename = 'schema_migrations'),
		count(*) FILTER (WHERE schemaname = current_schema() AND tablename NOT LIKE 'durward\_counters\_%' AND tablename NOT LIKE 'durward\_nodes\_%')
		FROM pg_tables WHERE schemaname = ANY (current_schemas(false))`
	schemaVersionSQL  = `SELECT COALESCE(max(version), 0) FROM schema_migrations`
	oldestWriterSQL   = `SELECT COALESCE(max(oldest_writer), 0) FROM schema_migrations`
	makeMigrationsSQL = `CREATE TABLE IF NOT EXISTS schema_migrations (
		version       BIGINT NOT NULL PRIMARY KEY,
		name          TEXT   NOT NULL,
		oldest_writer BIGINT NOT NULL, -- programs that know this version or later may write beside those that know this one
		applied_at    BIGINT NOT NULL DEFAULT (extract(epoch FROM now()) * 1000000)::bigint)`
	recordMigrationSQL = `INSERT INTO schema_migrations (version, name, oldest_writer) VALUES ($1, $2, $3)`
	forgetMigrationSQL = `DELETE FROM schema_migrations WHERE version = $1`
	unboundedSQL       = `SELECT set_config('statement_timeout', '0', true), set_config('lock_timeout', '0', true),
		set_config('idle_in_transaction_session_timeout', '0', true)`
	impatientSQL = `SET LOCAL lock_timeout = '200ms'`
	// aloneSQL waits for running writes, and makes others wait before they hold anything: each of them first reads
	// that table (beginSQL). Otherwise a write could wait for a table that a step has locked, and the step for a
	// table of the write.
	aloneSQL = `LOCK TABLE schema_migrations IN ACCESS EXCLUSIVE MODE`
)

// A step waits for nodes of the former version that use its tables, and makes later ones wait. So it gives up soon,
// before PostgreSQL takes it and a reader of several tables for a deadlock, and is tried again a moment later.
const (
	migrationPause = 100 * time.Millisecond
	migrationTries = 300
)

// migration is one numbered step. The numbers begin with 1 and have no gaps.
type migration struct {
	version int
	name    string
	// oldest is the oldest version of a program that may still write. A step that only adds names that of the step before it,
	// so that nodes of two versions run side by side while they are upgraded one by one.
	oldest   int
	up, down string
}

func migrations() ([]migration, error) {
	files, err := migrationFiles.ReadDir("migrations")
	if err != nil {
		return nil, err
	}
	var steps []migration
	for _, f := range files {
		name, up := strings.CutSuffix(f.Name(), ".up.sql")
		if !up {
			continue
		}
		m := migration{version: len(steps) + 1, name: name}
		if !strings.HasPrefix(name, fmt.Sprintf("%04d_", m.version)) {
			return nil, fmt.Errorf("migration %s is not number %d", f.Name(), m.version)
		}
		text, err := migrationFiles.ReadFile("migrations/" + f.Name())
		if err != nil {
			return nil, err
		}
		m.up = string(text)
		if _, err := fmt.Sscanf(m.up, "-- oldest writer: %d\n", &m.oldest); err != nil {
			return nil, fmt.Errorf("migration %s does not begin with its oldest writer, as in `-- oldest writer: 3`: %w", f.Name(), err)
		}
		if text, err = migrationFiles.ReadFile("migrations/" + name + ".down.sql"); err != nil {
			return nil, err
		}
		m.down = string(text)
		steps = append(steps, m)
	}
	return steps, nil
}

// migrationTimeout bounds the migrations: a large database takes hours. A migration that is cut off begins anew and
// would never end.
const migrationTimeout = 24 * time.Hour

// migrate brings the schema up to date in one transaction, under a lock: of several nodes that start at once one does
// it and the others find it done.
func (s *Store) migrate(ctx context.Context) error {
	steps, err := migrations()
	if err != nil {
		return err
	}
	var current int
	if err := s.bounded(ctx, func(ctx context.Context) (err error) {
		current, err = s.schemaVersion(ctx)
		return err
	}); err != nil || current >= len(steps) {
		return whileMigrating(err, err)
	}
	if s.options.Migrating != nil {
		s.options.Migrating(current, len(steps))
	}
	ctx, cancel := context.WithTimeout(ctx, migrationTimeout)
	defer cancel()
	return s.migrateTo(ctx, steps, len(steps))
}

// whileMigrating returns a better error for one of reading schema_migrations when another node has locked the table,
// as it does until its migration is done (aloneSQL). Data read meanwhile is valid, unless a step has locked its table
// too.
func whileMigrating(err, cause error) error {
	if refused := new(pgconn.PgError); errors.As(err, &refused) && refused.Code == codeLockTimeout {
		return unavailable(textMigrating, cause)
	}
	return err
}

// migrateTo brings the schema to a version, forward or back.
func (s *Store) migrateTo(ctx context.Context, steps []migration, version int) error {
	for tries := 1; ; tries++ {
		err := s.tryMigration(ctx, steps, version)
		var refused *pgconn.PgError
		if !errors.As(err, &refused) || refused.Code != codeLockTimeout && refused.Code != codeDeadlock || tries == migrationTries {
			return err
		}
		select {
		case <-time.After(migrationPause):
		case <-ctx.Done():
			return err
		}
	}
}

func (s *Store) tryMigration(ctx context.Context, steps []migration, version int) error {
	return pgx.BeginTxFunc(ctx, s.main, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, unboundedSQL); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, lockSQL, int64(migrationLock)); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, impatientSQL); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, makeMigrationsSQL); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, aloneSQL); err != nil {
			return err
		}
		// Another node may have been faster, and may know more steps than these.
		var current int
		if err := tx.QueryRow(ctx, schemaVersionSQL).Scan(&current); err != nil {
			return err
		}
		for ; current < version; current++ {
			m := steps[current]
			if _, err := tx.Exec(ctx, m.up, pgx.QueryExecModeSimpleProtocol); err != nil {
				return fmt.Errorf("applying migration %s: %w", m.name, err)
			}
			if _, err := tx.Exec(ctx, recordMigrationSQL, m.version, m.name, m.oldest); err != nil {
				return fmt.Errorf("recording migration %s: %w", m.name, err)
			}
		}
		for ; current > version && current <= len(steps); current-- {
			m := steps[current-1]
			if _, err := tx.Exec(ctx, m.down, pgx.QueryExecModeSimpleProtocol); err != nil {
				return fmt.Errorf("taking back migration %s: %w", m.name, err)
			}
			if _, err := tx.Exec(ctx, forgetMigrationSQL, m.version); err != nil {
				return fmt.Errorf("taking back migration %s: %w", m.name, err)
			}
		}
		return nil
	})
}

// schemaVersion reads the number of the last migration, 0 for an empty database. ErrSchema when the database has tables
// of another program.
func (s *Store) schemaVersion(ctx context.Context) (int, error) {
	var ours, all, version int
	if err := s.main.QueryRow(ctx, hasMigrationsSQL).Scan(&ours, &all); err != nil {
		return 0, err
	}
	switch {
	case ours == 0 && all > 0:
		return 0, fmt.Errorf("%w: the database's schema has tables of another program; give durward a database of its own", ErrSchema)
	case ours == 0:
		return 0, nil
	}
	err := s.main.QueryRow(ctx, schemaVersionSQL).Scan(&version)
	return version, err
}

// checkSchema returns ErrSchema when the schema is older than this program needs.
func (s *Store) checkSchema(ctx context.Context) error {
	steps, err := migrations()
	if err != nil {
		return err
	}
	version, err := s.schemaVersion(ctx)
	if err != nil {
		return s.translate(ctx, err)
	}
	if version < len(steps) {
		return fmt.Errorf("%w: the database has schema version %d, this durward needs version %d; start one with `migrate on`", ErrSchema, version, len(steps))
	}
	return nil
}

// checkArrival returns ErrArriving while another store is being copied into the database.
func (s *Store) checkArrival(ctx context.Context) error {
	var arriving int
	if err := s.main.QueryRow(ctx, hasArrivalSQL).Scan(&arriving); err != nil {
		return s.translate(ctx, err)
	}
	if arriving > 0 {
		return fmt.Errorf("%w: %w", ErrSchema, ErrArriving)
	}
	return nil
}

// knownVersion is the last migration that this program knows.
var knownVersion = func() int {
	steps, err := migrations()
	if err != nil {
		panic(err) // the files are built in
	}
	return len(steps)
}()

// checkWriter refuses writes to a schema whose oldest allowed writer is newer than this program.
func checkWriter(oldest int) error {
	if oldest <= knownVersion {
		return nil
	}
	return unavailable(textNewer, fmt.Errorf("%w: %w: writing to it takes schema version %d, this durward knows version %d", storage.ErrReadOnly, ErrSchema, oldest, knownVersion))
}
