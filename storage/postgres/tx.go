package postgres

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/durward-gateway/durward/storage"
)

// querier reads: from the pool, in a snapshot, or in a write transaction.
type querier interface {
	// query runs a text and hands its rows on.
	query(ctx context.Context, query string, args []any, each func(row) error) error
}

// row is one row of a result.
type row interface{ Scan(dest ...any) error }

// sender is a pool, a connection or a transaction.
type sender interface {
	SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults
}

// scope is whose rows the database shows: those of one organization, or all.
type scope string

// everyOrganization is the scope of the few statements that look across organizations.
const everyOrganization scope = "*"

func scopeOf(organization string) scope { return scope("=" + organization) }

const setScopeSQL = `SELECT set_config('durward.organization', $1, true)`

// reader reads within a scope. Each query goes out together with its scope, in one round trip: without a transaction
// around them the two are one.
type reader struct {
	on    sender
	scope scope
}

func (r reader) query(ctx context.Context, query string, args []any, each func(row) error) error {
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
		_ = results.Close() // err says what went wrong
		return err
	}
	return results.Close()
}

// handOn hands rows on and closes them.
func handOn(rows pgx.Rows, each func(row) error) (pgconn.CommandTag, error) {
	defer rows.Close()
	for rows.Next() {
		if err := each(rows); err != nil {
			return pgconn.CommandTag{}, err
		}
	}
	return rows.CommandTag(), rows.Err()
}

// read runs f in the scope of an organization. Each of its queries sees a state of its own.
func (s *Store) read(ctx context.Context, organization string, f func(ctx context.Context, q querier) error) error {
	return s.readFrom(ctx, s.main, scopeOf(organization), f)
}

// readToAuthenticate is read on the connections that are kept for authentication.
func (s *Store) readToAuthenticate(ctx context.Context, scope scope, f func(ctx context.Context, q querier) error) error {
	return s.readFrom(ctx, s.authenticate, scope, f)
}

// readAcross is read over all organizations.
func (s *Store) readAcross(ctx context.Context, f func(ctx context.Context, q querier) error) error {
	return s.readFrom(ctx, s.main, everyOrganization, f)
}

func (s *Store) readFrom(ctx context.Context, pool *pgxpool.Pool, scope scope, f func(ctx context.Context, q querier) error) error {
	if err := s.fresh(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, s.timeout*2/5)
	defer cancel()
	return s.translate(ctx, again(func() error { return f(ctx, reader{pool, scope}) }))
}

// readSnapshot runs f in a read transaction: all its queries see one state.
func (s *Store) readSnapshot(ctx context.Context, organization string, f func(ctx context.Context, q querier) error) error {
	if err := s.fresh(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, s.timeout*2/5)
	defer cancel()
	return s.translate(ctx, again(func() error {
		tx, err := s.main.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly})
		if err != nil {
			return err
		}
		defer rollback(ctx, tx)
		if err := f(ctx, reader{tx, scopeOf(organization)}); err != nil {
			return err
		}
		return tx.Commit(ctx)
	}))
}

// fresh is an error when nothing may be read, because what would be kept of it could be changed by another node without
// this one ever hearing of it.
func (s *Store) fresh() error {
	if err := s.connected(); err != nil {
		return err
	}
	return s.feed.Load().stale()
}

// rollback gives the connection back; after a commit it does nothing.
func rollback(ctx context.Context, tx pgx.Tx) { _ = tx.Rollback(context.WithoutCancel(ctx)) }

// writeTx is a write transaction and the organizations whose facts it changes.
type writeTx struct {
	tx      pgx.Tx
	feed    *feed
	scope   scope
	rows    int64 // inserted, changed and deleted so far
	changed []string
	numbers []int64 // of the changes
	// record says that what WithAudit asks for is recorded although nothing else is written.
	record bool
	// edited: a caller's edit has run, which must not run twice.
	edited bool
}

// write runs f in a write transaction of an organization, which also records what storage.WithAudit asks for. Writes of
// one organization run one after the other, on whatever node: what f finds stays so until it commits. When the commit
// has returned it is durable; then the change listeners run.
func (s *Store) write(ctx context.Context, organization string, f func(ctx context.Context, tx *writeTx) error) error {
	return s.writeTo(ctx, s.main, scopeOf(organization), organizationLock(organization), f)
}

// writeToAuthenticate is write on the connections that are kept for authentication.
func (s *Store) writeToAuthenticate(ctx context.Context, scope scope, lock lockKey, f func(ctx context.Context, tx *writeTx) error) error {
	return s.writeTo(ctx, s.authenticate, scope, lock, f)
}

// writeAcross is write over all organizations, one after the other with those that take the same lock.
func (s *Store) writeAcross(ctx context.Context, lock lockKey, f func(ctx context.Context, tx *writeTx) error) error {
	return s.writeTo(ctx, s.main, everyOrganization, lock, f)
}

func (s *Store) writeTo(ctx context.Context, pool *pgxpool.Pool, scope scope, lock lockKey, f func(ctx context.Context, tx *writeTx) error) error {
	if err := s.connected(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	var w *writeTx
	var records []storage.AuditRecord
	err := again(func() (err error) {
		w = &writeTx{feed: s.feed.Load(), scope: scope}
		if records, err = s.commit(ctx, pool, w, lock, f); err != nil && w.edited {
			return finalError{err}
		}
		return err
	})
	if err != nil {
		return s.translate(ctx, err)
	}
	for _, organization := range w.changed {
		s.changes.notify(organization)
	}
	if len(records) > 0 {
		if told := storage.AuditOf(ctx).Committed; told != nil {
			told(records)
		}
	}
	return nil
}

const (
	// beginSQL names the scope, and looks whether this program may write.
	beginSQL = `SELECT set_config('durward.organization', $1, true), current_setting('transaction_read_only') = 'on',
		(SELECT COALESCE(max(oldest_writer), 0) FROM schema_migrations)`
	lockSQL = `SELECT pg_advisory_xact_lock($1)`
)

func (s *Store) commit(ctx context.Context, pool *pgxpool.Pool, w *writeTx, lock lockKey, f func(ctx context.Context, tx *writeTx) error) (records []storage.AuditRecord, err error) {
	if w.tx, err = pool.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}); err != nil {
		return nil, err
	}
	defer rollback(ctx, w.tx) // also when f panics
	if err := w.begin(ctx, lock); err != nil {
		return nil, err
	}
	audited := storage.AuditOf(ctx)
	if records, err = w.audited(ctx, audited, f); err != nil {
		return nil, err
	}
	if err := w.tx.Commit(ctx); err != nil {
		if len(records) > 0 {
			audited.Release()
		}
		s.doubt(w)
		if lostConnection(err) { // nobody knows whether it is committed
			err = finalError{err}
		}
		return nil, err
	}
	return records, nil
}

// doubt is for a commit that failed: it may be there all the same, or come to be there later, as when its connection broke
// or it waited for a standby. So what it changed counts as changed, and again when the feed meets it, as any other node's.
func (s *Store) doubt(w *writeTx) {
	w.feed.notMine(w.numbers)
	for _, organization := range w.changed {
		s.changes.notify(organization)
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

// across runs f with the rows of all organizations.
func (t *writeTx) across(ctx context.Context, f func() error) error {
	return t.within(ctx, everyOrganization, f)
}

// within runs f in another scope.
func (t *writeTx) within(ctx context.Context, other scope, f func() error) error {
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

func (t *writeTx) query(ctx context.Context, query string, args []any, each func(row) error) error {
	rows, err := t.tx.Query(ctx, query, storableArgs(args)...)
	if err != nil {
		return err
	}
	tag, err := handOn(rows, each)
	if err == nil && !tag.Select() {
		t.rows += tag.RowsAffected()
	}
	return err
}

// exec runs a statement that returns nothing and says how many rows it wrote.
func (t *writeTx) exec(ctx context.Context, query string, args ...any) (int64, error) {
	args, err := storedArgs(query, args)
	if err != nil {
		return 0, err
	}
	tag, err := t.tx.Exec(ctx, query, args...)
	t.rows += tag.RowsAffected()
	return tag.RowsAffected(), err
}

// edit runs a caller's edit.
func (t *writeTx) edit(f func() error) error {
	t.edited = true
	if err := f(); err != nil {
		return editError{err}
	}
	return nil
}

// changeSQL counts the organization's epoch up, writes the change log and tells other nodes to read it, when the
// transaction commits.
const changeSQL = `WITH counted AS (INSERT INTO epochs (organization_id, epoch) VALUES ($1, 1)
		ON CONFLICT (organization_id) DO UPDATE SET epoch = epochs.epoch + 1 RETURNING epoch),
	logged AS (INSERT INTO change_log (organization_id, epoch) SELECT $1, epoch FROM counted RETURNING seq, epoch)
	SELECT epoch, seq, pg_notify('durward_changes', seq::text)::text FROM logged`

// change records in the transaction that the organization's facts change ("": every organization's) and returns its new
// epoch, which no other write of that organization has.
func (t *writeTx) change(ctx context.Context, organization string) (epoch int64, err error) {
	type change struct{ epoch, seq int64 }
	c, err := one(ctx, t, func(r row) (c change, err error) {
		err = r.Scan(&c.epoch, &c.seq, nil)
		return c, err
	}, changeSQL, organization)
	if err != nil {
		return 0, err
	}
	t.feed.mine(c.seq)
	t.numbers = append(t.numbers, c.seq)
	t.rows++
	if !slices.Contains(t.changed, organization) {
		t.changed = append(t.changed, organization)
	}
	return c.epoch, nil
}

// one reads a single row; ErrNotFound when there is none.
func one[T any](ctx context.Context, q querier, scan func(row) (T, error), query string, args ...any) (v T, err error) {
	found := false
	err = q.query(ctx, query, args, func(r row) (err error) {
		if !found {
			v, err = scan(r)
		}
		found = true
		return err
	})
	if err == nil && !found {
		err = storage.ErrNotFound
	}
	return v, err
}

// many reads all rows.
func many[T any](ctx context.Context, q querier, scan func(row) (T, error), query string, args ...any) (all []T, err error) {
	err = q.query(ctx, query, args, func(r row) error {
		v, err := scan(r)
		if err == nil {
			all = append(all, v)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}

// exists reports whether the query has a row.
func exists(ctx context.Context, q querier, query string, args ...any) (bool, error) {
	_, err := one(ctx, q, scanInt, query, args...)
	if errors.Is(err, storage.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

func scanInt(r row) (n int, err error) {
	err = r.Scan(&n)
	return n, err
}

// execOne runs a statement that must hit a row; ErrNotFound when it does not.
func execOne(ctx context.Context, tx *writeTx, query string, args ...any) error {
	n, err := tx.exec(ctx, query, args...)
	if err == nil && n == 0 {
		err = storage.ErrNotFound
	}
	return err
}

// listeners are the functions registered with OnChange or OnClock, called in the order of their registration.
type listeners[T any] struct {
	mu  sync.Mutex
	all []*func(T)
}

func (l *listeners[T]) add(f func(T)) (cancel func()) {
	entry := &f
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, entry) // what notify has read stays as it is
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.all = slices.DeleteFunc(slices.Clone(l.all), func(e *func(T)) bool { return e == entry })
	}
}

func (l *listeners[T]) notify(told T) {
	l.mu.Lock()
	all := l.all
	l.mu.Unlock()
	for _, f := range all {
		(*f)(told)
	}
}
