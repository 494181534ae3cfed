package storage

// ColumnKind is the Go type of a column's values.
type ColumnKind uint8

// Kinds of columns: string, int64 and []byte. A missing value is nil.
const (
	TextColumn ColumnKind = iota + 1
	IntegerColumn
	BytesColumn
)

// Column is a column of a table.
type Column struct {
	Name string
	Kind ColumnKind
}

// Table is a table as a driver keeps it: for moving a store to another driver and for encrypting anew, never for requests.
// All drivers have the same tables, columns and primary keys.
type Table struct {
	Name    string
	Columns []Column
	// Key holds the positions in Columns of the primary key's columns, in their order. None of them can be nil.
	Key []int
}

// Column returns the position of a column, -1 when there is none of that name.
func (t *Table) Column(name string) int {
	for i, c := range t.Columns {
		if c.Name == name {
			return i
		}
	}
	return -1
}

// KeyOf returns the primary key of a row.
func (t *Table) KeyOf(row []any) []any {
	key := make([]any, len(t.Key))
	for i, at := range t.Key {
		key[i] = row[at]
	}
	return key
}
