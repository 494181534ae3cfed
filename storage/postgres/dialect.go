package postgres

import "github.com/durward-gateway/durward/storage/records"

// tableColumnsSQL leaves out the history of the schema, the changes that other nodes have yet to hear of, the mark of
// a copy, and counters of rate limits.
const tableColumnsSQL = `SELECT c.relname::text, a.attname::text, format_type(a.atttypid, NULL), COALESCE(k.place, 0)::bigint
	FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
	LEFT JOIN pg_index i ON i.indrelid = c.oid AND i.indisprimary
	LEFT JOIN LATERAL unnest(i.indkey::int2[]) WITH ORDINALITY k(column_number, place) ON k.column_number = a.attnum
	WHERE c.relkind = 'r' AND c.relnamespace = current_schema()::regnamespace AND c.relname NOT IN ('schema_migrations', 'change_log', 'store_arrival')
		AND c.relname NOT LIKE 'durward\_counters\_%' AND c.relname NOT LIKE 'durward\_nodes\_%'
	ORDER BY c.relname, a.attnum`

// dialect holds PostgreSQL's versions of the records' statements.
var dialect = records.Dialect{
	Position:    `strpos`,
	ListBegin:   ` = ANY (`,
	ListEnd:     `)`,
	ForUpdate:   ` FOR UPDATE`,
	ForKeyShare: ` FOR KEY SHARE`,
	OnlyOwn:     ` AND organization_id = $2`, // the second wall shows no others
	// Each name is searched separately: for a list of names the planner reads all pins of the server as long as it
	// estimates them to be few.
	PinsNamed: `unnest($3::text[]) AS named (wanted)
		CROSS JOIN LATERAL (SELECT * FROM tool_pins WHERE organization_id = $1 AND server_id = $2 AND name = wanted OFFSET 0) p`,
	TableColumns: tableColumnsSQL,
}
