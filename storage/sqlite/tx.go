package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"sync"

	"github.com/durward-gateway/durward/storage"
)

// querier reads: on the read-only connections, in a snapshot, or in a write transaction.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// row is what *sql.Row and *sql.Rows share.
type row interface{ Scan(dest ...any) error }

// read runs f on the read-only connections. Each of its queries sees a state of its own.
func (s *Store) read(ctx context.Context, f func(ctx context.Context, q querier) error) error {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	return s.translate(ctx, f(ctx, s.reads))
}

// readSnapshot runs f in a read transaction: all its queries see one state.
func (s *Store) readSnapshot(ctx context.Context, f func(ctx context.Context, q querier) error) error {
	return s.read(ctx, func(ctx context.Context, _ querier) error {
		tx, err := s.readers.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback() }() // after a commit this does nothing
		if err := f(ctx, snapshot{tx, s.reads}); err != nil {
			return err
		}
		return tx.Commit()
	})
}

// writeTx is a write transaction and the organizations whose facts it changes.
type writeTx struct {
	*sql.Tx
	changed []string
	// record says that what WithAudit asks for is recorded although nothing else is written.
	record bool
}

// write runs f in a write transaction, which also records what storage.WithAudit asks for. When the commit has returned
// it is on the disk; then the change listeners run.
func (s *Store) write(ctx context.Context, f func(ctx context.Context, tx *writeTx) error) error {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	changed, records, err := s.commit(ctx, f)
	if err != nil {
		return s.translate(ctx, err)
	}
	for _, organization := range changed {
		s.changes.notify(organization)
	}
	if len(records) > 0 {
		if told := storage.AuditOf(ctx).Committed; told != nil {
			told(records)
		}
	}
	return nil
}

func (s *Store) commit(ctx context.Context, f func(ctx context.Context, tx *writeTx) error) (changed []string, records []storage.AuditRecord, err error) {
	tx, err := s.writer.BeginTx(ctx, nil)
	if err != nil {
		s.failing.CompareAndSwap(false, isDiskError(err))
		return nil, nil, err
	}
	defer func() { _ = tx.Rollback() }() // also when f panics; after a commit this does nothing
	w := &writeTx{Tx: tx}
	audited := storage.AuditOf(ctx)
	if records, err = w.audited(ctx, audited, f); err == nil {
		if err = tx.Commit(); err != nil && len(records) > 0 {
			audited.Release()
		}
	}
	if err != nil {
		s.failing.CompareAndSwap(false, isDiskError(err))
		return nil, nil, err
	}
	if s.failing.Load() || len(w.changed) > 0 {
		s.failing.Store(false)
	}
	return w.changed, records, nil
}

// changeLogLength is how many rows of the change log are kept.
const changeLogLength = 10_000

// change records in the transaction that the organization's facts change ("": every organization's) and returns its new
// epoch, which no other write of that organization has.
func (t *writeTx) change(ctx context.Context, organization string) (epoch int64, err error) {
	if err := t.QueryRowContext(ctx, `INSERT INTO epochs (organization_id, epoch) VALUES ($1, 1)
		ON CONFLICT (organization_id) DO UPDATE SET epoch = epochs.epoch + 1 RETURNING epoch`, organization).Scan(&epoch); err != nil {
		return 0, err
	}
	var seq int64
	if err := t.QueryRowContext(ctx, `INSERT INTO change_log (organization_id, epoch) VALUES ($1, $2) RETURNING seq`,
		organization, epoch).Scan(&seq); err != nil {
		return 0, err
	}
	if _, err := t.ExecContext(ctx, `DELETE FROM change_log WHERE seq <= $1`, seq-changeLogLength); err != nil {
		return 0, err
	}
	if !slices.Contains(t.changed, organization) {
		t.changed = append(t.changed, organization)
	}
	return epoch, nil
}

// one reads a single row; ErrNotFound when there is none.
func one[T any](ctx context.Context, q querier, scan func(row) (T, error), query string, args ...any) (T, error) {
	v, err := scan(q.QueryRowContext(ctx, query, args...))
	if errors.Is(err, sql.ErrNoRows) {
		err = storage.ErrNotFound
	}
	return v, err
}

// many reads all rows.
func many[T any](ctx context.Context, q querier, scan func(row) (T, error), query string, args ...any) ([]T, error) {
	rows, err := q.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }() // Err says what went wrong
	var all []T
	for rows.Next() {
		v, err := scan(rows)
		if err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	return all, rows.Err()
}

// exists reports whether the query has a row.
func exists(ctx context.Context, q querier, query string, args ...any) (bool, error) {
	var n int
	err := q.QueryRowContext(ctx, query, args...).Scan(&n)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}

// execOne runs a statement that must hit a row; ErrNotFound when it does not.
func execOne(ctx context.Context, tx *writeTx, query string, args ...any) error {
	result, err := tx.ExecContext(ctx, query, args...)
	if err != nil {
		return err
	}
	n, err := result.RowsAffected()
	if err == nil && n == 0 {
		err = storage.ErrNotFound
	}
	return err
}

// listeners are the functions registered with OnChange, called in the order of their registration.
type listeners struct {
	mu  sync.Mutex
	all []*func(organization string)
}

func (l *listeners) add(f func(organization string)) (cancel func()) {
	entry := &f
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, entry) // what notify has read stays as it is
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.all = slices.DeleteFunc(slices.Clone(l.all), func(e *func(string)) bool { return e == entry })
	}
}

func (l *listeners) notify(organization string) {
	l.mu.Lock()
	all := l.all
	l.mu.Unlock()
	for _, f := range all {
		(*f)(organization)
	}
}
