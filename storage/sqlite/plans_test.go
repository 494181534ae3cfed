package sqlite

import (
	"strings"
	"testing"

	"github.com/durward-gateway/durward/storage/storagetest"
)

// P6: the statements for which requests wait use an index on all their conditions, however much else the organization
// has. An order that another index has can keep the planner from that: policies of a server that are ordered by their
// id were searched among all of the organization's.
func TestReadsUseIndexes(t *testing.T) {
	t.Parallel()
	s := open(t, Options{})
	reads := dialect.Reads()
	reads["policies that go with a server"] = storagetest.Statement(t, "../records", "livePoliciesOfServerSQL")
	for _, c := range []struct{ name, wants string }{
		{"user by subject", "(organization_id=? AND issuer=? AND subject=?)"},
		{"user", "(organization_id=? AND id=?)"},
		{"agent by client", "(organization_id=? AND issuer=? AND external_id=?)"},
		{"server by slug", "(organization_id=? AND slug=?)"},
		{"connection", "(organization_id=? AND user_id=? AND server_id=?)"},
		{"policies of a server", "(organization_id=? AND server_id=?)"},
		{"policies that go with a server", "(organization_id=? AND server_id=?)"},
		{"approval that can be used", "(organization_id=? AND user_id=? AND binding=?)"},
		{"attempt", "(state_hash=?)"},
		{"provisioned by name", "(organization_id=? AND name_key=?)"},
		{"provisioned by external id", "(organization_id=? AND external_id=?)"},
		{"provisioned formerly", "(organization_id=? AND user_id=?)"},
		{"groups of provisioned", "(organization_id=? AND provisioned_id=?)"},
		{"calls that are held", "(organization_id=? AND user_id=? AND call=?)"},
		{"hold", "(id=?)"},
		{"pins of tools", "(organization_id=? AND server_id=? AND name=?)"},
	} {
		query := reads[c.name]
		arguments := make([]any, strings.Count(query, "$")) // at least as many as there are
		rows, err := s.writer.QueryContext(t.Context(), `EXPLAIN QUERY PLAN `+query, arguments...)
		if err != nil {
			t.Fatal(err)
		}
		defer rows.Close()
		for first := true; rows.Next(); first = false {
			var id, parent, unused int
			var plan string
			if err := rows.Scan(&id, &parent, &unused, &plan); err != nil {
				t.Fatal(err)
			}
			if strings.HasPrefix(plan, "SCAN") && !strings.HasPrefix(plan, "SCAN json_each ") || first && !strings.HasSuffix(plan, c.wants) {
				t.Errorf("%s: %s", c.name, plan)
			}
		}
		if err := rows.Err(); err != nil {
			t.Fatal(err)
		}
	}
}
