package platformapi

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/durward-gateway/durward/internal/gateway"
	"github.com/durward-gateway/durward/internal/policy/approval"
	"github.com/durward-gateway/durward/modules/app"
	"github.com/durward-gateway/durward/storage"
)

// TestDecidedAlready checks that a user who decides too late is told the call's result.
func TestDecidedAlready(t *testing.T) {
	a := newAPI(t)
	server := a.server(a.adam, "Tracker", a.entry(a.adam, nil))
	policy := a.policy(a.adam, object{"name": "P", "mcp_server_id": server, "status": "ACTIVE"})
	for first, want := range map[string]string{"approve": "approved", "deny": "denied"} {
		held, err := a.core.Approvals.Request(t.Context(), &approval.Call{
			OrganizationID: a.alice.OrganizationID, UserID: a.alice.UserID, Client: "agent", ServerID: server, Tool: first,
			PolicyID: policy, PolicyRevision: 1, Rule: "r", Arguments: []byte("{}"), Channel: storage.ChannelOutOfBand,
		})
		if err != nil {
			t.Fatal(err)
		}
		path := "/api/approvals/" + held.ID + "/"
		a.do(a.alice, http.MethodPost, path+first, nil).want(200)
		for _, second := range []string{"approve", "deny"} {
			got := a.do(a.alice, http.MethodPost, path+second, nil).wantError(409, gateway.Conflict)
			if diff := cmp.Diff(object{"field": "status", "status": want}, got["details"]); diff != "" {
				t.Errorf("%s, then %s: %s", first, second, diff)
			}
		}
	}
}

// TestFollowApprovals checks that a stream of held calls sends the page, and again when it changed, that nobody follows those of
// others without the right, and that it ends with its client.
func TestFollowApprovals(t *testing.T) {
	a := newAPI(t)
	server := a.server(a.adam, "Tracker", a.entry(a.adam, nil))
	policy := a.policy(a.adam, object{"name": "P", "mcp_server_id": server, "status": "ACTIVE"})
	a.do(a.alice, http.MethodGet, "/api/approvals?user_id="+a.adam.UserID, nil).wantError(403, gateway.Forbidden)
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.URL.Host = "gate.example.test"
		if err := a.handler.ServeHTTP(w, app.WithCall(r, &app.Call{Core: a.core, Caller: a.alice}), nil); err != nil {
			t.Error(err)
		}
	}))
	defer site.Close()
	ctx, leave := context.WithTimeout(t.Context(), time.Minute)
	defer leave()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, site.URL+"/api/approvals?status=pending&user_id="+a.alice.UserID, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept", "text/event-stream")
	w, err := site.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Body.Close()
	lines := bufio.NewScanner(w.Body)
	next := func() (total int) {
		t.Helper()
		for lines.Scan() {
			text, ok := strings.CutPrefix(lines.Text(), "data: ")
			if !ok {
				continue
			}
			var page struct{ Pagination struct{ Total int } }
			if err := json.Unmarshal([]byte(text), &page); err != nil {
				t.Fatalf("%v: %s", err, text)
			}
			return page.Pagination.Total
		}
		t.Fatalf("the stream has ended: %v", lines.Err())
		return 0
	}
	if n := next(); n != 0 || w.Header.Get("Content-Type") != "text/event-stream" {
		t.Errorf("%d calls are held: %v", n, w.Header)
	}
	if _, err := a.core.Approvals.Request(t.Context(), &approval.Call{
		OrganizationID: a.alice.OrganizationID, UserID: a.alice.UserID, Client: "agent", ServerID: server, Tool: "tool",
		PolicyID: policy, PolicyRevision: 1, Rule: "r", Arguments: []byte("{}"), Channel: storage.ChannelOutOfBand,
	}); err != nil {
		t.Fatal(err)
	}
	if n := next(); n != 1 {
		t.Errorf("%d calls are held after one came", n)
	}
}
