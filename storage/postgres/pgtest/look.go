package pgtest

import (
	"context"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// Texts reads a column of texts as a user for whom row-level security does not apply. database is an address of
// Database.
func Texts(tb testing.TB, database, statement string) []string {
	tb.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	conn, err := pgx.Connect(ctx, Superuser(tb, database))
	if err != nil {
		tb.Fatal(err)
	}
	defer conn.Close(ctx)
	rows, err := conn.Query(ctx, statement)
	if err != nil {
		tb.Fatal(err)
	}
	texts, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		tb.Fatal(err)
	}
	return texts
}

// Exec runs a statement in a database of Database, as the same user as Texts.
func Exec(tb testing.TB, database, statement string) {
	tb.Helper()
	exec(tb, Superuser(tb, database), statement)
}

// dumpsSQL makes a statement for each table that reads all of its rows, bytes as they are where they can be printed.
const dumpsSQL = `SELECT format('SELECT concat_ws('' '', %s) FROM %I', string_agg(
		CASE data_type WHEN 'bytea' THEN format('encode(%I, ''escape'')', column_name) ELSE format('%I::text', column_name) END, ', '
		ORDER BY ordinal_position), table_name)
	FROM information_schema.columns WHERE table_schema = 'public' GROUP BY table_name`

// Dump returns all contents of a database of Database, to be searched.
func Dump(tb testing.TB, database string) string {
	tb.Helper()
	var all strings.Builder
	for _, statement := range Texts(tb, database, dumpsSQL) {
		for _, row := range Texts(tb, database, statement) {
			all.WriteString(row + "\n")
		}
	}
	return all.String()
}
