package sqlite

import "github.com/durward-gateway/durward/storage/records"

// listBegin and listEnd find a text in a result of listed.
const (
	listBegin = ` IN (SELECT CAST(unhex(value) AS TEXT) FROM json_each(`
	listEnd   = `))`
)

// Tables are listed in the order of their creation: a table that refers to another one comes after it.
const tableColumnsSQL = `SELECT m.name, c.name, c.type, c.pk FROM sqlite_schema m JOIN pragma_table_info(m.name) c
	WHERE m.type = 'table' AND m.name NOT IN ('schema_migrations', 'change_log') AND substr(m.name, 1, 7) <> 'sqlite_' ORDER BY m.rowid, c.cid`

// dialect holds SQLite's versions of the records' statements. Nothing is locked: there is one writer.
var dialect = records.Dialect{
	Position:     `instr`,
	ListBegin:    listBegin,
	ListEnd:      listEnd,
	PinsNamed:    `tool_pins WHERE organization_id = $1 AND server_id = $2 AND name` + listBegin + `$3` + listEnd,
	TableColumns: tableColumnsSQL,
}
