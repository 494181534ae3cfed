package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/durward-gateway/durward/storage"
)

// tableColumnsSQL leaves out what belongs to this database and not to the store: the history of its schema, and what its
// own readers have yet to hear of. Tables are listed as they were made: whatever refers to another one comes after it.
const tableColumnsSQL = `SELECT m.name, c.name, c.type, c.pk FROM sqlite_schema m JOIN pragma_table_info(m.name) c
	WHERE m.type = 'table' AND m.name NOT IN ('schema_migrations', 'change_log') AND substr(m.name, 1, 7) <> 'sqlite_' ORDER BY m.rowid, c.cid`

// pageBytes is how much of values a page of rows holds, give or take a row.
const pageBytes = 8 << 20

// ErrInUse means that another process, a gateway most likely, has the store open.
var ErrInUse = errors.New("the store is in use")

// OpenExclusively opens the store at path for reading, and keeps every other process from it until it is closed: ErrInUse
// when one has it open. Methods that write must not be called. ErrSchema as in OpenReadOnly. The directory must be
// writable: what was committed and is still in the log is moved into the file.
func OpenExclusively(ctx context.Context, path string, opts Options) (*Store, error) {
	if opts.Timeout <= 0 {
		opts.Timeout = 5 * time.Second
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("opening the store: %w", err)
	}
	if _, err := os.Stat(path); err != nil {
		return nil, fmt.Errorf("opening the store: %w", err)
	}
	s := &Store{timeout: opts.Timeout}
	// In this mode SQLite locks the file itself when it first reads, and the connection keeps the lock. There is one
	// connection, which waits for nobody.
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

// Tables lists the tables, those that others refer to before these.
func (s *Store) Tables(ctx context.Context) (tables []storage.Table, err error) {
	type column struct {
		table, name, kind string
		key               int
	}
	var columns []column
	err = s.read(ctx, func(ctx context.Context, q querier) (err error) {
		columns, err = many(ctx, q, func(r row) (c column, err error) {
			err = r.Scan(&c.table, &c.name, &c.kind, &c.key)
			return c, err
		}, tableColumnsSQL)
		return err
	})
	if err != nil {
		return nil, err
	}
	kinds := map[string]storage.ColumnKind{"TEXT": storage.TextColumn, "INTEGER": storage.IntegerColumn, "BLOB": storage.BytesColumn}
	for _, c := range columns {
		if len(tables) == 0 || tables[len(tables)-1].Name != c.table {
			tables = append(tables, storage.Table{Name: c.table})
		}
		t := &tables[len(tables)-1]
		if c.key > 0 {
			for len(t.Key) < c.key {
				t.Key = append(t.Key, 0)
			}
			t.Key[c.key-1] = len(t.Columns)
		}
		t.Columns = append(t.Columns, storage.Column{Name: c.name, Kind: kinds[c.kind]})
	}
	return tables, nil
}

// CountRows counts a table's rows.
func (s *Store) CountRows(ctx context.Context, t storage.Table) (n int64, err error) {
	made := statementsOf(t)
	err = s.read(ctx, func(ctx context.Context, q querier) error {
		return q.QueryRowContext(ctx, made.count).Scan(&n)
	})
	return n, err
}

// Rows reads rows of a table in the order of its primary key, from behind a key on; nil is the beginning. A value is an
// int64, a string, a []byte or nil, as its column says. It reads at most limit rows, fewer when they are large, and none
// only when there are none.
func (s *Store) Rows(ctx context.Context, t storage.Table, after []any, limit int) (page [][]any, err error) {
	made := statementsOf(t)
	err = s.read(ctx, func(ctx context.Context, q querier) error {
		var rows *sql.Rows
		var err error
		if after == nil {
			rows, err = q.QueryContext(ctx, made.first, limit)
		} else {
			rows, err = q.QueryContext(ctx, made.next, append([]any{limit}, after...)...)
		}
		if err != nil {
			return err
		}
		defer func() { _ = rows.Close() }() // Err says what went wrong
		for size := 0; size < pageBytes && rows.Next(); {
			values := make([]any, len(t.Columns))
			dest := make([]any, len(values))
			for i := range values {
				dest[i] = &values[i]
			}
			if err := rows.Scan(dest...); err != nil {
				return err
			}
			for i, v := range values {
				n, err := valueSize(v, t.Columns[i].Kind)
				if err != nil {
					return fmt.Errorf("reading %s.%s: %w", t.Name, t.Columns[i].Name, err)
				}
				size += n
			}
			page = append(page, values)
		}
		return rows.Err()
	})
	return page, err
}

// valueSize is the size of a value, which is of its column's kind.
func valueSize(v any, kind storage.ColumnKind) (int, error) {
	switch v := v.(type) {
	case nil:
		return 0, nil
	case int64:
		if kind == storage.IntegerColumn {
			return 8, nil
		}
	case string:
		if kind == storage.TextColumn {
			return len(v), nil
		}
	case []byte:
		if kind == storage.BytesColumn {
			return len(v), nil
		}
	}
	return 0, fmt.Errorf("a value is a %T", v)
}

// ReplaceSealed puts another sealed value in the place of the one that a row of Rows has in a column, and reports whether
// it did: not when the row has gone or holds another value by now. Nobody is told: what it stands for stays the same.
func (s *Store) ReplaceSealed(ctx context.Context, t storage.Table, row []any, column int, sealed []byte) (replaced bool, err error) {
	made := statementsOf(t, column)
	err = s.write(ctx, func(ctx context.Context, tx *writeTx) error {
		result, err := tx.ExecContext(ctx, made.replace, append([]any{sealed, row[column]}, t.KeyOf(row)...)...)
		if err != nil {
			return err
		}
		n, err := result.RowsAffected()
		replaced = n == 1
		return err
	})
	return replaced, err
}

// tableStatements are made of the names that a table and its columns have in the schema, which no input reaches.
type tableStatements struct{ count, first, next, replace string }

// statementsOf makes the statements of a table; replace is there when the column to replace is given.
func statementsOf(t storage.Table, replaced ...int) tableStatements {
	table := quoted(t.Name)
	columns := make([]string, len(t.Columns))
	for i, c := range t.Columns {
		columns[i] = quoted(c.Name)
	}
	key, places, same := make([]string, len(t.Key)), make([]string, len(t.Key)), make([]string, len(t.Key))
	for i, at := range t.Key {
		key[i], places[i] = columns[at], "$"+strconv.Itoa(i+2)
		same[i] = columns[at] + " = $" + strconv.Itoa(i+3)
	}
	order := " ORDER BY " + strings.Join(key, ", ") + " LIMIT $1"
	made := tableStatements{
		count: "SELECT count(*) FROM " + table,
		first: "SELECT " + strings.Join(columns, ", ") + " FROM " + table + order,
		next:  "SELECT " + strings.Join(columns, ", ") + " FROM " + table + " WHERE (" + strings.Join(key, ", ") + ") > (" + strings.Join(places, ", ") + ")" + order,
	}
	for _, at := range replaced {
		made.replace = "UPDATE " + table + " SET " + columns[at] + " = $1 WHERE " + columns[at] + " = $2 AND " + strings.Join(same, " AND ")
	}
	return made
}

func quoted(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }
