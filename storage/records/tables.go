package records

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/durward-gateway/durward/storage"
)

// pageBytes bounds the values in a page of rows, in bytes, give or take a row.
const pageBytes = 8 << 20

// columnKinds maps the databases' names of types to kinds of columns.
var columnKinds = map[string]storage.ColumnKind{
	"TEXT": storage.TextColumn, "INTEGER": storage.IntegerColumn, "BIGINT": storage.IntegerColumn, "SMALLINT": storage.IntegerColumn,
	"BLOB": storage.BytesColumn, "BYTEA": storage.BytesColumn,
}

// Tables lists the tables in the order of Dialect.TableColumns.
func (s tablesStore) Tables(ctx context.Context) (tables []storage.Table, err error) {
	type column struct {
		table, name, kind string
		key               int
	}
	var columns []column
	err = s.readAcross(ctx, func(ctx context.Context, q Querier) (err error) {
		columns, err = Many(ctx, q, func(r Row) (c column, err error) {
			err = r.Scan(&c.table, &c.name, &c.kind, &c.key)
			return c, err
		}, s.dialect.TableColumns)
		return err
	})
	if err != nil {
		return nil, err
	}
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
		t.Columns = append(t.Columns, storage.Column{Name: c.name, Kind: columnKinds[strings.ToUpper(c.kind)]})
	}
	return tables, nil
}

// CountRows counts a table's rows.
func (s tablesStore) CountRows(ctx context.Context, t storage.Table) (n int64, err error) {
	made := TableStatements(t)
	err = s.readAcross(ctx, func(ctx context.Context, q Querier) error {
		counted, err := One(ctx, q, ScanInt, made.Count)
		n = int64(counted)
		return err
	})
	return n, err
}

// Rows reads rows of a table in the order of its primary key, after a key; nil is the beginning. A value is an int64,
// a string, a []byte or nil, according to its column. It reads at most limit rows, fewer when they are large, and
// none only when there are none.
func (s tablesStore) Rows(ctx context.Context, t storage.Table, after []any, limit int) (page [][]any, err error) {
	made := TableStatements(t)
	err = s.readAcross(ctx, func(ctx context.Context, q Querier) error {
		page = nil
		size := 0
		each := func(r Row) (more bool, err error) {
			values, err := ScanValues(r, t)
			page = append(page, values)
			for _, v := range values {
				size += valueSize(v)
			}
			return size < pageBytes, err
		}
		if after == nil {
			return q.Query(ctx, made.First, []any{limit}, each)
		}
		return q.Query(ctx, made.Next, append([]any{limit}, after...), each)
	})
	return page, err
}

// valueColumn reads a value of a column's kind, and refuses others.
type valueColumn struct {
	to   *any
	kind storage.ColumnKind
}

func (c valueColumn) Scan(v any) error {
	switch v := v.(type) {
	case nil:
		*c.to = nil
		return nil
	case int64:
		if c.kind == storage.IntegerColumn {
			*c.to = v
			return nil
		}
	case string:
		if c.kind == storage.TextColumn {
			*c.to = v
			return nil
		}
	case []byte:
		if c.kind == storage.BytesColumn {
			*c.to = slices.Clone(v) // it belongs to the database until the next row
			return nil
		}
	}
	return fmt.Errorf("a value is a %T", v)
}

// ScanValues reads a row of all of a table's columns.
func ScanValues(r Row, t storage.Table) ([]any, error) {
	values, dest := make([]any, len(t.Columns)), make([]any, len(t.Columns))
	for i, c := range t.Columns {
		dest[i] = valueColumn{&values[i], c.Kind}
	}
	if err := r.Scan(dest...); err != nil {
		return nil, fmt.Errorf("reading a row of %s: %w", t.Name, err)
	}
	return values, nil
}

func valueSize(v any) int {
	switch v := v.(type) {
	case string:
		return len(v)
	case []byte:
		return len(v)
	case int64:
		return 8
	}
	return 0
}

// ReplaceSealed replaces the sealed value that a row of Rows has in a column, and reports whether it did: not when
// the row is gone or holds another value by now. Listeners are not told: the secret inside stays the same. It waits
// for the organization's other writes.
func (s tablesStore) ReplaceSealed(ctx context.Context, t storage.Table, row []any, column int, sealed []byte) (replaced bool, err error) {
	made := TableStatements(t, column)
	organization, ok := row[max(t.Column("organization_id"), 0)].(string)
	if !ok {
		return false, fmt.Errorf("encrypting anew: %s does not say whose its rows are", t.Name)
	}
	err = s.write(ctx, organization, func(ctx context.Context, tx Tx) error {
		n, err := tx.Exec(ctx, made.Replace, append([]any{sealed, row[column]}, t.KeyOf(row)...)...)
		replaced = n == 1
		return err
	})
	return replaced, err
}

// TableTexts holds statements made from the names that a table and its columns have in the schema, which no input
// reaches.
type TableTexts struct{ Count, First, Next, Last, Replace string }

// TableStatements makes the statements of a table; Replace is set when the column to replace is given.
func TableStatements(t storage.Table, replaced ...int) TableTexts {
	table, columns := Quoted(t.Name), make([]string, len(t.Columns))
	for i, c := range t.Columns {
		columns[i] = Quoted(c.Name)
	}
	key, places, same := make([]string, len(t.Key)), make([]string, len(t.Key)), make([]string, len(t.Key))
	for i, at := range t.Key {
		key[i], places[i] = columns[at], "$"+strconv.Itoa(i+2)
		same[i] = columns[at] + " = $" + strconv.Itoa(i+3)
	}
	keys, all := strings.Join(key, ", "), "SELECT "+strings.Join(columns, ", ")+" FROM "+table
	order := " ORDER BY " + keys + " LIMIT $1"
	made := TableTexts{
		Count: "SELECT count(*) FROM " + table,
		First: all + order,
		Next:  all + " WHERE (" + keys + ") > (" + strings.Join(places, ", ") + ")" + order,
		Last:  all + " ORDER BY " + strings.Join(key, " DESC, ") + " DESC LIMIT 1",
	}
	for _, at := range replaced {
		made.Replace = "UPDATE " + table + " SET " + columns[at] + " = $1 WHERE " + columns[at] + " = $2 AND " + strings.Join(same, " AND ")
	}
	return made
}

// Quoted returns a name of the schema in the form for statements.
func Quoted(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }
