package platformapi

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/durward-gateway/durward/internal/gateway"
	"github.com/durward-gateway/durward/internal/policy/replay"
	"github.com/durward-gateway/durward/storage"
)

func auditRecord(t *testing.T, e storage.AuditEntry) *storage.AuditRecord {
	t.Helper()
	text, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	return &storage.AuditRecord{Text: text}
}

func TestDifferences(t *testing.T) {
	draft := storage.Policy{ID: "draft", ServerID: "server", Revision: 2}
	scoped := storage.Policy{ID: "scoped", ServerID: "server", Status: storage.PolicyActive, ApplicationIDs: []string{"governed"}}
	d := differences{policy: &draft, scope: replay.NewScope(draft, []storage.Policy{draft, scoped}), counts: make(map[differenceCount]int)}
	call := func(n int, change func(*storage.AuditEntry)) {
		e := storage.AuditEntry{
			ID: fmt.Sprint(n), At: start.Add(time.Duration(n) * time.Second), Kind: storage.AuditCall, Event: "decision", ServerID: "server", UserID: "u", Method: "tools/call",
			Tool: "t", Decision: "allow", Rule: "r", PolicyID: "active", Shadow: []storage.AuditShadow{{PolicyID: "draft", Revision: 2, Decision: "deny"}},
		}
		change(&e)
		if err := d.add(auditRecord(t, e)); err != nil {
			t.Fatal(err)
		}
	}
	for n, change := range []func(*storage.AuditEntry){
		func(*storage.AuditEntry) {},
		func(e *storage.AuditEntry) { e.Shadow[0].Revision = 1 }, // of the draft as it was
		func(e *storage.AuditEntry) { e.Shadow[0].PolicyID = "another" },
		func(e *storage.AuditEntry) { e.Shadow = nil },
		func(e *storage.AuditEntry) { e.ServerID = "another" },
		func(e *storage.AuditEntry) { e.Kind = storage.AuditAdmin },
		func(e *storage.AuditEntry) { e.Call = "0" }, // an outcome
		func(e *storage.AuditEntry) { e.Method, e.Tool, e.Shadow = "tools/list", "", nil },
		func(e *storage.AuditEntry) { e.AgentID, e.Shadow = "governed", nil }, // by another policy
		func(e *storage.AuditEntry) {
			e.AgentID, e.Shadow[0].Decision, e.Shadow[0].Rule, e.Rule = "a", "ask", "s", ""
		},
		func(*storage.AuditEntry) {},
	} {
		call(n, change)
	}
	if err := d.add(&storage.AuditRecord{Text: []byte("{")}); err != nil || d.calls != 6 || d.total != 3 {
		t.Errorf("%d of %d calls, %v", d.total, d.calls, err)
	}
	if diff := cmp.Diff([]differenceCount{{"allow", "deny", 2}, {"allow", "ask", 1}}, d.counted()); diff != "" {
		t.Error(diff)
	}
	ids := func(page storage.PageRequest) (ids []string) {
		got := d.page(page)
		if got.Total != 3 {
			t.Errorf("total %d", got.Total)
		}
		for _, item := range got.Items {
			ids = append(ids, item.AuditID)
		}
		return ids
	}
	for _, tt := range []struct {
		page storage.PageRequest
		want []string
	}{{storage.PageRequest{Number: 1, Limit: 2}, []string{"10", "9"}}, {storage.PageRequest{Number: 2, Limit: 2}, []string{"0"}}, {storage.PageRequest{Number: 1 << 30, Limit: 100}, nil}} {
		if diff := cmp.Diff(tt.want, ids(tt.page)); diff != "" {
			t.Error(diff)
		}
	}
	for n := range 3 * maxDifferences {
		call(n, func(*storage.AuditEntry) {})
	}
	if got := d.page(storage.PageRequest{Number: 1, Limit: 1}); got.Total != maxDifferences || got.Items[0].AuditID != fmt.Sprint(3*maxDifferences-1) || d.total != 3+3*maxDifferences {
		t.Errorf("%d kept of %d, the newest %s", got.Total, d.total, got.Items[0].AuditID)
	}
}

func TestShadowRefuses(t *testing.T) {
	a := newAPI(t)
	path := "/api/v2/policies/" + uuid.NewString() + "/shadow"
	a.do(a.adam, http.MethodGet, path, nil).wantError(404, gateway.PolicyNotFound)
	a.do(a.alice, http.MethodGet, path, nil).wantError(403, gateway.Forbidden)
	a.do(a.adam, http.MethodGet, path+"?days=0&page=0", nil).wantProblems("query.page greater_than_equal", "query.days greater_than_equal")
}
