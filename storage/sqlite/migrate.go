package sqlite

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"strings"
)

//go:embed migrations/*.sql
var migrationFiles embed.FS

// ErrSchema says that this program cannot work with the file's schema: a newer durward wrote it, or it is the
// database of another program.
var ErrSchema = errors.New("unusable schema")

const (
	hasMigrationsSQL = `SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = 'schema_migrations'`
	countObjectsSQL  = `SELECT count(*) FROM sqlite_master`
	schemaVersionSQL = `SELECT COALESCE(max(version), 0) FROM schema_migrations`
)

// migration is one numbered step. The numbers begin with 1 and have no gaps.
type migration struct {
	version int
	name    string
	up      string
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
		version := len(steps) + 1
		if !strings.HasPrefix(name, fmt.Sprintf("%04d_", version)) {
			return nil, fmt.Errorf("migration %s is not number %d", f.Name(), version)
		}
		text, err := migrationFiles.ReadFile("migrations/" + f.Name())
		if err != nil {
			return nil, err
		}
		steps = append(steps, migration{version, name, string(text)})
	}
	return steps, nil
}

// migrate brings the schema up to date in one transaction. It takes SQLite's write lock first, so that of several
// processes one migrates and the others find it done.
func migrate(ctx context.Context, db *sql.DB) error {
	steps, err := migrations()
	if err != nil {
		return err
	}
	if current, err := schemaVersion(ctx, db); err != nil || current == len(steps) {
		return err
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // after a commit this does nothing
	current, err := schemaVersion(ctx, tx)
	if err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, `CREATE TABLE IF NOT EXISTS schema_migrations (
		version INTEGER NOT NULL PRIMARY KEY, name TEXT NOT NULL, applied_at INTEGER NOT NULL DEFAULT (unixepoch() * 1000000)) STRICT`); err != nil {
		return err
	}
	for _, m := range steps[min(current, len(steps)):] {
		if _, err := tx.ExecContext(ctx, m.up); err != nil {
			return fmt.Errorf("applying migration %s: %w", m.name, err)
		}
		if _, err := tx.ExecContext(ctx, `INSERT INTO schema_migrations (version, name) VALUES ($1, $2)`, m.version, m.name); err != nil {
			return fmt.Errorf("recording migration %s: %w", m.name, err)
		}
	}
	return tx.Commit()
}

// schemaVersion reads the number of the last migration, 0 for an empty file.
func schemaVersion(ctx context.Context, q interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
},
) (int, error) {
	steps, err := migrations()
	if err != nil {
		return 0, err
	}
	var tables, objects, version int
	if err := q.QueryRowContext(ctx, hasMigrationsSQL).Scan(&tables); err != nil {
		return 0, err
	}
	if tables == 0 {
		if err := q.QueryRowContext(ctx, countObjectsSQL).Scan(&objects); err != nil {
			return 0, err
		}
		if objects > 0 {
			return 0, fmt.Errorf("%w: this is a database of another program", ErrSchema)
		}
		return 0, nil
	}
	if err := q.QueryRowContext(ctx, schemaVersionSQL).Scan(&version); err != nil {
		return 0, err
	}
	if version > len(steps) {
		return 0, fmt.Errorf("%w: the file has schema version %d, this durward knows versions up to %d; start a newer durward, or restore the backup made before the upgrade",
			ErrSchema, version, len(steps))
	}
	return version, nil
}
