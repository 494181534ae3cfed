package postgres

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/durward-gateway/durward/storage"
	"github.com/durward-gateway/durward/storage/records"
	"github.com/durward-gateway/durward/storage/records/listeners"
)

// Options tunes a store. The zero value is right for production.
type Options struct {
	// MaxConns bounds the connections of the store, at least MinConns; 0 is DefaultMaxConns.
	MaxConns int
	// KeepSchema leaves the schema as it is: ErrSchema when it is older than this program needs.
	KeepSchema bool
	// Timeout bounds one call that writes, retries and waiting for other writers included; 0 is 5 s. Reads have two
	// fifths of it. In UpdateConnection it bounds the reading and the writing, but neither the waiting for another
	// edit nor the edit: those have the caller's context.
	Timeout time.Duration
	// Clock is this machine's clock, which is only compared with the database's; nil means time.Now.
	Clock func() time.Time

	// Migrating is called before the schema is brought up to date, or before the wait for another node that does it;
	// nil means no call.
	Migrating func(from, to int)

	// opening bounds the rest of Connect; 0 is openTimeout.
	opening time.Duration
	// idle is the time after which an unused connection is closed, within three times that duration; 0 is
	// idleTimeout.
	idle time.Duration
	// arriving allows opening a database into which another store is copied.
	arriving bool
}

// Numbers of connections. A fifth of them, and two at least, are reserved for authenticating callers; one holds the
// locks of edits, one hears of other nodes' changes.
const (
	DefaultMaxConns = 20
	MinConns        = 5

	authenticationShare = 5
	ownConns            = 2
)

// Store is a storage.RemoteStore in a PostgreSQL database.
type Store struct {
	*records.Store

	options      Options
	main         *pgxpool.Pool
	authenticate *pgxpool.Pool // for authentication, for which every request waits: other work never uses these up
	timeout      time.Duration
	edits        *editLocks
	changes      listeners.List[string]
	drifts       listeners.List[time.Duration]
	closed       atomic.Bool

	connecting sync.Mutex
	// feed reports other nodes' changes to the store. nil: Connect has not succeeded yet.
	feed atomic.Pointer[feed]
}

// Open calls New and Connect.
func Open(ctx context.Context, dsn string, opts Options) (*Store, error) {
	s, err := New(dsn, opts) //nolint:contextcheck // it makes no connection yet
	if err != nil {
		return nil, err
	}
	if err := s.Connect(ctx); err != nil {
		return nil, errors.Join(err, s.Close()) //nolint:contextcheck // what was opened is closed although ctx may have ended
	}
	return s, nil
}

// New makes the store of the database that dsn names (a URL or key=value words, as libpq takes them). It does not
// contact the database: Connect does.
func New(dsn string, opts Options) (*Store, error) {
	if opts.Timeout <= 0 {
		opts.Timeout = 5 * time.Second
	}
	if opts.MaxConns == 0 {
		opts.MaxConns = DefaultMaxConns
	}
	if opts.MaxConns < MinConns {
		return nil, fmt.Errorf("opening the store: %d connections are too few, it takes %d", opts.MaxConns, MinConns)
	}
	if opts.opening == 0 {
		opts.opening = openTimeout
	}
	if opts.idle == 0 {
		opts.idle = idleTimeout
	}
	if opts.Clock == nil {
		opts.Clock = time.Now
	}
	config, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return nil, errors.New("opening the store: the database's address cannot be read") // the cause may quote the password
	}
	s := &Store{options: opts, timeout: opts.Timeout}
	s.Store = records.New(driver{s}, dialect)
	s.edits = newEditLocks(func(ctx context.Context) (*pgx.Conn, error) { return s.connectAlone(ctx, config.ConnConfig) })
	authentication := max(opts.MaxConns/authenticationShare, 2)
	if s.main, err = s.pool(config, opts.MaxConns-authentication-ownConns); err == nil {
		s.authenticate, err = s.pool(config, authentication)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("opening the store: %w", err), s.Close())
	}
	return s, nil
}

// Connect implements storage.RemoteStore. Its other errors are ErrPooled, and ErrSchema: the database is not
// durward's, or its schema is older than this program needs and may not be changed. A newer one that this program may
// not write to is connected to, and only read.
func (s *Store) Connect(ctx context.Context) error {
	s.connecting.Lock()
	defer s.connecting.Unlock()
	if s.feed.Load() != nil {
		return nil
	}
	if err := s.connect(ctx); err != nil {
		return fmt.Errorf("opening the store: %w", err)
	}
	return nil
}

// openTimeout bounds the steps of Connect before and after the migrations.
const openTimeout = 2 * time.Minute

func (s *Store) connect(ctx context.Context) error {
	if err := s.bounded(ctx, s.checkPooler); err != nil {
		return err
	}
	if !s.options.KeepSchema {
		if err := s.migrate(ctx); err != nil {
			return withoutRight(s.translate(ctx, err))
		}
	}
	return s.bounded(ctx, s.connectMigrated)
}

func (s *Store) bounded(ctx context.Context, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, s.options.opening)
	defer cancel()
	return f(ctx)
}

func (s *Store) connectMigrated(ctx context.Context) error {
	if err := s.checkSchema(ctx); err != nil {
		return err
	}
	if !s.options.arriving {
		if err := s.checkArrival(ctx); err != nil {
			return err
		}
	}
	heard, err := openFeed(ctx, &feed{connect: s.edits.connect, translate: s.translate, notify: s.changes.Notify, now: time.Now, clock: s.options.Clock, drift: s.drifts.Notify})
	if err != nil {
		return s.translate(ctx, err)
	}
	s.feed.Store(heard)
	return nil
}

// connectAlone makes a connection outside all pools.
func (s *Store) connectAlone(ctx context.Context, config *pgx.ConnConfig) (*pgx.Conn, error) {
	config = config.Copy()
	settle(config)
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	if err := s.prepareConn(ctx, conn); err != nil {
		return nil, errors.Join(err, conn.Close(ctx))
	}
	return conn, nil
}

// connected returns an error until Connect has succeeded.
func (s *Store) connected() error {
	if s.feed.Load() == nil {
		return unavailable("the database was not reached yet", nil)
	}
	return nil
}

// idleTimeout gives unused connections back to a server that has too few for all nodes, and for all pools of one.
// Without it the connections that one pool has opened in a busy moment would keep the others out permanently.
const idleTimeout = 10 * time.Second

// pool makes a pool. It opens no connection yet.
func (s *Store) pool(config *pgxpool.Config, size int) (*pgxpool.Pool, error) {
	config = config.Copy()
	config.MaxConns, config.MinConns, config.MinIdleConns = int32(size), 0, 0
	config.MaxConnIdleTime, config.HealthCheckPeriod = s.options.idle, 2*s.options.idle // a look uses all of them again
	settle(config.ConnConfig)
	config.AfterConnect = s.prepareConn
	return pgxpool.NewWithConfig(context.Background(), config)
}

// connectTimeout bounds connecting to one address of a server.
const connectTimeout = 4 * time.Second

// settle sets everything that every connection needs before it is made. Everything else is set by prepareConn:
// pgbouncer refuses startup parameters that it does not know.
func settle(c *pgx.ConnConfig) {
	c.RuntimeParams["client_encoding"] = "UTF8"
	if c.RuntimeParams["application_name"] == "" {
		c.RuntimeParams["application_name"] = "durward"
	}
	if c.ConnectTimeout == 0 || c.ConnectTimeout > connectTimeout {
		c.ConnectTimeout = connectTimeout
	}
	c.DefaultQueryExecMode = pgx.QueryExecModeCacheStatement
	refuseStandby(c)
}

// refuseStandby skips servers that are standbys, whatever target_session_attrs asks for. Their facts may have been
// revoked since. A standby whose primary is gone does not know how far it is behind, and polling it would renew the
// lease. A primary does not become a standby without ending its connections.
func refuseStandby(c *pgx.ConnConfig) {
	wanted := c.ValidateConnect
	c.ValidateConnect = func(ctx context.Context, conn *pgconn.PgConn) error {
		if err := pgconn.ValidateConnectTargetSessionAttrsPrimary(ctx, conn); err != nil || wanted == nil {
			return err
		}
		return wanted(ctx, conn)
	}
}

// prepareSQL bounds, in milliseconds, the statements and waits of a connection whose client has gone silent: a node
// that was stopped in a transaction must not block others. It also resets settings with which a returned commit would
// not be durable.
const prepareSQL = `SELECT set_config('statement_timeout', $1, false), set_config('lock_timeout', $2, false),
	set_config('idle_in_transaction_session_timeout', $1, false), set_config('tcp_keepalives_idle', '10', false),
	set_config('tcp_keepalives_interval', '5', false), set_config('tcp_keepalives_count', '3', false), set_config('row_security', 'on', false),
	set_config('synchronous_commit', CASE current_setting('synchronous_commit') WHEN 'off' THEN 'on' ELSE current_setting('synchronous_commit') END, false)`

func (s *Store) prepareConn(ctx context.Context, conn *pgx.Conn) error {
	milliseconds := func(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }
	_, err := conn.Exec(ctx, prepareSQL, pgx.QueryExecModeExec, milliseconds(s.timeout), milliseconds(s.timeout*4/5))
	return err
}

// hurrySQL bounds how long Ping waits for a change of the schema.
const hurrySQL = `SET LOCAL lock_timeout = '1s'`

// Ping implements storage.Store: it reads, and checks whether a write would be refused and whether other nodes are
// heard of. It takes no lock of a write: otherwise callers of Ping would wait for each other, on all nodes.
func (s *Store) Ping(ctx context.Context) error {
	return s.read(ctx, s.main, records.Of(""), func(ctx context.Context, _ records.Querier) error {
		tx, err := s.main.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.ReadCommitted})
		if err != nil {
			return err
		}
		defer rollback(ctx, tx)
		if _, err := tx.Exec(ctx, hurrySQL); err != nil {
			return err
		}
		err = (&writeTx{tx: tx, scope: records.Of("")}).begin(ctx, noLock)
		return whileMigrating(err, storage.ErrReadOnly)
	})
}

// OnChange implements storage.Store.
func (s *Store) OnChange(f func(organization string)) (cancel func()) { return s.changes.Add(f) }

// OnClock implements storage.RemoteStore.
func (s *Store) OnClock(f func(ahead time.Duration)) (cancel func()) { return s.drifts.Add(f) }

// Close implements storage.Store. Closing twice is harmless.
func (s *Store) Close() error {
	if s.closed.Swap(true) {
		return nil
	}
	s.connecting.Lock()
	defer s.connecting.Unlock()
	if heard := s.feed.Load(); heard != nil {
		heard.close()
	}
	if s.edits != nil {
		s.edits.close()
	}
	for _, p := range []*pgxpool.Pool{s.main, s.authenticate} {
		if p != nil {
			p.Close()
		}
	}
	return nil
}

// Interface guards
var _ storage.RemoteStore = (*Store)(nil)
