package platformapi

import (
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/durward-gateway/durward/internal/gateway"
	"github.com/durward-gateway/durward/internal/policy/approval"
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
