package postgres

import (
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// P6: the statements for which requests wait use an index, also behind the second wall: the policies of tables must
// not keep the planner from it.
func TestReadsUseIndexes(t *testing.T) {
	t.Parallel()
	s := open(t, Options{Timeout: patient})
	seed(t, s, "a")
	reads := dialect.Reads()
	const zero = int64(0)
	reads["changes since a position"] = pollSQL
	for _, c := range []struct {
		name, wants string
		args        []any
	}{
		{"API key by HMAC", `Index Cond: \(hmac = `, []any{[]byte("x")}},
		{"user by subject", `Index Cond: \(\(organization_id = `, []any{"a", "b", "c"}},
		{"user", `Index Cond: .*\bid = `, []any{"a", "b"}},
		{"agent by client", `Index Cond: \(\(organization_id = `, []any{"a", "b", "c"}},
		{"agent's credential", `Index Cond: .*\bid = `, []any{"a", "b"}},
		{"credentials of a client", `Index Cond: .*\bagent_id = `, []any{"a"}},
		{"server by slug", `Index Cond: \(\(organization_id = `, []any{"a", "b"}},
		{"connection", `Index Cond: \(\(organization_id = `, []any{"a", "b", "c"}},
		{"policies of a server", `Index Cond: \(+organization_id = `, []any{"a", "b"}},
		{"approval that can be used", `Index Cond: \(+organization_id = `, []any{"a", "b", []byte("c"), zero, ""}},
		{"pins of tools", `Index Cond: .*\bname = named.wanted`, []any{"a", "b", []string{"c", "d"}}},
		{"provisioned formerly", `Index Cond: \(\(organization_id = .*\buser_id = `, []any{"a", "b"}},
		{"attempt", `Index Cond: \(state_hash = `, []any{[]byte("x"), zero}},
		{"changes since a position", `Index Cond: \(xact >= `, []any{"3"}},
	} {
		var plan []string
		err := pgx.BeginFunc(t.Context(), s.main, func(tx pgx.Tx) error {
			// The tables of a test are so small that reading them whole is cheaper; which of the indexes is best is not known.
			if _, err := tx.Exec(t.Context(), `SET LOCAL enable_seqscan = off`); err != nil {
				return err
			}
			if _, err := tx.Exec(t.Context(), setScopeSQL, "=a"); err != nil {
				return err
			}
			rows, err := tx.Query(t.Context(), "EXPLAIN "+reads[c.name], append([]any{pgx.QueryExecModeSimpleProtocol}, c.args...)...)
			if err != nil {
				return err
			}
			plan, err = pgx.CollectRows(rows, pgx.RowTo[string])
			return err
		})
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
		} else if text := strings.Join(plan, "\n"); !regexp.MustCompile(c.wants).MatchString(text) {
			t.Errorf("%s:\n%s", c.name, text)
		}
	}
}
