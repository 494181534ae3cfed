package integration

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestShadow checks that a draft in the shadow decides nothing; calls that it would have decided otherwise are counted
// and listed, also by the next process, and begins anew when the draft changes.
func TestShadow(t *testing.T) {
	t.Parallel()
	g := startGateway(t, settings{})
	s := g.createServer(newMCPServer(t, nil).url, nil)
	boss, token := g.token(admin), g.token(alice)
	var made struct{ Policy struct{ ID string } }
	g.api(boss, http.MethodPost, "/api/v2/policies", members{"name": "Stricter", "mcp_server_id": s.ID, "shadow": true, "rules": []any{
		members{"name": "echo", "authorized": true, "actions": []string{"tools/call:echo"}},
		members{"name": "upper asks", "authorized": true, "actions": []string{"tools/call:upper:approve"}},
	}}).decode(t, &made)
	path := "/api/v2/policies/" + made.Policy.ID
	session := g.initialize(token, s)
	call := func(tool string) {
		t.Helper()
		a := g.mcp(token, s, session, toolCallWith(tool, `{"text":"x"}`)).want(t, http.StatusOK)
		if text := string(a.body); !strings.Contains(text, `"result"`) || strings.Contains(text, "isError") {
			t.Errorf("the shadow decides on %s: %s", tool, text)
		}
	}
	for _, tool := range []string{"echo", "upper", "echo", "upper"} {
		call(tool)
	}
	report := func() members { return g.object(boss, http.MethodGet, path+"/shadow?limit=1", nil) }
	check := func(t *testing.T) {
		t.Helper()
		got := report()
		if got["different"] != 2.0 || got["calls"].(float64) < 4 || got["revision"] != 1.0 {
			t.Errorf("%v", got)
		}
		if diff := cmp.Diff([]any{members{"decision": "allow", "would_decide": "ask", "count": 2.0}}, got["counts"]); diff != "" {
			t.Error(diff)
		}
		listed := got["data"].([]any)
		if len(listed) != 1 || got["pagination"].(members)["total"] != 2.0 {
			t.Fatalf("%v", got)
		}
		one := listed[0].(members)
		if one["tool"] != "upper" || one["method"] != "tools/call" || one["user_id"] != alice["sub"] || one["rule"] != "all" || one["would_rule"] != "upper asks" {
			t.Errorf("%v", one)
		}
	}
	check(t)
	t.Run("after a restart", func(t *testing.T) {
		g.restart()
		check(t)
	})
	g.api(boss, http.MethodPatch, path, members{"description": "changed"})
	if got := report(); got["different"] != 0.0 || got["revision"] != 2.0 {
		t.Errorf("of the draft as it was: %v", got)
	}
}
