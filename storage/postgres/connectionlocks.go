package postgres

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/durward-gateway/durward/storage"
	"github.com/durward-gateway/durward/storage/records/keylocks"
)

const (
	tryLockSQL = `SELECT pg_try_advisory_lock($1)`
	unlockSQL  = `SELECT pg_advisory_unlock($1)`
)

// editPoll is the time between a node's requests for a lock that another node holds.
const editPoll = 20 * time.Millisecond

// editLocks provides mutual exclusion by connection over all nodes. Within this process waiters queue. The first of
// them asks the database for an advisory lock, which is held by one database connection of this node for all its
// edits: no transaction is open while an edit runs, and edits use up no connections. A node that dies loses its locks
// with its connection. So does one whose connection breaks; then the version of the edited record refuses the second
// writer.
type editLocks struct {
	connect func(ctx context.Context) (*pgx.Conn, error)
	local   keylocks.Locks
	turn    chan struct{} // holds the one token of the user of conn
	conn    *pgx.Conn     // nil: not made yet
	closed  atomic.Bool
}

func newEditLocks(connect func(ctx context.Context) (*pgx.Conn, error)) *editLocks {
	return &editLocks{connect: connect, turn: make(chan struct{}, 1)}
}

// acquire waits until the key is free or ctx ends. timeout bounds each exchange with the database. The caller must
// call release exactly once.
func (l *editLocks) acquire(ctx context.Context, key storage.ConnectionKey, timeout time.Duration) (release func(), err error) {
	releaseLocal, err := l.local.Acquire(ctx, key)
	if err != nil {
		return nil, err
	}
	lock := newLockKey("connection", key.OrganizationID, key.UserID, key.ServerID)
	if err := l.lock(ctx, lock, timeout); err != nil {
		releaseLocal()
		return nil, err
	}
	return func() {
		defer releaseLocal()
		// A lock that cannot be released goes with its connection, which is then closed.
		_, _ = l.ask(context.WithoutCancel(ctx), unlockSQL, lock, timeout)
	}, nil
}

func (l *editLocks) lock(ctx context.Context, lock lockKey, timeout time.Duration) error {
	for {
		var got bool
		err := again(func() (err error) {
			got, err = l.ask(ctx, tryLockSQL, lock, timeout)
			return err
		})
		if err != nil || got {
			return err
		}
		poll := time.NewTimer(editPoll)
		select {
		case <-poll.C:
		case <-ctx.Done():
			poll.Stop()
			return ctx.Err()
		}
	}
}

// ask sends one query about a lock. ctx bounds only the wait for the connection, and timeout bounds its use. A query
// that is given up ends the connection, and with it the locks of all other edits. Another node would then send their
// refresh tokens once more.
func (l *editLocks) ask(ctx context.Context, query string, lock lockKey, timeout time.Duration) (yes bool, err error) {
	select {
	case l.turn <- struct{}{}:
	case <-ctx.Done():
		return false, ctx.Err()
	}
	defer func() { <-l.turn }()
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	if l.closed.Load() {
		return false, context.Canceled
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), timeout)
	defer cancel()
	if l.conn == nil || l.conn.IsClosed() {
		if query == unlockSQL {
			return false, nil // it went with its connection
		}
		if l.conn, err = l.connect(ctx); err != nil {
			l.conn = nil
			return false, err
		}
	}
	if err := l.conn.QueryRow(ctx, query, int64(lock)).Scan(&yes); err != nil {
		_ = l.conn.Close(context.WithoutCancel(ctx)) // all its locks are free
		l.conn = nil
		return false, err
	}
	return yes, nil
}

func (l *editLocks) close() {
	l.closed.Store(true)
	l.turn <- struct{}{}
	defer func() { <-l.turn }()
	if l.conn != nil {
		_ = l.conn.Close(context.Background()) // it holds no lock that a later one could want
		l.conn = nil
	}
}
