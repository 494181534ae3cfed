package postgres

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/durward-gateway/durward/storage"
	"github.com/durward-gateway/durward/storage/records"
)

const (
	listenSQL = `LISTEN durward_changes`
	// serverClock is the server's clock in microseconds, not the beginning of a transaction.
	serverClock = `(extract(epoch FROM clock_timestamp()) * 1000000)::bigint`
	// positionSQL returns the oldest transaction that is still open: an older one has committed and is visible, or
	// never will be.
	positionSQL = `SELECT pg_snapshot_xmin(pg_current_snapshot())::text, ` + serverClock
	// pollSQL lists the changes that may have become visible since a position, and the next position. Without any
	// there is one row with 0.
	pollSQL = `SELECT pg_snapshot_xmin(pg_current_snapshot())::text, ` + serverClock + `, COALESCE(l.seq, 0), COALESCE(l.organization_id, '')
		FROM (SELECT 1) always LEFT JOIN change_log l ON l.xact >= CAST($1 AS TEXT)::xid8 ORDER BY l.seq`
	// changedSQL returns the organization of a change, once it has committed.
	changedSQL = `SELECT organization_id FROM change_log WHERE seq = $1`
	// pruneSQL keeps the last $1 changes. Nodes that prune at the same time share the work.
	pruneSQL = `DELETE FROM change_log WHERE seq IN (SELECT seq FROM change_log WHERE seq <= (SELECT max(seq) FROM change_log) - $1
		ORDER BY seq LIMIT 10000 FOR UPDATE SKIP LOCKED)`
)

const (
	// pollInterval is the time between two reads of the change log, whatever was notified.
	pollInterval = time.Second
	// pollTimeout is the time after which a silent connection counts as broken.
	pollTimeout = time.Second
	// reconnectInterval is the wait between tries to reach the database.
	reconnectInterval = 250 * time.Millisecond
	// heardWithin is the maximum age of the facts about other nodes.
	heardWithin = 10 * time.Second
	// changeLogLength is the number of rows of the change log that are kept. pruneEvery is the number of polls
	// between two prunings.
	changeLogLength = 10_000
	pruneEvery      = 60
	// keptPolls is the number of polls for which a reported change is remembered.
	keptPolls = 10
)

// feed tells this node's listeners what other nodes have committed: at once when the database notifies, within
// pollInterval when it does not. A connection that broke may have missed anything: after it every organization's
// facts count as changed.
type feed struct {
	connect func(ctx context.Context) (*pgx.Conn, error)
	// translate turns the driver's errors into storage's.
	translate func(ctx context.Context, err error) error
	notify    func(organization string)
	now       func() time.Time
	clock     func() time.Time          // the clock to compare with the server's
	drift     func(ahead time.Duration) // called after each comparison
	stop      context.CancelFunc
	running   sync.WaitGroup

	conn     *pgx.Conn // of the goroutine
	position string    // the position at which the next poll begins

	mu    sync.Mutex
	told  map[int64]int // changes by number: the poll in which they were last seen
	poll  int           // number of polls so far; changed by the goroutine only
	heard time.Time     // the last time at which all commits were known
	cause error         // the reason why nothing was heard since; nil: no error
}

// openFeed begins to listen: commits from now on are reported.
func openFeed(ctx context.Context, f *feed) (*feed, error) {
	f.told = make(map[int64]int)
	if err := f.listen(ctx); err != nil {
		return nil, err
	}
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	f.stop = stop
	f.running.Go(func() { f.run(running) })
	f.running.Go(func() { f.expire(running) })
	return f, nil
}

// close ends the feed and waits for its end.
func (f *feed) close() {
	f.stop()
	f.running.Wait()
}

// mine marks a change as this node's own, which is reported without the feed. It may still fail to commit.
func (f *feed) mine(seq int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.told[seq] = f.poll
}

// notMine takes these marks back: the feed reports the changes when it sees them.
func (f *feed) notMine(all []int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, seq := range all {
		delete(f.told, seq)
	}
}

// stale returns an error when other nodes' changes have not been heard of for too long.
func (f *feed) stale() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if silence := f.now().Sub(f.heard); silence > heardWithin {
		reason := fmt.Sprintf("what other nodes have changed is not known for %s", silence.Round(time.Second))
		if known := new(storage.UnavailableError); errors.As(f.cause, &known) {
			reason += ": " + known.Reason
		}
		return unavailable(reason, f.cause)
	}
	return nil
}

// listen makes the connection.
func (f *feed) listen(ctx context.Context) error {
	conn, err := f.connect(ctx)
	if err != nil {
		return err
	}
	if _, err := conn.Exec(ctx, listenSQL); err != nil {
		return errors.Join(err, conn.Close(ctx))
	}
	asked := f.now()
	var micros int64
	if err := conn.QueryRow(ctx, positionSQL).Scan(&f.position, &micros); err != nil {
		return errors.Join(err, conn.Close(ctx))
	}
	f.compare(micros, asked)
	f.conn = conn
	f.mu.Lock()
	defer f.mu.Unlock()
	f.heard, f.cause = f.now(), nil
	// After a crash or a failover, numbers that were never committed can be used anew.
	clear(f.told)
	return nil
}

// compare reports by how much this machine's clock is ahead of the server's, which was read at the time asked
// (Z-C01).
func (f *feed) compare(micros int64, asked time.Time) {
	trip := f.now().Sub(asked)
	f.drift(storage.ClockReading{Theirs: time.UnixMicro(micros), Ours: f.clock(), Trip: trip}.Ahead())
}

// expire has every organization's facts count as changed when other nodes' changes have not been heard of for too
// long: reads are refused from then on, and so are decisions that rest on cached facts (Z-N03).
func (f *feed) expire(ctx context.Context) {
	for {
		f.mu.Lock()
		left := heardWithin - f.now().Sub(f.heard)
		f.mu.Unlock()
		if left < 0 {
			f.notify("")
			left = pollInterval
		}
		select {
		case <-time.After(left + time.Millisecond):
		case <-ctx.Done():
			return
		}
	}
}

func (f *feed) run(ctx context.Context) {
	defer f.disconnect(ctx) // a feed that is closed before it follows, or just after it has reconnected, has a connection
	for ctx.Err() == nil {
		if f.conn == nil {
			f.reconnect(ctx)
			continue
		}
		if err := f.follow(ctx); err != nil {
			f.failed(ctx, err)
			f.disconnect(ctx)
		}
	}
}

// disconnect ends the connection, which is broken or no longer needed.
func (f *feed) disconnect(ctx context.Context) {
	if f.conn == nil {
		return
	}
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), pollTimeout)
	defer cancel()
	_ = f.conn.Close(closing)
	f.conn = nil
}

// failed remembers the reason why nothing is heard.
func (f *feed) failed(ctx context.Context, err error) {
	err = f.translate(ctx, err)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.cause = err
}

func (f *feed) reconnect(ctx context.Context) {
	bounded, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	err := f.listen(bounded)
	if err == nil {
		f.notify("")
		return
	}
	f.failed(bounded, err)
	select {
	case <-time.After(reconnectInterval):
	case <-ctx.Done():
	}
}

// follow reports notified changes until the next poll is due, and polls. An error means that the connection is
// unusable.
func (f *feed) follow(ctx context.Context) error {
	waiting, cancel := context.WithTimeout(ctx, pollInterval)
	defer cancel()
	for waiting.Err() == nil {
		n, err := f.conn.WaitForNotification(waiting)
		if err == nil {
			err = f.hear(ctx, n.Payload)
		}
		if err != nil && waiting.Err() == nil {
			return err
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	polling, cancel := context.WithTimeout(ctx, pollTimeout)
	defer cancel()
	return f.read(polling)
}

// hear reports the change whose number was notified, as the change log has it. A notification by itself is not
// trusted: anybody who may connect to the database may notify, and a change that was reported too early would not be
// reported when it is made.
func (f *feed) hear(ctx context.Context, payload string) error {
	seq, err := strconv.ParseInt(payload, 10, 64)
	if err != nil {
		return nil // not ours
	}
	f.mu.Lock()
	_, known := f.told[seq]
	f.mu.Unlock()
	if known {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, pollTimeout)
	defer cancel()
	return reader{f.conn, records.Everyone}.Query(ctx, changedSQL, []any{seq}, func(r records.Row) (more bool, err error) {
		var organization string
		if err := r.Scan(&organization); err != nil {
			return false, err
		}
		f.tell(seq, organization)
		return true, nil
	})
}

// tell reports a change once.
func (f *feed) tell(seq int64, organization string) {
	f.mu.Lock()
	_, known := f.told[seq]
	f.told[seq] = f.poll
	f.mu.Unlock()
	if !known {
		f.notify(organization)
	}
}

// read polls: it reports the changes that no notification reported.
func (f *feed) read(ctx context.Context) error {
	f.mu.Lock()
	f.poll++
	f.mu.Unlock()
	asked := f.now()
	type change struct {
		position     string
		micros       int64
		seq          int64
		organization string
	}
	changes, err := records.Many(ctx, reader{f.conn, records.Everyone}, func(r records.Row) (c change, err error) {
		err = r.Scan(&c.position, &c.micros, &c.seq, &c.organization)
		return c, err
	}, pollSQL, f.position)
	if err != nil {
		return err
	}
	if len(changes) > 0 {
		f.compare(changes[0].micros, asked)
	}
	for _, c := range changes {
		f.position = c.position
		if c.seq != 0 {
			f.tell(c.seq, c.organization)
		}
	}
	f.mu.Lock()
	f.heard, f.cause = asked, nil
	for seq, poll := range f.told {
		if poll < f.poll-keptPolls {
			delete(f.told, seq)
		}
	}
	f.mu.Unlock()
	return f.prune(ctx)
}

// prune deletes old changes now and then.
func (f *feed) prune(ctx context.Context) error {
	if f.poll%pruneEvery != 0 {
		return nil
	}
	err := reader{f.conn, records.Everyone}.Query(ctx, pruneSQL, []any{changeLogLength}, func(records.Row) (more bool, err error) { return true, nil })
	var refused *pgconn.PgError
	if errors.As(err, &refused) { // it is read-only; the connection is good
		return nil
	}
	return err
}
