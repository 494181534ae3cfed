package postgres

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/durward-gateway/durward/storage"
	"github.com/durward-gateway/durward/storage/records"
)

const (
	hasArrivalSQL    = `SELECT count(*) FROM pg_class WHERE oid = to_regclass('store_arrival')`
	makeArrivalSQL   = `CREATE TABLE store_arrival (source TEXT NOT NULL)`
	nameArrivalSQL   = `INSERT INTO store_arrival (source) VALUES ($1)`
	arrivalSourceSQL = `SELECT source FROM store_arrival`
	dropArrivalSQL   = `DROP TABLE store_arrival`
)

// Errors of a copy into a database.
var (
	// ErrArriving says that a copy of another store into the database is not complete.
	ErrArriving = errors.New("another store has not been copied into this database as a whole: start `durward migrate-store` again")
	// ErrNotEmpty says that the database holds rows that did not come from a copy.
	ErrNotEmpty = errors.New("the database is not empty")
	// ErrOtherSource says that the begun copy is from another store, or that its source has got other data keys
	// since.
	ErrOtherSource = errors.New("the copy in the database was begun from another store")
	// ErrCopying says that another process copies into the database.
	ErrCopying = errors.New("another copy into this database is running")
)

// arrivalLock is held by the one process that copies.
var arrivalLock = newLockKey("arrival")

// Arrival is a database into which another store is copied. Until Finish no gateway starts on it: Open returns
// ErrArriving.
type Arrival struct {
	*Store
	lock *pgxpool.Conn // holds arrivalLock
}

// OpenArrival opens a database to copy into, and brings its schema up to date. It returns ErrCopying when another
// process does so.
func OpenArrival(ctx context.Context, dsn string, opts Options) (*Arrival, error) {
	opts.arriving = true
	s, err := Open(ctx, dsn, opts)
	if err != nil {
		return nil, err
	}
	a := &Arrival{Store: s}
	if err := a.acquire(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("opening the store: %w", err), a.Close()) //nolint:contextcheck // what was opened is closed although ctx may have ended
	}
	return a, nil
}

func (a *Arrival) acquire(ctx context.Context) (err error) {
	if a.lock, err = a.main.Acquire(ctx); err != nil {
		return a.translate(ctx, err)
	}
	var locked bool
	if err := a.lock.QueryRow(ctx, tryLockSQL, int64(arrivalLock)).Scan(&locked); err != nil {
		return a.translate(ctx, err)
	}
	if !locked {
		a.lock.Release() // Close has nothing to give back, of which the database would warn in its log
		a.lock = nil
		return ErrCopying
	}
	return nil
}

// unlockWithin bounds how long Close waits for the database.
const unlockWithin = 5 * time.Second

// Close releases the database for other processes, which need not wait when it has returned.
func (a *Arrival) Close() error {
	if a.lock != nil {
		ctx, cancel := context.WithTimeout(context.Background(), unlockWithin)
		defer cancel()
		// The end of the connection releases the lock too, but only once the database notices it.
		_, _ = a.lock.Exec(ctx, unlockSQL, int64(arrivalLock))
		_ = a.lock.Hijack().Close(ctx)
		a.lock = nil
	}
	return a.Store.Close()
}

// Begin marks the database as the destination of a copy from source; source is a name that no two stores have. A
// begun copy from the same source continues: resumed. With anew all rows of a former copy are deleted. It returns
// ErrNotEmpty for a database that holds anything else, ErrOtherSource for one with a begun copy of another store.
func (a *Arrival) Begin(ctx context.Context, tables []storage.Table, source string, anew bool) (resumed bool, err error) {
	err = a.write(ctx, a.main, records.Everyone, migrationLock, func(ctx context.Context, tx *writeTx) error {
		begun, err := records.One(ctx, tx, records.ScanInt, hasArrivalSQL)
		if err != nil {
			return err
		}
		if begun == 0 {
			return a.beginFirst(ctx, tx, tables, source)
		}
		former, err := records.One(ctx, tx, func(r records.Row) (text string, err error) {
			err = r.Scan(&text)
			return text, err
		}, arrivalSourceSQL)
		if err != nil {
			return err
		}
		if !anew {
			if resumed = former == source; !resumed {
				return ErrOtherSource
			}
			return nil
		}
		for _, t := range tables {
			made := arrivalStatements(t)
			if _, err := tx.Exec(ctx, made.empty); err != nil {
				return err
			}
		}
		if _, err := tx.Exec(ctx, dropArrivalSQL); err != nil {
			return err
		}
		return a.beginFirst(ctx, tx, tables, source)
	})
	return resumed, err
}

func (a *Arrival) beginFirst(ctx context.Context, tx *writeTx, tables []storage.Table, source string) error {
	for _, t := range tables {
		made := records.TableStatements(t)
		rows, err := records.One(ctx, tx, records.ScanInt, made.Count)
		if err != nil {
			return err
		}
		if rows > 0 {
			return fmt.Errorf("%w: %s has rows; a gateway has run on it, or a copy came to its end", ErrNotEmpty, t.Name)
		}
	}
	if _, err := tx.Exec(ctx, makeArrivalSQL); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, nameArrivalSQL, source)
	return err
}

// LastKey returns the primary key of the last row of a table, nil when it has none: a copy in the order of keys
// continues there.
func (a *Arrival) LastKey(ctx context.Context, t storage.Table) (key []any, err error) {
	made := records.TableStatements(t)
	err = a.read(ctx, a.main, records.Everyone, func(ctx context.Context, q records.Querier) error {
		values, err := records.One(ctx, q, func(r records.Row) ([]any, error) { return records.ScanValues(r, t) }, made.Last)
		if errors.Is(err, storage.ErrNotFound) {
			return nil
		}
		if err == nil {
			key = t.KeyOf(values)
		}
		return err
	})
	return key, err
}

// AddRows adds rows to a table in one transaction. It returns storage.ErrText when one has text that PostgreSQL
// cannot keep.
func (a *Arrival) AddRows(ctx context.Context, t storage.Table, rows [][]any) error {
	args := make([]any, len(t.Columns))
	for i, c := range t.Columns {
		switch c.Kind {
		case storage.TextColumn:
			texts := make([]*string, len(rows))
			for j, row := range rows {
				text, ok := row[i].(string)
				if ok && !isStorable(text) {
					return fmt.Errorf("%s.%s of the row %.200q: %w", t.Name, c.Name, fmt.Sprint(t.KeyOf(row)), errText)
				}
				if ok {
					texts[j] = &text
				}
			}
			args[i] = texts
		case storage.IntegerColumn:
			numbers := make([]*int64, len(rows))
			for j, row := range rows {
				if n, ok := row[i].(int64); ok {
					numbers[j] = &n
				}
			}
			args[i] = numbers
		default:
			bytes := make([][]byte, len(rows))
			for j, row := range rows {
				bytes[j], _ = row[i].([]byte)
			}
			args[i] = bytes
		}
	}
	made := arrivalStatements(t)
	return a.write(ctx, a.main, records.Everyone, noLock, func(ctx context.Context, tx *writeTx) error {
		_, err := tx.Exec(ctx, made.insert, args...)
		return err
	})
}

// Finish marks the copy as complete: gateways may start.
func (a *Arrival) Finish(ctx context.Context) error {
	return a.write(ctx, a.main, records.Everyone, migrationLock, func(ctx context.Context, tx *writeTx) error {
		_, err := tx.Exec(ctx, dropArrivalSQL)
		return err
	})
}

// arrivalTexts holds statements made from the names that a table and its columns have in the schema, which no input
// reaches.
type arrivalTexts struct{ insert, empty string }

func arrivalStatements(t storage.Table) arrivalTexts {
	columns, arrays := make([]string, len(t.Columns)), make([]string, len(t.Columns))
	types := map[storage.ColumnKind]string{storage.TextColumn: "text[]", storage.IntegerColumn: "bigint[]", storage.BytesColumn: "bytea[]"}
	for i, c := range t.Columns {
		columns[i] = records.Quoted(c.Name)
		arrays[i] = "$" + strconv.Itoa(i+1) + "::" + types[c.Kind]
	}
	table := records.Quoted(t.Name)
	return arrivalTexts{
		insert: "INSERT INTO " + table + " (" + strings.Join(columns, ", ") + ") SELECT * FROM unnest(" + strings.Join(arrays, ", ") + ")",
		empty:  "TRUNCATE " + table + " CASCADE",
	}
}
