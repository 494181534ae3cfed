package sqlite

import (
	"context"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"modernc.org/sqlite"

	"github.com/durward-gateway/durward/storage"
	"github.com/durward-gateway/durward/storage/records"
)

// driver is the store in the form that the records use. It ignores scopes and locks: there is one writer.
type driver struct{ s *Store }

func (d driver) Read(ctx context.Context, _ records.Access, f func(ctx context.Context, q records.Querier) error) error {
	return d.s.read(ctx, f)
}

func (d driver) ReadSnapshot(ctx context.Context, _ records.Access, f func(ctx context.Context, q records.Querier) error) error {
	return d.s.readSnapshot(ctx, f)
}

func (d driver) Write(ctx context.Context, _ records.Access, _ records.Lock, f func(ctx context.Context, tx records.Tx) error) error {
	return d.s.write(ctx, func(ctx context.Context, tx *writeTx) error { return f(ctx, tx) })
}

func (d driver) LockConnection(ctx context.Context, key storage.ConnectionKey) (release func(), err error) {
	if release, err = d.s.locks.Acquire(ctx, key); err != nil {
		return nil, d.s.translate(ctx, err)
	}
	return release, nil
}

// read runs f on the read-only connections. Each of its queries sees its own state of the database.
func (s *Store) read(ctx context.Context, f func(ctx context.Context, q records.Querier) error) error {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	return s.translate(ctx, f(ctx, s.reads))
}

// readSnapshot runs f in a read transaction: all its queries see one state.
func (s *Store) readSnapshot(ctx context.Context, f func(ctx context.Context, q records.Querier) error) error {
	return s.read(ctx, func(ctx context.Context, _ records.Querier) error {
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

// handOn passes rows on and closes them.
func handOn(rows *sql.Rows, each func(records.Row) (more bool, err error)) error {
	defer func() { _ = rows.Close() }() // Err gives the reason
	for rows.Next() {
		more, err := each(rows)
		if err != nil {
			return err
		}
		if !more {
			return rows.Close()
		}
	}
	return rows.Err()
}

// listed writes lists of texts for json_each. Texts are in hexadecimal: JSON, and SQLite's reader of it, would
// replace texts that are not UTF-8 or have a NUL.
func listed(args []any) []any {
	for i, arg := range args {
		texts, ok := arg.([]string)
		if !ok {
			continue
		}
		coded := make([]string, len(texts))
		for j, text := range texts {
			coded[j] = hex.EncodeToString([]byte(text))
		}
		list, err := json.Marshal(coded)
		if err != nil {
			panic(err) // it is made of plain letters
		}
		args = slices.Clone(args)
		args[i] = string(list)
	}
	return args
}

// writeTx is a write transaction and the organizations whose facts it changes.
type writeTx struct {
	tx      *sql.Tx
	wrote   bool
	changed []string
}

// write runs f in a write transaction. When the commit has returned it is on the disk; then the change listeners run.
func (s *Store) write(ctx context.Context, f func(ctx context.Context, tx *writeTx) error) error {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	changed, err := s.commit(ctx, f)
	for _, organization := range changed {
		s.changes.Notify(organization)
	}
	if err != nil {
		s.failing.CompareAndSwap(false, isDiskError(err))
		return s.translate(ctx, err)
	}
	return nil
}

// commit runs f and commits. Even after a failed commit it returns the changed organizations: the disk may have
// stored the write nevertheless, and cached facts must not outlive it.
func (s *Store) commit(ctx context.Context, f func(ctx context.Context, tx *writeTx) error) (changed []string, err error) {
	tx, err := s.writer.BeginTx(ctx, nil)
	if err != nil {
		return nil, err
	}
	defer func() { _ = tx.Rollback() }() // also when f panics; after a commit this does nothing
	w := &writeTx{tx: tx}
	if err := f(ctx, w); err != nil {
		return nil, err
	}
	if err := tx.Commit(); err != nil {
		return w.changed, err
	}
	if s.failing.Load() || len(w.changed) > 0 {
		s.failing.Store(false)
	}
	return w.changed, nil
}

// Query implements records.Querier. A statement that writes and returns rows has written when it returns one.
func (t *writeTx) Query(ctx context.Context, query string, args []any, each func(records.Row) (more bool, err error)) error {
	rows, err := t.tx.QueryContext(ctx, query, listed(args)...)
	if err != nil {
		return err
	}
	if strings.HasPrefix(query, "SELECT") {
		return handOn(rows, each)
	}
	return handOn(rows, func(r records.Row) (more bool, err error) {
		t.wrote = true
		return each(r)
	})
}

// Exec implements records.Tx.
func (t *writeTx) Exec(ctx context.Context, query string, args ...any) (int64, error) {
	return t.count(t.tx.ExecContext(ctx, query, listed(args)...))
}

func (t *writeTx) count(result sql.Result, err error) (int64, error) {
	if err != nil {
		return 0, err
	}
	n, err := result.RowsAffected()
	t.wrote = t.wrote || n > 0
	return n, err
}

// ExecEach implements records.Tx. The statement is prepared once.
func (t *writeTx) ExecEach(ctx context.Context, query string, args [][]any) error {
	if len(args) == 0 {
		return nil
	}
	statement, err := t.tx.PrepareContext(ctx, query)
	if err != nil {
		return err
	}
	defer func() { _ = statement.Close() }() // the transaction's end gives the error
	for _, some := range args {
		if _, err := t.count(statement.ExecContext(ctx, some...)); err != nil {
			return err
		}
	}
	return nil
}

// Part implements records.Tx.
func (t *writeTx) Part(ctx context.Context, f func() error) error {
	if _, err := t.tx.ExecContext(ctx, `SAVEPOINT part`); err != nil {
		return err
	}
	wrote := t.wrote
	err := f()
	if err == nil {
		_, err := t.tx.ExecContext(ctx, `RELEASE part`)
		return err
	}
	t.wrote = wrote
	if _, undoing := t.tx.ExecContext(ctx, `ROLLBACK TO part; RELEASE part`); undoing != nil {
		return errors.Join(undoing, err)
	}
	if refused := new(sqlite.Error); errors.As(err, &refused) {
		return translateCode(refused)
	}
	return err
}

// changeLogLength is the number of rows of the change log that are kept.
const changeLogLength = 10_000

const (
	countEpochSQL  = `INSERT INTO epochs (organization_id, epoch) VALUES ($1, 1) ON CONFLICT (organization_id) DO UPDATE SET epoch = epochs.epoch + 1 RETURNING epoch`
	logChangeSQL   = `INSERT INTO change_log (organization_id, epoch) VALUES ($1, $2) RETURNING seq`
	trimChangesSQL = `DELETE FROM change_log WHERE seq <= $1`
)

// Change implements records.Tx.
func (t *writeTx) Change(ctx context.Context, organization string) (epoch int64, err error) {
	if err := t.tx.QueryRowContext(ctx, countEpochSQL, organization).Scan(&epoch); err != nil {
		return 0, err
	}
	t.wrote = true
	var seq int64
	if err := t.tx.QueryRowContext(ctx, logChangeSQL, organization, epoch).Scan(&seq); err != nil {
		return 0, err
	}
	if _, err := t.Exec(ctx, trimChangesSQL, seq-changeLogLength); err != nil {
		return 0, err
	}
	if !slices.Contains(t.changed, organization) {
		t.changed = append(t.changed, organization)
	}
	return epoch, nil
}

// Edit implements records.Tx.
func (t *writeTx) Edit(edit func() error) error { return records.Edited(edit()) }

// Within implements records.Tx.
func (t *writeTx) Within(_ context.Context, _ records.Scope, f func() error) error { return f() }

// Wrote implements records.Tx.
func (t *writeTx) Wrote() bool { return t.wrote }
