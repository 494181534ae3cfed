package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/durward-gateway/durward/storage"
	"github.com/durward-gateway/durward/storage/records"
)

// translate turns an error of the driver into one of storage's. ctx is the one under which the statements ran: after
// its end the driver reports interrupted statements and finished transactions instead of the cause.
func (s *Store) translate(ctx context.Context, err error) error {
	var refused *sqlite.Error
	if told, ok := records.Told(err); ok {
		return told
	}
	switch {
	case err == nil, errors.Is(err, ErrSchema):
		return err
	case ctx.Err() != nil:
		err = ctx.Err()
	case s.closed.Load():
		return unavailable(err)
	}
	switch {
	case errors.Is(err, context.Canceled):
		return err
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, sql.ErrConnDone):
		return unavailable(err)
	case errors.As(err, &refused):
		return translateCode(refused)
	}
	return fmt.Errorf("using the store: %w", err)
}

func translateCode(err *sqlite.Error) error {
	switch err.Code() {
	case sqlite3.SQLITE_CONSTRAINT_UNIQUE, sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY, sqlite3.SQLITE_CONSTRAINT_ROWID:
		return &storage.ConflictError{Field: conflictField(err.Error())}
	case sqlite3.SQLITE_CONSTRAINT_FOREIGNKEY:
		return fmt.Errorf("the organization, user, server or directory entry that the record names: %w", storage.ErrNotFound)
	}
	switch err.Code() & 0xff {
	case sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_MISMATCH, sqlite3.SQLITE_TOOBIG, sqlite3.SQLITE_RANGE:
		return fmt.Errorf("%w: %w", storage.ErrValue, err)
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL, sqlite3.SQLITE_INTERRUPT, sqlite3.SQLITE_NOMEM,
		sqlite3.SQLITE_FULL, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM,
		sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
		return unavailable(err)
	}
	return fmt.Errorf("using the store: %w", err)
}

func unavailable(err error) error { return fmt.Errorf("%w: %w", storage.ErrUnavailable, err) }

// isDiskError reports whether the disk, not another writer, refused the write.
func isDiskError(err error) bool {
	var refused *sqlite.Error
	if !errors.As(err, &refused) {
		return false
	}
	switch refused.Code() & 0xff {
	case sqlite3.SQLITE_FULL, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_IOERR:
		return true
	}
	return false
}

// conflictFields names the field of a record by the last column of the unique index that refused it.
var conflictFields = map[string]string{
	"name_key":    "name",
	"state_hash":  "state",
	"scope_value": "scope",
	"owner_id":    "id",
}

// conflictField reads the column from "UNIQUE constraint failed: servers.organization_id, servers.name_key (2067)".
func conflictField(message string) string {
	_, columns, _ := strings.Cut(message, "constraint failed: ")
	columns, _, _ = strings.Cut(columns, " (")
	column := columns[strings.LastIndexByte(columns, '.')+1:]
	if field, ok := conflictFields[column]; ok {
		return field
	}
	return column
}
