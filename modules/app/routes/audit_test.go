package routes

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/durward-gateway/durward/internal/identity/authn"
	"github.com/durward-gateway/durward/modules/app"
	"github.com/durward-gateway/durward/storage"
)

// TestRefusedEntry checks that the record of a refusal names the attempted change in the same way as that of a write,
// without values.
func TestRefusedEntry(t *testing.T) {
	q := &Request{
		HTTP: httptest.NewRequest(http.MethodPatch, "/", nil), Call: &app.Call{Caller: &authn.Caller{UserID: "u", Agent: "client"}},
		path: "/api/v2/policies/{policy_id}", audit: AuditAdminWrite,
		Params: map[string]string{"policy_id": "p"},
	}
	want := storage.AuditEntry{
		Kind: storage.AuditAdmin, Event: "policy.update", UserID: "u", Client: "client", Outcome: "refused",
		Detail: map[string]any{"policy_id": "p", "status": 403},
	}
	if diff := cmp.Diff(want, q.refusedEntry(http.StatusForbidden)); diff != "" {
		t.Errorf("before the body is read (-want +got)\n%s", diff)
	}
	q.Record = &storage.AuditEntry{Detail: map[string]any{"fields": []string{"name", "rules"}, "id": "x"}}
	want.Detail = map[string]any{"policy_id": "p", "status": 409, "fields": []string{"name", "rules"}}
	if diff := cmp.Diff(want, q.refusedEntry(http.StatusConflict)); diff != "" {
		t.Errorf("with the body (-want +got)\n%s", diff)
	}
}
