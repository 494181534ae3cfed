package platformapi

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/durward-gateway/durward/internal/identity/caller"
	"github.com/durward-gateway/durward/internal/llm/route"
	"github.com/durward-gateway/durward/storage"
)

// TestHealthDetail checks what the parts of a node say, while they work and while they fail.
func TestHealthDetail(t *testing.T) {
	a := newAPI(t)
	trail := a.audited()
	provider := storage.LLMProvider{ID: uuid.NewString(), OrganizationID: a.adam.OrganizationID, Name: "Models", Kind: "openai", BaseURL: "https://models.example/v1", CreatedAt: start, UpdatedAt: start}
	if err := a.store.CreateLLMProvider(t.Context(), storage.ConfiguredModels{}, provider); err != nil {
		t.Fatal(err)
	}
	operator := a.as(caller.Powers{Operator: true})
	detail := func() (object, map[string]object) {
		t.Helper()
		got := a.do(operator, http.MethodGet, "/api/health/detail", nil).want(200)
		parts := make(map[string]object)
		for _, one := range got["parts"].([]any) {
			part := one.(object)
			parts[part["kind"].(string)] = part
			if part["text"] == "" {
				t.Errorf("%v says nothing", part)
			}
		}
		return got, parts
	}
	got, parts := detail()
	if got["node"] != trail.Node() || got["status"] == "failing" {
		t.Errorf("%v", got)
	}
	for kind, state := range map[string]string{"store": "ok", "clock": "ok", "memory": "ok", "counters": "off", "journal": "ok", "llm_provider": "ok"} {
		if parts[kind]["state"] != state {
			t.Errorf("%s: %v, want %s", kind, parts[kind], state)
		}
	}
	if state := parts["disk"]["state"]; state == nil {
		t.Error("the disk is not told of")
	}
	for range 10 {
		if pass, ok := a.core.Accounts.Breakers().Enter(route.Key{Organization: a.adam.OrganizationID, Provider: provider.ID}); ok {
			pass.Done(route.Fails)
		}
	}
	a.store.err = &storage.UnavailableError{Reason: "its disk is full"}
	got, parts = detail()
	if got["status"] != "failing" || parts["store"]["state"] != "failing" || !strings.Contains(parts["store"]["text"].(string), "its disk is full") || parts["llm_provider"]["state"] != "failing" {
		t.Errorf("%v", got)
	}
	a.do(operator, http.MethodGet, "/api/health/detail?verbose=1", nil).wantProblems("query.verbose extra_forbidden")
}
