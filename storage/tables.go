package storage

// ColumnKind is how a column's values look to Go.
type ColumnKind uint8

// Kinds of columns: string, int64 and []byte. A value that is not there is nil.
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
	// Key are the positions in Columns of the primary key, in its order. No column of it can be nil.
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
