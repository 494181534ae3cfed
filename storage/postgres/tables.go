package postgres

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/durward-gateway/durward/storage"
)

// tableColumnsSQL leaves out what belongs to this database and not to the store: the history of its schema, what its nodes
// have yet to hear of, the mark of an arrival, and counters of rate limits.
const tableColumnsSQL = `SELECT c.relname::text, a.attname::text, format_type(a.atttypid, NULL), COALESCE(k.place, 0)::bigint
	FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
	LEFT JOIN pg_index i ON i.indrelid = c.oid AND i.indisprimary
	LEFT JOIN LATERAL unnest(i.indkey::int2[]) WITH ORDINALITY k(column_number, place) ON k.column_number = a.attnum
	WHERE c.relkind = 'r' AND c.relnamespace = current_schema()::regnamespace AND c.relname NOT IN ('schema_migrations', 'change_log', 'store_arrival')
		AND c.relname NOT LIKE 'durward\_counters\_%' AND c.relname NOT LIKE 'durward\_nodes\_%'
	ORDER BY c.relname, a.attnum`

// pageBytes is how much of values a page of rows holds, give or take a row.
const pageBytes = 8 << 20

// errPage ends the reading of a page that is full.
var errPage = errors.New("the page is full")

// Tables lists the tables by name.
func (s *Store) Tables(ctx context.Context) (tables []storage.Table, err error) {
	type column struct {
		table, name, kind string
		key               int
	}
	var columns []column
	err = s.readAcross(ctx, func(ctx context.Context, q querier) (err error) {
		columns, err = many(ctx, q, func(r row) (c column, err error) {
			err = r.Scan(&c.table, &c.name, &c.kind, &c.key)
			return c, err
		}, tableColumnsSQL)
		return err
	})
	if err != nil {
		return nil, err
	}
	kinds := map[string]storage.ColumnKind{"text": storage.TextColumn, "bigint": storage.IntegerColumn, "smallint": storage.IntegerColumn, "bytea": storage.BytesColumn}
	for _, c := range columns {
		if len(tables) == 0 || tables[len(tables)-1].Name != c.table {
			tables = append(tables, storage.Table{Name: c.table})
		}
		t := &tables[len(tables)-1]
		if c.key > 0 {
			for len(t.Key) < c.key {
				t.Key = append(t.Key, 0)
			}
			t.Key[c.key-1] = len(t.Columns)
		}
		t.Columns = append(t.Columns, storage.Column{Name: c.name, Kind: kinds[c.kind]})
	}
	return tables, nil
}

// CountRows counts a table's rows.
func (s *Store) CountRows(ctx context.Context, t storage.Table) (n int64, err error) {
	made := statementsOf(t)
	err = s.readAcross(ctx, func(ctx context.Context, q querier) (err error) {
		n, err = one(ctx, q, func(r row) (n int64, err error) {
			err = r.Scan(&n)
			return n, err
		}, made.count)
		return err
	})
	return n, err
}

// Rows reads rows of a table in the order of its primary key, from behind a key on; nil is the beginning. A value is an
// int64, a string, a []byte or nil, as its column says. It reads at most limit rows, fewer when they are large, and none
// only when there are none.
func (s *Store) Rows(ctx context.Context, t storage.Table, after []any, limit int) (page [][]any, err error) {
	made := statementsOf(t)
	err = s.readAcross(ctx, func(ctx context.Context, q querier) error {
		page = nil
		size := 0
		each := func(r row) error {
			if size >= pageBytes {
				return errPage
			}
			values, n, err := scanValues(r, t)
			page, size = append(page, values), size+n
			return err
		}
		var err error
		if after == nil {
			err = q.query(ctx, made.first, []any{limit}, each)
		} else {
			err = q.query(ctx, made.next, append([]any{limit}, after...), each)
		}
		if errors.Is(err, errPage) {
			return nil
		}
		return err
	})
	return page, err
}

// scanValues reads a row, and tells its size.
func scanValues(r row, t storage.Table) (values []any, size int, err error) {
	values = make([]any, len(t.Columns))
	dest := make([]any, len(values))
	for i, c := range t.Columns {
		switch c.Kind {
		case storage.TextColumn:
			dest[i] = new(*string)
		case storage.IntegerColumn:
			dest[i] = new(*int64)
		case storage.BytesColumn:
			dest[i] = new([]byte)
		default:
			return nil, 0, fmt.Errorf("%s.%s is of no kind that is known", t.Name, c.Name)
		}
	}
	if err := r.Scan(dest...); err != nil {
		return nil, 0, err
	}
	for i, d := range dest {
		switch d := d.(type) {
		case **string:
			if *d != nil {
				values[i], size = **d, size+len(**d)
			}
		case **int64:
			if *d != nil {
				values[i], size = **d, size+8
			}
		case *[]byte:
			if *d != nil {
				values[i], size = *d, size+len(*d)
			}
		}
	}
	return values, size, nil
}

// ReplaceSealed puts another sealed value in the place of the one that a row of Rows has in a column, and reports whether
// it did: not when the row has gone or holds another value by now. Nobody is told: what it stands for stays the same. It
// waits for the organization's other writes.
func (s *Store) ReplaceSealed(ctx context.Context, t storage.Table, row []any, column int, sealed []byte) (replaced bool, err error) {
	made := statementsOf(t, column)
	organization, ok := row[max(t.Column("organization_id"), 0)].(string)
	if !ok {
		return false, fmt.Errorf("encrypting anew: %s does not say whose its rows are", t.Name)
	}
	err = s.write(ctx, organization, func(ctx context.Context, tx *writeTx) error {
		n, err := tx.exec(ctx, made.replace, append([]any{sealed, row[column]}, t.KeyOf(row)...)...)
		replaced = n == 1
		return err
	})
	return replaced, err
}

// tableStatements are made of the names that a table and its columns have in the schema, which no input reaches.
type tableStatements struct{ count, first, next, last, insert, empty, replace string }

// statementsOf makes the statements of a table; replace is there when the column to replace is given.
func statementsOf(t storage.Table, replaced ...int) tableStatements {
	table := quoted(t.Name)
	columns, arrays := make([]string, len(t.Columns)), make([]string, len(t.Columns))
	types := map[storage.ColumnKind]string{storage.TextColumn: "text[]", storage.IntegerColumn: "bigint[]", storage.BytesColumn: "bytea[]"}
	for i, c := range t.Columns {
		columns[i] = quoted(c.Name)
		arrays[i] = "$" + strconv.Itoa(i+1) + "::" + types[c.Kind]
	}
	key, places, same := make([]string, len(t.Key)), make([]string, len(t.Key)), make([]string, len(t.Key))
	for i, at := range t.Key {
		key[i], places[i] = columns[at], "$"+strconv.Itoa(i+2)
		same[i] = columns[at] + " = $" + strconv.Itoa(i+3)
	}
	keys, all := strings.Join(key, ", "), strings.Join(columns, ", ")
	order := " ORDER BY " + keys + " LIMIT $1"
	made := tableStatements{
		count:  "SELECT count(*) FROM " + table,
		first:  "SELECT " + all + " FROM " + table + order,
		next:   "SELECT " + all + " FROM " + table + " WHERE (" + keys + ") > (" + strings.Join(places, ", ") + ")" + order,
		last:   "SELECT " + all + " FROM " + table + " ORDER BY " + strings.Join(key, " DESC, ") + " DESC LIMIT 1",
		insert: "INSERT INTO " + table + " (" + all + ") SELECT * FROM unnest(" + strings.Join(arrays, ", ") + ")",
		empty:  "TRUNCATE " + table + " CASCADE",
	}
	for _, at := range replaced {
		made.replace = "UPDATE " + table + " SET " + columns[at] + " = $1 WHERE " + columns[at] + " = $2 AND " + strings.Join(same, " AND ")
	}
	return made
}

func quoted(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }
