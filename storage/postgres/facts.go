package postgres

import (
	"context"
	"crypto/rand"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

const (
	factsSQL = `SELECT current_setting('server_version_num')::bigint, current_user::text,
		(SELECT CASE WHEN rolsuper OR rolbypassrls THEN 1 ELSE 0 END FROM pg_roles WHERE rolname = current_user)::bigint,
		current_setting('server_encoding'), CASE WHEN pg_is_in_recovery() THEN 1 ELSE 0 END::bigint,
		(SELECT COALESCE(max(reset_val), '') FROM pg_settings WHERE name = 'synchronous_commit'),
		current_setting('synchronous_standby_names'), current_setting('fsync'), current_setting('full_page_writes'),
		current_setting('max_connections')::bigint, ` + serverClock + `,
		CASE WHEN to_regclass('schema_migrations') IS NULL THEN 0 ELSE 1 END::bigint`
	rightsSQL = `SELECT current_database()::text, (SELECT pg_get_userbyid(datdba)::text FROM pg_database WHERE datname = current_database()),
		COALESCE(current_schema()::text, ''), COALESCE(has_schema_privilege(current_schema(), 'CREATE'), false),
		(SELECT rolconnlimit FROM pg_roles WHERE rolname = current_user)::bigint, (SELECT datconnlimit FROM pg_database WHERE datname = current_database())::bigint`
	setProbeSQL  = `SELECT set_config('durward.probe', $1, false)`
	openToAllSQL = `SELECT has_database_privilege('public', current_database(), 'CONNECT')`
	probeSQL     = `SELECT COALESCE(current_setting('durward.probe', true), '')`
)

// Facts holds the facts about a database that an operator can have wrong.
type Facts struct {
	ServerVersion int // as in server_version_num: 150004 is 15.4
	Encoding      string
	User          string
	// Bypasses says that the user is a superuser or has BYPASSRLS.
	Bypasses bool
	// OpenToAll says that every role of the server may connect to the database.
	OpenToAll bool
	// Standby says that the server only reads.
	Standby                             bool
	SynchronousCommit, SynchronousNames string
	Fsync, FullPageWrites               string
	// MaxConnections is the server's bound; RoleConnections and DatabaseConnections are those of the user and the
	// database, -1 for none.
	MaxConnections, RoleConnections, DatabaseConnections int
	// Database is the database's name, Owner its owner, and Schema the one in which tables are made; "" when there is
	// none.
	Database, Owner, Schema string
	// MayCreate says that the user may make tables there.
	MayCreate bool
	// ForeignTables counts the tables in the schema of a database without one of durward's.
	ForeignTables int
	// Now is the server's clock, which was read in the middle of a round trip that took Trip.
	Now  time.Time
	Trip time.Duration
	// SchemaVersion is 0 for a database without one of durward's. OldestWriter is the version that a writer needs.
	SchemaVersion, OldestWriter, KnownVersion int
	// Arriving says that a copy of another store into it is not complete.
	Arriving bool
	// Pooled says that clients share sessions, so that a pooler in transaction mode is in between.
	Pooled bool
}

// Inspect examines a database and changes nothing in it. now is this machine's clock. An error is
// storage.ErrUnavailable when the database cannot be reached.
func Inspect(ctx context.Context, dsn string, now func() time.Time) (f Facts, err error) {
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		return f, errors.New("the database's address cannot be read") // the cause may quote the password
	}
	config.ConnectTimeout = connectTimeout
	config.DefaultQueryExecMode = pgx.QueryExecModeExec // prepared statements get lost behind some poolers
	translate := (&Store{}).translate
	// A gateway uses the primary among the servers of an address. Where there is none, Inspect examines a standby
	// nevertheless.
	anyServer := config.Copy()
	refuseStandby(config)
	conn, err := pgx.ConnectConfig(ctx, config)
	if errors.Is(err, pgconn.ErrStandbyConnection) {
		config = anyServer
		conn, err = pgx.ConnectConfig(ctx, config)
	}
	if err != nil {
		return f, translate(ctx, err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }() // nothing is written
	var bypasses, standby, micros, migrated int64
	began := now()
	if err := conn.QueryRow(ctx, factsSQL).Scan(&f.ServerVersion, &f.User, &bypasses, &f.Encoding, &standby, &f.SynchronousCommit, &f.SynchronousNames,
		&f.Fsync, &f.FullPageWrites, &f.MaxConnections, &micros, &migrated); err != nil {
		return f, translate(ctx, err)
	}
	f.Trip = now().Sub(began)
	f.Now, f.Bypasses, f.Standby, f.KnownVersion = time.UnixMicro(micros).UTC(), bypasses == 1, standby == 1, knownVersion
	if err := conn.QueryRow(ctx, openToAllSQL).Scan(&f.OpenToAll); err != nil {
		return f, translate(ctx, err)
	}
	if err := conn.QueryRow(ctx, rightsSQL).Scan(&f.Database, &f.Owner, &f.Schema, &f.MayCreate, &f.RoleConnections, &f.DatabaseConnections); err != nil {
		return f, translate(ctx, err)
	}
	if migrated == 1 {
		if err := conn.QueryRow(ctx, schemaVersionSQL).Scan(&f.SchemaVersion); err != nil {
			return f, translate(ctx, err)
		}
		if err := conn.QueryRow(ctx, oldestWriterSQL).Scan(&f.OldestWriter); err != nil {
			return f, translate(ctx, err)
		}
	}
	if migrated == 0 {
		if err := conn.QueryRow(ctx, hasMigrationsSQL).Scan(nil, &f.ForeignTables); err != nil {
			return f, translate(ctx, err)
		}
	}
	var arriving int
	if err := conn.QueryRow(ctx, hasArrivalSQL).Scan(&arriving); err != nil {
		return f, translate(ctx, err)
	}
	f.Arriving = arriving > 0
	other, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return f, translate(ctx, err)
	}
	defer func() { _ = other.Close(context.WithoutCancel(ctx)) }() // nothing is written
	f.Pooled, err = pooled(ctx, conn, other)
	return f, translate(ctx, err)
}

// pooled finds out whether two clients can get the same session: one leaves a mark in its session, the other begins a
// transaction, which takes a session out of a pool. Without a pool each has its own session all the time.
func pooled(ctx context.Context, conn, other *pgx.Conn) (bool, error) {
	mark := rand.Text()
	// Prepared statements get lost behind some poolers.
	if _, err := conn.Exec(ctx, setProbeSQL, pgx.QueryExecModeExec, mark); err != nil {
		return false, err
	}
	tx, err := other.Begin(ctx)
	if err != nil {
		return false, err
	}
	defer rollback(ctx, tx)
	var there, here string
	if err := tx.QueryRow(ctx, probeSQL, pgx.QueryExecModeExec).Scan(&there); err != nil {
		return false, err
	}
	if err := conn.QueryRow(ctx, probeSQL, pgx.QueryExecModeExec).Scan(&here); err != nil {
		return false, err
	}
	return there == mark || here != mark, nil
}

// ErrPooled says that a pooler in transaction mode is in between. Edits would not exclude each other there, and other
// nodes' changes would not be heard.
var ErrPooled = errors.New("a pooler in transaction or statement mode is between the gateway and the database: " +
	"point the address at the server itself, or switch the pooler to session mode")

// checkPooler returns ErrPooled when sessions are shared.
func (s *Store) checkPooler(ctx context.Context) error {
	conn, err := s.authenticate.Acquire(ctx)
	if err != nil {
		return s.translate(ctx, err)
	}
	defer conn.Release()
	other, err := s.authenticate.Acquire(ctx)
	if err != nil {
		return s.translate(ctx, err)
	}
	defer other.Release()
	shared, err := pooled(ctx, conn.Conn(), other.Conn())
	if err == nil && shared {
		return ErrPooled
	}
	return s.translate(ctx, err)
}
