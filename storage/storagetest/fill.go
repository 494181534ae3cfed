package storagetest

import (
	"database/sql"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/durward-gateway/durward/storage"
)

// records maps tables to the names of their ids in other tables, where these are not the table's own name: another
// table's column server_id holds ids of servers.
var records = map[string]string{
	"organizations": "organization", "users": "user", "directory_entries": "directory", "servers": "server", "applications": "application",
	"agents": "agent", "policies": "policy", "budgets": "budget", "provisioned_users": "provisioned", "provisioned_groups": "group",
}

// tags holds prefixes with which ids sort by bytes in another order than by any language's rules.
var tags = [...]string{"a", "B", "ä", "_", "~", "Z", "zz", "É", "0"}

// FillTables puts n rows into each of a database's tables, which satisfy the constraints of the tables. Row i of each
// belongs to row i of the others. given, when set, may choose a value that is no key.
func FillTables(tb testing.TB, db *sql.DB, tables []storage.Table, n int, given func(t storage.Table, column string, row []any) (any, bool)) {
	tb.Helper()
	tx, err := db.BeginTx(tb.Context(), nil)
	if err != nil {
		tb.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }() // after a commit this does nothing
	for _, t := range tables {
		columns, places := make([]string, len(t.Columns)), make([]string, len(t.Columns))
		for i, c := range t.Columns {
			columns[i], places[i] = `"`+c.Name+`"`, fmt.Sprintf("$%d", i+1)
		}
		insert, err := tx.PrepareContext(tb.Context(), fmt.Sprintf(`INSERT INTO "%s" (%s) VALUES (%s)`, t.Name, strings.Join(columns, ", "), strings.Join(places, ", "))) //nolint:gosec // G201: names of the schema
		if err != nil {
			tb.Fatal(err)
		}
		defer insert.Close()
		for i := 1; i <= n; i++ {
			row := make([]any, len(t.Columns))
			for j, c := range t.Columns {
				row[j] = fillValue(t, c, i)
			}
			for j, c := range t.Columns {
				if given == nil {
					break
				}
				if v, ok := given(t, c.Name, row); ok {
					row[j] = v
				}
			}
			if _, err := insert.ExecContext(tb.Context(), row...); err != nil {
				tb.Fatalf("row %d of %s: %v", i, t.Name, err)
			}
		}
	}
	if err := tx.Commit(); err != nil {
		tb.Fatal(err)
	}
}

func fillValue(t storage.Table, c storage.Column, i int) any {
	sometimes := i%3 == 0
	switch c.Kind {
	case storage.IntegerColumn:
		switch {
		case strings.HasSuffix(c.Name, "_at"), c.Name == "at", c.Name == "hour", c.Name == "start":
			if sometimes {
				return time.Time{}.UnixMicro()
			}
			return start.UnixMicro() + int64(i)
		case len(t.Key) > 0 && t.Column(c.Name) == t.Key[len(t.Key)-1]:
			return int64(i)
		case sometimes && strings.HasSuffix(c.Name, "_per_minute"):
			return nil
		}
		return int64(i % 2)
	case storage.BytesColumn:
		if sometimes && strings.HasPrefix(c.Name, "sealed") && t.Name != "revocations" && t.Name != "signing_keys" {
			return nil
		}
		return fmt.Appendf(nil, "%s\x00\xff%d", c.Name, i)
	}
	if record, ok := strings.CutSuffix(c.Name, "_id"); ok {
		if sometimes && (t.Name == "directory_entries" && record == "organization" || t.Name == "approvals" && record == "agent") {
			return nil
		}
		return fmt.Sprintf("%s-%s-%d", record, tags[i%len(tags)], i)
	}
	if c.Name == "id" {
		record, ok := records[t.Name]
		if !ok {
			record = t.Name
		}
		return fmt.Sprintf("%s-%s-%d", record, tags[i%len(tags)], i)
	}
	return fmt.Sprintf("%s %s\n\"Grüezi\" %d", tags[i%len(tags)], c.Name, i)
}
