package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/durward-gateway/durward/storage"
	"github.com/durward-gateway/durward/storage/records"
)

// finalError is an error after which nothing is tried again.
type finalError struct{ error }

func (e finalError) Unwrap() error { return e.error }

// errReadOnly says that something made the session read-only.
var errReadOnly = fmt.Errorf("%w: %s", storage.ErrReadOnly, textReadOnly)

// attempts is the number of tries of a transaction that conflicts with others.
const attempts = 3

// again runs f, and runs it again when nothing of it can have been committed and another try may succeed.
func again(f func() error) error {
	for n := 1; ; n++ {
		err := f()
		var final finalError
		if err == nil || n == attempts || errors.As(err, &final) || !worthRetrying(err) {
			return err
		}
	}
}

// Error codes of PostgreSQL (https://www.postgresql.org/docs/current/errcodes-appendix.html).
const (
	codeForeignKey       = "23503"
	codeUnique           = "23505"
	codeReadOnly         = "25006"
	codeIdleTransaction  = "25P03"
	codeUnknownStatement = "26000"
	codeSerialization    = "40001"
	codeDeadlock         = "40P01"
	codeNoDatabase       = "3D000"
	codePrivilege        = "42501"
	codeUndefinedTable   = "42P01"
	codeConnections      = "53300"
	codeLockTimeout      = "55P03"
	codeCanceled         = "57014"
	codeAdminShutdown    = "57P01"
	codeCrashShutdown    = "57P02"
	codeStarting         = "57P03"
	codeFeature          = "0A000" // also "cached plan must not change result type": the schema has changed
	codeFull             = "53100"
)

func worthRetrying(err error) bool {
	var refused *pgconn.PgError
	if errors.As(err, &refused) {
		switch refused.Code {
		case codeSerialization, codeDeadlock, codeUnknownStatement, codeFeature, codeAdminShutdown, codeIdleTransaction:
			return true
		}
		return false
	}
	return lostConnection(err)
}

// lostConnection reports whether an existing connection broke. An unreachable server is another case.
func lostConnection(err error) bool {
	var connecting *pgconn.ConnectError
	var network *net.OpError
	var refused *pgconn.PgError
	switch {
	case errors.As(err, &connecting), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return false
	case errors.As(err, &refused):
		return refused.Code == codeAdminShutdown || refused.Code == codeCrashShutdown
	}
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) || errors.As(err, &network) ||
		pgconn.SafeToRetry(err) || errors.Is(err, pgx.ErrTxClosed)
}

// translate turns an error of the driver into one of storage's. ctx is the one under which the statements ran: after
// its end the driver reports broken connections instead of the cause.
func (s *Store) translate(ctx context.Context, err error) error {
	var refused *pgconn.PgError
	var connecting *pgconn.ConnectError
	if told, ok := records.Told(err); ok {
		return told
	}
	switch {
	case err == nil, errors.Is(err, ErrSchema):
		return err
	case errors.Is(err, errReadOnly):
		return unavailable(textReadOnly, storage.ErrReadOnly)
	case ctx.Err() != nil:
		err = ctx.Err()
	case s.closed.Load():
		return unavailable("it is closed", nil)
	}
	switch {
	case errors.Is(err, context.Canceled):
		return err
	case errors.Is(err, context.DeadlineExceeded):
		return unavailable(textSilent, err)
	case errors.As(err, &connecting):
		return unavailable(connectReason(err), err)
	case errors.As(err, &refused):
		return translateCode(refused)
	case lostConnection(err):
		return unavailable("the connection to the database broke", err)
	}
	return fmt.Errorf("using the store: %w", err)
}

// isValue reports whether an error is about a value of the record.
func isValue(err *pgconn.PgError) bool {
	switch err.Code[:min(2, len(err.Code))] {
	case "22", // data
		"54": // limits, as of the size of an index entry
		return true
	case "23": // integrity
		return err.Code != codeUnique && err.Code != codeForeignKey
	}
	return false
}

func translateCode(err *pgconn.PgError) error {
	switch err.Code {
	case codeUnique:
		return &storage.ConflictError{Field: conflictField(err)}
	case codeForeignKey:
		return fmt.Errorf("the organization, user, server or directory entry that the record names: %w", storage.ErrNotFound)
	case codeReadOnly:
		return unavailable(textReadOnly, storage.ErrReadOnly)
	case codeFull:
		return unavailable("the database's disk is full", err)
	case codeLockTimeout:
		return unavailable("another write does not end", err)
	case codeIdleTransaction:
		return unavailable("this node stood still in the middle of a transaction", err)
	case codeCanceled:
		return unavailable(textSilent, err)
	case codeStarting:
		return unavailable(textStarting, err)
	case codeUndefinedTable:
		return fmt.Errorf("%w: %w", ErrSchema, err)
	}
	if isValue(err) {
		return fmt.Errorf("%w: %w", storage.ErrValue, err)
	}
	switch err.Code[:min(2, len(err.Code))] {
	case "08", // connections
		"28", "3D", // who may connect, and where to
		"40", // rolled back again and again
		"53", // resources: memory, connections
		"57", // operators
		"58", // the system: input and output
		"XX": // corruption
		return unavailable("the database cannot do it at the moment", err)
	}
	return fmt.Errorf("using the store: %w", err)
}

// withoutRight adds to an error how to mend that the schema may not be changed.
func withoutRight(err error) error {
	if refused := new(pgconn.PgError); errors.As(err, &refused) && refused.Code == codePrivilege {
		return fmt.Errorf("%w: the gateway's user may not make or change tables in the database: have it own the database "+
			"(ALTER DATABASE ... OWNER TO ...), or GRANT CREATE ON SCHEMA ... TO ...: %w", ErrSchema, err)
	}
	return err
}

// Reasons that are used in several places.
const (
	textStandby   = "no primary was found: a standby, which may be behind, is not asked. Name all servers in the database's address"
	textReadOnly  = "the database is read-only: default_transaction_read_only is on"
	textSilent    = "the database does not answer in time"
	textStarting  = "the database is starting or stopping"
	textMigrating = "another node is bringing the database's schema up to date"
	textNewer     = "a newer durward has changed the database's schema, and this one only reads it: start a newer durward"
)

// connectReason returns the reason why no connection was made.
func connectReason(err error) string {
	var refused *pgconn.PgError
	switch {
	case errors.Is(err, pgconn.ErrStandbyConnection):
		return textStandby
	case errors.Is(err, pgconn.ErrReadOnlyConnection): // target_session_attrs=read-write
		return textReadOnly
	case !errors.As(err, &refused):
		return "the database cannot be reached"
	}
	switch refused.Code {
	case codeStarting:
		return textStarting
	case codeNoDatabase:
		return "the server has no such database"
	case codeConnections:
		return "the server has no connection left for the gateway"
	}
	if strings.HasPrefix(refused.Code, "28") { // invalid authorization
		return "the database refuses the gateway's user or password"
	}
	return "the database refuses the connection"
}

func unavailable(reason string, cause error) error {
	return &storage.UnavailableError{Reason: reason, Err: cause}
}

// primaryFields names the field of a record that is a table's primary key, where it is not the id.
var primaryFields = map[string]string{
	"attempts":          "state",
	"audit_checkpoints": "number",
	"connections":       "connection",
	"data_keys":         "version",
	"model_aliases":     "model_alias",
}

// conflictField reads the field from the name of the constraint, which is the table's and the field's.
func conflictField(err *pgconn.PgError) string {
	field, _ := strings.CutPrefix(err.ConstraintName, err.TableName+"_")
	if field != "pkey" {
		return field
	}
	if primary, ok := primaryFields[err.TableName]; ok {
		return primary
	}
	return "id"
}
