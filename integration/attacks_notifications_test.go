package integration

import (
	"net/http"
	"strings"
	"testing"
)

// TestAttackNotifications checks that a client's notification reaches its server when the client's revision has such a
// notification. It counts as a request, except for those with which a client begins and cancels.
func TestAttackNotifications(t *testing.T) {
	t.Parallel()
	g := startGateway(t, settings{})
	upstream := answering(t)
	s := g.createServer(upstream.url, nil)
	token := g.token(alice)
	told := func(method string) string { return `{"jsonrpc":"2.0","method":"` + method + `","params":{"x":1}}` }
	for _, tc := range []struct {
		name, body, version string
		status              int
		passes              bool
	}{
		{"of every revision", told("notifications/cancelled"), "2025-06-18", 202, true},
		{"of a later one", told("notifications/tasks/status"), "2025-06-18", 202, false},
		{"of its own", told("notifications/tasks/status"), "2025-11-25", 202, true},
		{"of a server's", told("notifications/resources/updated"), "2025-11-25", 202, false},
		{"of nobody's", told("notifications/admin/restart"), "2025-11-25", 202, false},
		{"of no revision said", told("notifications/admin/restart"), "", 202, false},
		{"in a batch", "[" + told("notifications/progress") + "," + told("notifications/admin/restart") + "]", "", 400, false},
		{"an answer to nothing, in 2026-07-28", `{"jsonrpc":"2.0","id":"q","result":{"action":"accept"}}`, "2026-07-28", 202, false},
		{"an answer, before it", `{"jsonrpc":"2.0","id":"q","result":{"action":"accept"}}`, "2025-11-25", 202, false},
		{"an answer in a batch", `[{"jsonrpc":"2.0","id":"q","result":{}},` + told("notifications/progress") + `]`, "", 400, false},
		{"a batch of known ones", "[" + told("notifications/progress") + "]", "", 202, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			upstream.forget()
			header := []string{"Accept", bothKinds}
			if tc.version != "" {
				header = append(header, "MCP-Protocol-Version", tc.version)
			}
			g.send(http.MethodPost, s.path, token, tc.body, header...).want(t, tc.status)
			if n := len(upstream.all()); (n == 1) != tc.passes || n > 1 {
				t.Errorf("%d requests reached the upstream", n)
			}
		})
	}

	const limits = "/api/llm-gateway/admin/rate-limits"
	g.object(g.token(admin), http.MethodPost, limits, members{"name": "Each", "scope_type": "user", "traffic_type": "mcp", "requests_per_minute": 3})
	fresh := g.token(bob)
	tell := func(method string) int {
		return g.send(http.MethodPost, s.path, fresh, told(method), "Accept", bothKinds).status
	}
	for range 5 {
		if status := tell("notifications/cancelled"); status != http.StatusAccepted {
			t.Errorf("taking back is answered %d", status)
		}
	}
	for range 3 {
		if status := tell("notifications/progress"); status != http.StatusAccepted {
			t.Errorf("telling is answered %d", status)
		}
	}
	if a := g.send(http.MethodPost, s.path, fresh, told("notifications/progress"), "Accept", bothKinds); a.status != http.StatusTooManyRequests || !strings.Contains(string(a.body), "-31429") {
		t.Errorf("beyond the limit: %d %s", a.status, a.body)
	}
}
