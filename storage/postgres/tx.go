package postgres

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/durward-gateway/durward/storage"
	"github.com/durward-gateway/durward/storage/records"
)

// driver is the store in the form that the records use.
type driver struct{ s *Store }

func (d driver) Read(ctx context.Context, a records.Access, f func(ctx context.Context, q records.Querier) error) error {
	return d.s.read(ctx, d.pool(a), a.Scope, f)
}

func (d driver) ReadSnapshot(ctx context.Context, a records.Access, f func(ctx context.Context, q records.Querier) error) error {
	return d.s.readSnapshot(ctx, d.pool(a), a.Scope, f)
}

func (d driver) Write(ctx context.Context, a records.Access, lock records.Lock, f func(ctx context.Context, tx records.Tx) error) error {
	return d.s.write(ctx, d.pool(a), a.Scope, keyOf(lock), func(ctx context.Context, tx *writeTx) error { return f(ctx, tx) })
}

func (d driver) LockConnection(ctx context.Context, key storage.ConnectionKey) (release func(), err error) {
	if release, err = d.s.edits.acquire(ctx, key, d.s.timeout); err != nil {
		return nil, d.s.translate(ctx, err)
	}
	return release, nil
}

// pool separates authentication from other work.
func (d driver) pool(a records.Access) *pgxpool.Pool {
	if a.Authenticates {
		return d.s.authenticate
	}
	return d.s.main
}

// sender is a pool, a connection or a transaction.
type sender interface {
	SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults
}

// setScopeSQL tells the database whose rows to show until the transaction ends.
const setScopeSQL = `SELECT set_config('durward.organization', $1, true)`

// reader reads within a scope. Each query goes out together with its scope, in one round trip: without a transaction
// around them the two are one.
type reader struct {
	on    sender
	scope records.Scope
}

// Query implements records.Querier.
func (r reader) Query(ctx context.Context, query string, args []any, each func(records.Row) (more bool, err error)) error {
	var batch pgx.Batch
	batch.Queue(setScopeSQL, storable(string(r.scope)))
	batch.Queue(query, storableArgs(args)...)
	results := r.on.SendBatch(ctx, &batch)
	if _, err := results.Exec(); err != nil {
		return errors.Join(err, results.Close())
	}
	rows, err := results.Query()
	if err != nil {
		return errors.Join(err, results.Close())
	}
	if _, err = handOn(rows, each); err != nil {
		_ = results.Close() // err gives the reason
		return err
	}
	return results.Close()
}

// handOn passes rows on and closes them.
func handOn(rows pgx.Rows, each func(records.Row) (more bool, err error)) (pgconn.CommandTag, error) {
	defer rows.Close()
	for rows.Next() {
		more, err := each(rows)
		if err != nil {
			return pgconn.CommandTag{}, err
		}
		if !more {
			rows.Close()
		}
	}
	return rows.CommandTag(), rows.Err()
}

// read runs f in a scope. Each of its queries sees a state of its own.
func (s *Store) read(ctx context.Context, pool *pgxpool.Pool, scope records.Scope, f func(ctx context.Context, q records.Querier) error) error {
	if err := s.fresh(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, s.timeout*2/5)
	defer cancel()
	return s.translate(ctx, again(func() error { return f(ctx, reader{pool, scope}) }))
}

// readSnapshot runs f in a read transaction: all its queries see one state.
func (s *Store) readSnapshot(ctx context.Context, pool *pgxpool.Pool, scope records.Scope, f func(ctx context.Context, q records.Querier) error) error {
	return s.read(ctx, pool, scope, func(ctx context.Context, _ records.Querier) error {
		tx, err := pool.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly})
		if err != nil {
			return err
		}
		defer rollback(ctx, tx)
		if err := f(ctx, reader{tx, scope}); err != nil {
			return err
		}
		return tx.Commit(ctx)
	})
}

// fresh returns an error when nothing may be read, because another node could change a cached result without this one
// ever hearing of it.
func (s *Store) fresh() error {
	if err := s.connected(); err != nil {
		return err
	}
	return s.feed.Load().stale()
}

// rollbackTimeout bounds a rollback. A server that has gone silent rolls back by itself, and the connection is closed.
const rollbackTimeout = time.Second

// rollback releases the connection; after a commit it does nothing.
func rollback(ctx context.Context, tx pgx.Tx) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackTimeout)
	defer cancel()
	_ = tx.Rollback(ctx)
}

// writeTx is a write transaction and the organizations whose facts it changes.
type writeTx struct {
	tx      pgx.Tx
	feed    *feed
	scope   records.Scope
	wrote   bool
	changed []string
	numbers []int64 // of the changes
	// edited says that a caller's edit has run, which must not run twice.
	edited bool
}

// write runs f in a write transaction, after others that have the lock. When the commit has returned it is durable;
// then the change listeners run.
func (s *Store) write(ctx context.Context, pool *pgxpool.Pool, scope records.Scope, lock lockKey, f func(ctx context.Context, tx *writeTx) error) error {
	if err := s.connected(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	var w *writeTx
	err := again(func() error {
		w = &writeTx{feed: s.feed.Load(), scope: scope}
		err := s.commit(ctx, pool, w, lock, f)
		if err != nil && w.edited {
			return finalError{err}
		}
		return err
	})
	if err != nil {
		return s.translate(ctx, err)
	}
	for _, organization := range w.changed {
		s.changes.Notify(organization)
	}
	return nil
}

const (
	// beginSQL names the scope, and looks whether this program may write.
	beginSQL = `SELECT set_config('durward.organization', $1, true), current_setting('transaction_read_only') = 'on',
		(SELECT COALESCE(max(oldest_writer), 0) FROM schema_migrations)`
	lockSQL = `SELECT pg_advisory_xact_lock($1)`
)

func (s *Store) commit(ctx context.Context, pool *pgxpool.Pool, w *writeTx, lock lockKey, f func(ctx context.Context, tx *writeTx) error) (err error) {
	if w.tx, err = pool.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}); err != nil {
		return err
	}
	defer rollback(ctx, w.tx) // also when f panics
	if err := w.begin(ctx, lock); err != nil {
		return err
	}
	if err := f(ctx, w); err != nil {
		return err
	}
	if err := w.tx.Commit(ctx); err != nil {
		s.doubt(w)
		if lostConnection(err) { // it is unknown whether it is committed
			err = finalError{err}
		}
		return err
	}
	return nil
}

// doubt handles a commit that failed with an unknown result. It may be there nevertheless, or appear later, as when
// its connection broke or it waited for a standby. So its facts count as changed, and again when the feed sees the
// change, like any other node's.
func (s *Store) doubt(w *writeTx) {
	w.feed.notMine(w.numbers)
	for _, organization := range w.changed {
		s.changes.Notify(organization)
	}
}

// begin names the scope and waits for the lock, in one round trip.
func (t *writeTx) begin(ctx context.Context, lock lockKey) error {
	var batch pgx.Batch
	var readOnly bool
	var oldest int
	batch.Queue(beginSQL, storable(string(t.scope))).QueryRow(func(r pgx.Row) error { return r.Scan(nil, &readOnly, &oldest) })
	if lock != noLock {
		batch.Queue(lockSQL, int64(lock))
	}
	if err := t.tx.SendBatch(ctx, &batch).Close(); err != nil {
		return err
	}
	if readOnly {
		return errReadOnly
	}
	return checkWriter(oldest)
}

// Within implements records.Tx.
func (t *writeTx) Within(ctx context.Context, other records.Scope, f func() error) error {
	if other == t.scope {
		return f()
	}
	if _, err := t.tx.Exec(ctx, setScopeSQL, storable(string(other))); err != nil {
		return err
	}
	if err := f(); err != nil {
		return err // the transaction ends with it
	}
	_, err := t.tx.Exec(ctx, setScopeSQL, storable(string(t.scope)))
	return err
}

// Query implements records.Querier.
func (t *writeTx) Query(ctx context.Context, query string, args []any, each func(records.Row) (more bool, err error)) error {
	rows, err := t.tx.Query(ctx, query, storableArgs(args)...)
	if err != nil {
		return err
	}
	tag, err := handOn(rows, each)
	t.wrote = t.wrote || err == nil && !tag.Select() && tag.RowsAffected() > 0
	return err
}

// Exec implements records.Tx.
func (t *writeTx) Exec(ctx context.Context, query string, args ...any) (int64, error) {
	args, err := storedArgs(query, args)
	if err != nil {
		return 0, err
	}
	return t.count(t.tx.Exec(ctx, query, args...))
}

func (t *writeTx) count(tag pgconn.CommandTag, err error) (int64, error) {
	t.wrote = t.wrote || tag.RowsAffected() > 0
	return tag.RowsAffected(), err
}

// ExecEach implements records.Tx, in one round trip.
func (t *writeTx) ExecEach(ctx context.Context, query string, args [][]any) error {
	if len(args) == 0 {
		return nil
	}
	var batch pgx.Batch
	for _, some := range args {
		stored, err := storedArgs(query, some)
		if err != nil {
			return err
		}
		batch.Queue(query, stored...)
	}
	results := t.tx.SendBatch(ctx, &batch)
	for range args {
		if _, err := t.count(results.Exec()); err != nil {
			return errors.Join(err, results.Close())
		}
	}
	return results.Close()
}

// Part implements records.Tx.
func (t *writeTx) Part(ctx context.Context, f func() error) error {
	whole := t.tx
	part, err := whole.Begin(ctx) // a savepoint
	if err != nil {
		return err
	}
	t.tx = part
	defer func() { t.tx = whole }()
	wrote := t.wrote
	if err = f(); err == nil {
		return part.Commit(ctx)
	}
	t.wrote = wrote
	if undoing := part.Rollback(ctx); undoing != nil {
		return errors.Join(undoing, err)
	}
	if refused := new(pgconn.PgError); errors.As(err, &refused) && isValue(refused) {
		return translateCode(refused)
	}
	return err
}

// Edit implements records.Tx.
func (t *writeTx) Edit(edit func() error) error {
	t.edited = true
	return records.Edited(edit())
}

// Wrote implements records.Tx.
func (t *writeTx) Wrote() bool { return t.wrote }

// changeSQL increments the organization's epoch, writes the change log and tells other nodes to read it, when the
// transaction commits.
const changeSQL = `WITH counted AS (INSERT INTO epochs (organization_id, epoch) VALUES ($1, 1)
		ON CONFLICT (organization_id) DO UPDATE SET epoch = epochs.epoch + 1 RETURNING epoch),
	logged AS (INSERT INTO change_log (organization_id, epoch) SELECT $1, epoch FROM counted RETURNING seq, epoch)
	SELECT epoch, seq, pg_notify('durward_changes', seq::text)::text FROM logged`

// Change implements records.Tx.
func (t *writeTx) Change(ctx context.Context, organization string) (epoch int64, err error) {
	type change struct{ epoch, seq int64 }
	c, err := records.One(ctx, t, func(r records.Row) (c change, err error) {
		err = r.Scan(&c.epoch, &c.seq, nil)
		return c, err
	}, changeSQL, organization)
	if err != nil {
		return 0, err
	}
	t.feed.mine(c.seq)
	t.numbers = append(t.numbers, c.seq)
	t.wrote = true
	if !slices.Contains(t.changed, organization) {
		t.changed = append(t.changed, organization)
	}
	return c.epoch, nil
}
