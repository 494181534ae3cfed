package sqlite

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/durward-gateway/durward/storage/records"
)

// preparedReads holds the read-only connections, with those reads prepared on them for which requests wait. Preparing
// them once saves more than half of their time. They are prepared when the store opens: preparing needs a connection,
// and later a reader that holds one could wait for another.
type preparedReads struct {
	db         *sql.DB
	statements map[string]*sql.Stmt // by text; never changed after prepare
}

func prepare(ctx context.Context, db *sql.DB) (*preparedReads, error) {
	reads := dialect.Reads()
	p := &preparedReads{db: db, statements: make(map[string]*sql.Stmt, len(reads))}
	for name, query := range reads {
		statement, err := db.PrepareContext(ctx, query) //nolint:sqlclosecheck // closed with its database
		if err != nil {
			return nil, fmt.Errorf("preparing the read of %s: %w", name, err)
		}
		p.statements[query] = statement
	}
	return p, nil
}

// Query implements records.Querier.
func (p *preparedReads) Query(ctx context.Context, query string, args []any, each func(records.Row) (more bool, err error)) error {
	var rows *sql.Rows
	var err error
	if statement, ok := p.statements[query]; ok {
		rows, err = statement.QueryContext(ctx, listed(args)...)
	} else {
		rows, err = p.db.QueryContext(ctx, query, listed(args)...)
	}
	if err != nil {
		return err
	}
	return handOn(rows, each)
}

// snapshot is a read transaction that uses the prepared statements.
type snapshot struct {
	tx    *sql.Tx
	reads *preparedReads
}

// Query implements records.Querier.
func (s snapshot) Query(ctx context.Context, query string, args []any, each func(records.Row) (more bool, err error)) error {
	var rows *sql.Rows
	var err error
	if statement, ok := s.reads.statements[query]; ok {
		rows, err = s.tx.StmtContext(ctx, statement).QueryContext(ctx, listed(args)...) //nolint:sqlclosecheck // closed with its transaction
	} else {
		rows, err = s.tx.QueryContext(ctx, query, listed(args)...)
	}
	if err != nil {
		return err
	}
	return handOn(rows, each)
}
