package llm_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// scopeStatus is one entry of the limits' status.
type scopeStatus struct {
	Policy struct {
		Name string `json:"name"`
	} `json:"policy"`
	Requests int64 `json:"rpm_used"`
	Tokens   int64 `json:"tpm_used"`
	Subjects *struct {
		Fullest []struct{ Subject string } `json:"fullest"`
	} `json:"subjects"`
}

func (g *gateway) status() map[string]scopeStatus {
	g.t.Helper()
	var all []scopeStatus
	got := g.send(http.MethodGet, base+"/admin/rate-limits/status", "").want(http.StatusOK)
	if err := json.Unmarshal([]byte(got.body), &all); err != nil {
		g.t.Fatal(err)
	}
	byName := make(map[string]scopeStatus)
	for _, s := range all {
		byName[s.Policy.Name] = s
	}
	return byName
}

// TestScopes checks that a call to a model counts once, with its tokens, in every limit that is for something of it, of
// all twelve scopes and the three kinds of traffic, and in no other (T10). What was used is written down under all of
// it.
func TestScopes(t *testing.T) {
	p := newProvider(t, func(w http.ResponseWriter, _ *http.Request, _ []byte) { reply(w, 200, whole) })
	g := newGateway(t, p.URL, object{"agents": object{"auto_register": true}})
	g.token = g.issuer.Token(public, object{
		"roles": []string{"admin", "dev"}, "groups": []string{"/eng", "eng"}, "teams": []string{"core"}, "projects": []string{"apollo"}, "azp": "client",
	})
	provider := g.make("/admin/providers", object{"name": "stored", "kind": "openai", "base_url": p.URL})["id"].(string)
	g.make("/admin/model-mappings", object{"model_alias": "mine", "targets": []any{object{"provider_id": provider, "model": "real-mine"}}})
	key := g.make("/user/api-keys", object{"name": "k"})
	for _, token := range []string{g.token, key["key"].(string)} { // makes the agent known, and counts nowhere yet
		response := g.open(t.Context(), http.MethodPost, chat, token, strings.Replace(asked, "small", "mine", 1))
		_ = response.Body.Close()
	}
	var usage struct {
		Data []struct {
			User  string `json:"user_id"`
			Key   string `json:"api_key_id"`
			Agent string `json:"agent_id"`
			Alias string `json:"model_alias"`
			Model string `json:"model"`
			Input int64  `json:"input_tokens"`
		}
	}
	got := g.send(http.MethodGet, base+"/admin/usage?"+url.Values{"group_by": {"hour,user,api_key,agent,model_alias,model"}}.Encode(), "").want(200)
	if err := json.Unmarshal([]byte(got.body), &usage); err != nil || len(usage.Data) != 2 {
		t.Fatalf("%v %s", err, got.body)
	}
	agent, keys := "", 0
	for _, u := range usage.Data {
		if u.User == "" || u.Alias != "mine" || u.Model != "real-mine" || u.Input != 30 || (u.Agent == "") != (u.Key == key["id"]) {
			t.Errorf("%+v", u)
		}
		if agent += u.Agent; u.Key == key["id"] {
			keys++
		}
	}
	if agent == "" || keys != 1 {
		t.Fatalf("%s", got.body)
	}

	const token, byKey, both, none = "token", "key", "both", "none" // the credentials whose calls count
	scopes := []struct {
		scope, id, value, of string
	}{
		{"org", "", "", both},
		{"user", "", "", both}, {"user", usage.Data[0].User, "", both}, {"user", "", "alice@example.test", both}, {"user", "", "bob@example.test", none},
		{"agent", "", "", token}, {"agent", agent, "", token},
		{"api_key", "", "", byKey}, {"api_key", key["id"].(string), "", byKey},
		{"mcp_server", "", "", none}, {"mcp_server", "", "small", none},
		{"llm_provider", "", "", both}, {"llm_provider", provider, "", both}, {"llm_provider", "", "stored", both}, {"llm_provider", "", "up", none},
		{"model", "", "", both}, {"model", "", "real-mine", both}, {"model", "", "mine", none},
		{"model_alias", "", "", both}, {"model_alias", "", "mine", both}, {"model_alias", "", "real-mine", none},
		{"role", "", "dev", both}, {"role", "", "eng", none}, {"group", "", "eng", both}, {"group", "", "core", none},
		{"team", "", "core", both}, {"team", "", "apollo", none}, {"project", "", "apollo", both}, {"project", "", "core", none},
	}
	want := make(map[string]string)
	for _, s := range scopes {
		for _, traffic := range []string{"all", "llm", "mcp"} {
			onlyMCP := s.scope == "mcp_server"
			onlyLLM := s.scope == "llm_provider" || s.scope == "model" || s.scope == "model_alias"
			if onlyMCP && traffic == "llm" || onlyLLM && traffic == "mcp" {
				continue
			}
			limit := object{"name": fmt.Sprint(s, traffic), "scope_type": s.scope, "traffic_type": traffic, "requests_per_minute": 1000, "tokens_per_minute": 1_000_000}
			if s.id != "" {
				limit["scope_id"] = s.id
			}
			if s.value != "" {
				limit["scope_value"] = s.value
			}
			g.make("/admin/rate-limits", limit)
			if want[limit["name"].(string)] = s.of; traffic == "mcp" {
				want[limit["name"].(string)] = none
			}
		}
	}
	ofToken, ofKey := int64(0), int64(0)
	for _, c := range []struct {
		token string
		calls *int64
	}{{g.token, &ofToken}, {key["key"].(string), &ofKey}} {
		response := g.open(t.Context(), http.MethodPost, chat, c.token, strings.Replace(asked, "small", "mine", 1))
		_ = response.Body.Close()
		*c.calls++
		found := g.status()
		if len(found) != len(want) {
			t.Fatalf("%d limits, %d were made", len(found), len(want))
		}
		for name, of := range want {
			calls := map[string]int64{token: ofToken, byKey: ofKey, both: ofToken + ofKey, none: 0}[of]
			if s := found[name]; s.Requests != calls || s.Tokens != calls*42 {
				t.Errorf("%s: %d requests and %d tokens after %d calls", name, s.Requests, s.Tokens, calls)
			}
		}
	}
}
