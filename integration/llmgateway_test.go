package integration

import (
	"fmt"
	"net/http"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/durward-gateway/durward/integration/rig"
)

// TestGatewayAdministration walks through the administration of the LLM gateway in the built binary: whom it is for, what
// of it is kept and recorded, and that a key opens none of it.
func TestGatewayAdministration(t *testing.T) {
	t.Parallel()
	const base = "/api/llm-gateway"
	g := startGateway(t, settings{option: approvalConsole})
	boss, user, rival := g.token(admin), g.consoleToken(alice), g.token(eve)

	made := g.object(boss, http.MethodPost, base+"/admin/api-keys", members{"name": "Batch", "group_name": "ops", "expires_at": "2099-01-01T00:00:00Z"})
	raw, _ := made["key"].(string)
	if len(raw) != 52 || !strings.HasPrefix(raw, "dw-") || made["key_prefix"] != raw[:8] {
		t.Fatalf("%v", made)
	}
	keyPath := base + "/admin/api-keys/" + made["id"].(string)
	own := g.object(user, http.MethodPost, base+"/user/api-keys", members{"name": "Mine", "scopes": []string{"llm", "mcp"}})
	limit := g.object(boss, http.MethodPost, base+"/admin/rate-limits", members{"name": "All", "scope_type": "org", "requests_per_minute": 60})
	provider := g.object(boss, http.MethodPost, base+"/admin/providers", members{"name": "OpenAI", "kind": "openai", "api_key": "sk-very-secret"})
	for _, alias := range []string{"small", "large"} {
		g.api(boss, http.MethodPost, base+"/admin/model-mappings", members{"model_alias": alias, "targets": []any{members{"provider_id": provider["id"], "model": alias}}})
	}
	smart := g.object(boss, http.MethodPost, base+"/admin/smart-models", members{
		"model_alias": "smart", "determiner_model_alias": "small", "slots": []any{members{"model_alias": "small", "label": "easy"}, members{"model_alias": "large", "label": "hard"}},
	})
	budget := g.object(boss, http.MethodPost, base+"/admin/budgets", members{"name": "Month", "scope_type": "org", "period": "month", "amount": 100})

	// The endpoints that the gateway has had from the start.
	shown := g.send(http.MethodGet, keyPath, boss, nil).want(t, http.StatusOK)
	if strings.Contains(string(shown.body), raw) || strings.Contains(string(shown.body), `"key":`) {
		t.Errorf("the raw key is shown again: %s", shown.body)
	}
	var status []members
	g.send(http.MethodGet, base+"/admin/rate-limits/status", boss, nil).want(t, http.StatusOK).decode(t, &status)
	if len(status) != 1 || status[0]["rpm_limit"] != 60.0 || status[0]["policy"].(members)["id"] != limit["id"] {
		t.Errorf("%v", status)
	}
	smartPath := base + "/admin/smart-models/" + smart["id"].(string)
	if got := g.object(boss, http.MethodPut, smartPath, members{"context_breakpoints": []int{8000}, "default_slot_on_failure": 1}); got["model_alias"] != "smart" || len(got["slots"].([]any)) != 2 {
		t.Errorf("%v", got)
	}
	bad := g.send(http.MethodPut, smartPath, boss, members{"slots": []any{}, "context_breakpoints": "x"})
	bad.wantError(t, http.StatusBadRequest, "BadRequest")
	if !strings.Contains(string(bad.body), "; ") {
		t.Errorf("not all problems: %s", bad.body)
	}
	g.send(http.MethodGet, base+"/admin/usage?group_by=user", boss, nil).want(t, http.StatusOK)
	if days := g.object(boss, http.MethodGet, base+"/admin/usage?bucket=day", nil)["data"].([]any); len(days) < 30 || days[0].(members)["requests"] != 0.0 {
		t.Errorf("%v", days)
	}
	table := g.send(http.MethodGet, base+"/admin/usage?bucket=day", boss, nil, "Accept", "text/csv").want(t, http.StatusOK)
	if !strings.HasPrefix(string(table.body), "day,requests,") || !strings.HasPrefix(table.header.Get("Content-Type"), "text/csv") {
		t.Errorf("%v %s", table.header, table.body)
	}

	// Roles and organizations.
	paths := []string{
		keyPath, base + "/admin/rate-limits/" + limit["id"].(string), base + "/admin/providers/" + provider["id"].(string), smartPath,
		base + "/admin/budgets/" + budget["id"].(string),
	}
	for _, path := range paths {
		g.send(http.MethodGet, path, user, nil).wantError(t, http.StatusForbidden, "Forbidden")
		g.send(http.MethodGet, path, rival, nil).wantError(t, http.StatusNotFound, "NotFound")
		g.send(http.MethodDelete, path, rival, nil).wantError(t, http.StatusNotFound, "NotFound")
		g.send(http.MethodGet, path, boss, nil).want(t, http.StatusOK)
	}

	// K07: no key is a token of the administration, nor of anything but the proxies and the LLM runtime.
	for _, key := range []string{raw, own["key"].(string)} {
		for _, path := range []string{
			"/api/servers", "/api/server-directory", "/api/agents", "/api/v2/policies", "/api/approvals", "/api/audit", base + "/admin/api-keys", keyPath,
			base + "/user/api-keys", base + "/admin/rate-limits/status", "/mcp/x/y", "/mcp", base + "/v1",
		} {
			g.send(http.MethodGet, path, key, nil).wantError(t, http.StatusUnauthorized, "Unauthorized")
			g.send(http.MethodGet, path, "", nil, "X-Api-Key", key).wantError(t, http.StatusUnauthorized, "Unauthorized")
			g.send(http.MethodGet, path, "", nil, "Authorization", key).wantError(t, http.StatusUnauthorized, "Unauthorized")
		}
	}

	// A change of the key, and another secret for it: the former one ends at once.
	if got := g.object(boss, http.MethodPatch, keyPath, members{"name": "Nightly batch", "expires_at": nil}); got["name"] != "Nightly batch" || got["expires_at"] != nil {
		t.Errorf("%v", got)
	}
	models := func(key string) int { return g.send(http.MethodGet, base+"/v1/models", key, nil).status }
	if got := models(raw); got != http.StatusOK {
		t.Errorf("the key: %d", got)
	}
	g.send(http.MethodPost, keyPath+"/rotate", user, nil).wantError(t, http.StatusForbidden, "Forbidden")
	next, _ := g.object(boss, http.MethodPost, keyPath+"/rotate", nil)["key"].(string)
	if before, after := models(raw), models(next); before != http.StatusUnauthorized || after != http.StatusOK || next == raw {
		t.Errorf("the former secret: %d, the new one: %d", before, after)
	}
	rig.Eventually(t, "the use is noted", func() bool { return g.object(boss, http.MethodGet, keyPath, nil)["last_used_at"] != nil })
	if log := g.send(http.MethodGet, "/api/audit?limit=100", boss, nil); !strings.Contains(string(log.body), "api_key.rotate") || strings.Contains(string(log.body), next) {
		t.Errorf("the record of the rotation: %s", log.body)
	}
	// With time to change over there are two keys, and the record names both.
	second := g.object(boss, http.MethodPost, keyPath+"/rotate", members{"former_ends_at": time.Now().Add(time.Hour).UTC().Format(time.RFC3339)})["id"].(string)
	rotations := string(g.send(http.MethodGet, "/api/audit?limit=100", boss, nil).body)
	for _, names := range []string{`"id":"` + second + `"`, `"former_id":"` + path.Base(keyPath) + `"`} {
		if !strings.Contains(rotations, names) {
			t.Errorf("the record of a rotation with time to change over lacks %s: %s", names, rotations)
		}
	}
	g.object(boss, http.MethodDelete, base+"/admin/api-keys/"+second, nil)

	// K05: revoked once and for all; the row can be read.
	for range 2 {
		if got := g.object(boss, http.MethodDelete, keyPath, nil); got["revoked"] != true {
			t.Errorf("%v", got)
		}
	}
	if got := g.object(boss, http.MethodGet, keyPath, nil); got["revoked_at"] == nil {
		t.Errorf("%v", got)
	}
	// A user's revocation ends their keys.
	g.api(boss, http.MethodPost, "/api/users/"+own["user_id"].(string)+"/revoke", members{})
	if got := g.object(boss, http.MethodGet, base+"/admin/api-keys/"+own["id"].(string), nil); got["revoked_at"] == nil {
		t.Errorf("a revoked user's key lives on: %v", got)
	}

	// Writes are recorded, without secrets.
	var page struct {
		Data []struct {
			Event, Kind, Outcome string
			Detail               members
		}
	}
	log := g.send(http.MethodGet, "/api/audit?limit=100", boss, nil).want(t, http.StatusOK)
	log.decode(t, &page)
	seen := make(map[string]bool)
	for _, r := range page.Data {
		seen[r.Kind+" "+r.Event] = true
		if r.Outcome == "refused" {
			seen[fmt.Sprint("refused ", r.Event, " ", r.Detail["status"], " ", r.Detail["fields"])] = true
		}
		if r.Event == "llm_provider.create" && r.Detail["id"] != provider["id"] {
			t.Errorf("%v", r.Detail)
		}
	}
	for _, want := range []string{
		"admin api_key.create", "credential api_key.create", "admin api_key.delete", "admin rate_limit.create", "admin llm_provider.create",
		"admin model_mapping.create", "admin smart_model.create", "admin smart_model.update", "admin budget.create",
		"refused smart_model.update 400 [slots context_breakpoints]",
	} {
		if !seen[want] {
			t.Errorf("no record of %s: %v", want, seen)
		}
	}
	for _, secret := range []string{raw, own["key"].(string), "sk-very-secret"} {
		if strings.Contains(string(log.body), secret) || strings.Contains(g.output.String(), secret) {
			t.Error("a secret is recorded")
		}
	}
}
