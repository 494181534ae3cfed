package sqlite

import (
	"strings"
	"testing"
)

// P6: what requests wait for is found by an index on all that it asks for, however much else the organization has. An
// order that another index has can keep the planner from that: policies of a server that are ordered by their id were
// looked for among all of the organization's.
func TestReadsUseIndexes(t *testing.T) {
	t.Parallel()
	s := open(t, Options{})
	for _, c := range []struct{ name, query, wants string }{
		{"user by subject", userBySubjectSQL, "(organization_id=? AND issuer=? AND subject=?)"},
		{"user", userSQL, "(organization_id=? AND id=?)"},
		{"agent by client", agentByClientSQL, "(organization_id=? AND external_id=?)"},
		{"server by slug", serverBySlugSQL, "(organization_id=? AND slug=?)"},
		{"connection", connectionSQL, "(organization_id=? AND user_id=? AND server_id=?)"},
		{"policies of a server", serverPoliciesSQL, "(organization_id=? AND server_id=?)"},
		{"policies that go with a server", livePoliciesOfServerSQL, "(organization_id=? AND server_id=?)"},
		{"approval that can be used", takeableSQL, "(organization_id=? AND user_id=? AND binding=?)"},
		{"attempt", liveAttemptSQL, "(state_hash=?)"},
		{"pins of tools", pinsNamedSQL, "(organization_id=? AND server_id=? AND name=?)"},
	} {
		arguments := make([]any, strings.Count(c.query, "$")) // at least as many as there are
		rows, err := s.writer.QueryContext(t.Context(), `EXPLAIN QUERY PLAN `+c.query, arguments...)
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
