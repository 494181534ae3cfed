package gatewayapi

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/durward-gateway/durward/internal/gateway"
	"github.com/durward-gateway/durward/internal/identity/authn"
	"github.com/durward-gateway/durward/internal/llm/accounts"
	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/modules/providers"
	"github.com/durward-gateway/durward/storage"
)

const stamps = `"created_at":"2026-03-01T12:00:00.000000Z","updated_at":"2026-03-01T12:00:00.000000Z"}`

func TestProviders(t *testing.T) {
	a := newAPI(t)
	const secret = "sk-very-secret"
	made := a.do(a.adam, http.MethodPost, "/admin/providers", object{
		"name": "vLLM", "kind": "openai", "base_url": "https://models.example.test/v1", "api_key": secret, "timeouts": object{"connect_ms": 1500},
	})
	shown := `{"id":"ID","org_id":"` + a.adam.OrganizationID + `","name":"vLLM","kind":"openai","source":"custom","base_url":"https://models.example.test/v1","has_api_key":true,` +
		`"timeouts":{"connect_ms":1500,"response_ms":null,"idle_ms":null},"stream_options":"auto",` + stamps
	made.wantBody(shown)
	id := made.want(200)["id"].(string)
	path := "/admin/providers/" + id
	a.do(a.adam, http.MethodGet, path, nil).wantBody(shown)
	a.do(a.adam, http.MethodGet, "/admin/providers", nil).wantBody("[" + shown + "]")
	holds := func(want string) {
		t.Helper()
		p, err := a.store.LLMProvider(t.Context(), a.adam.OrganizationID, id)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(p.SealedSecret), secret) {
			t.Error("the secret is stored in the clear")
		}
		if want == "" {
			if p.SealedSecret != nil {
				t.Error("a secret is stored that was cleared")
			}
			return
		}
		open := func() (string, error) {
			plain, err := a.core.Keyring.Open(p.SealedSecret, seal.ProviderPlace(p.OrganizationID, p.ID, p.Kind, p.BaseURL))
			return string(plain), err
		}
		if got, err := open(); err != nil || got != want {
			t.Errorf("holds %q, %v", got, err)
		}
		// Moved to another place, it does not open.
		p.BaseURL = "https://evil.example.test"
		if _, err := open(); !errors.Is(err, seal.ErrOpen) {
			t.Errorf("opens for another base URL: %v", err)
		}
	}
	holds(secret)
	// Absent keeps, null clears. A secret does not go to another place.
	a.do(a.adam, http.MethodPut, path, object{"name": "vLLM 2", "timeouts": nil}).want(200)
	holds(secret)
	for _, change := range []object{{"base_url": "https://evil.example.test"}, {"base_url": nil}, {"kind": "anthropic"}} {
		a.do(a.adam, http.MethodPut, path, change).wantBad("api_key: Value error, give it again")
	}
	holds(secret)
	if got := a.do(a.adam, http.MethodPut, path, object{"base_url": nil, "api_key": "other"}).want(200); got["base_url"] != nil || got["has_api_key"] != true {
		t.Errorf("%v", got)
	}
	holds("other")
	if got := a.do(a.adam, http.MethodPut, path, object{"api_key": nil}).want(200); got["has_api_key"] != false || got["name"] != "vLLM 2" {
		t.Errorf("%v", got)
	}
	holds("")
	a.do(a.adam, http.MethodPost, "/admin/providers", object{"name": " VLLM 2", "kind": "anthropic"}).wantError(409, gateway.Conflict)

	w := a.do(a.adam, http.MethodPost, "/admin/providers", object{"name": 1, "kind": "x", "base_url": 2, "api_key": "with\nnewline " + secret, "timeouts": object{"idle_ms": 0}})
	w.wantBad("name", "kind", "base_url", "api_key", "timeouts.idle_ms")
	if strings.Contains(w.body, secret) {
		t.Error("the secret is shown")
	}
	for _, url := range []string{
		"http://models.example.test", "https://127.0.0.1/v1", "https://[::1]", "https://169.254.169.254/latest", "https://localhost", "https://u:p@x.example",
		"https://x.example/#f", "https://x.example/?q", "ftp://x.example", "https://", "/v1", "https://2130706433", "::",
	} {
		a.do(a.adam, http.MethodPost, "/admin/providers", object{"name": "x", "kind": "openai", "base_url": url}).wantBad("base_url: Value error, ")
	}
}

// TestConfiguredProviders checks that those of the configuration are there to refer to, for every organization, and are
// not changed here.
func TestConfiguredProviders(t *testing.T) {
	a := newAPI(t)
	a.configure(kinds, accounts.AccountSettings{
		Kind: "openai", Name: "house", BaseURL: "https://models.example.test/v1", Secret: seal.NewSecret("sk-very-secret"), Timeouts: storage.ModelTimeouts{Idle: time.Second},
	}, accounts.AccountSettings{Kind: "anthropic", Name: "anthropic"})
	own := a.make(a.eve, "/admin/providers", object{"name": "a", "kind": "openai"})
	for _, who := range []*authn.Caller{a.adam, a.eve} {
		all := a.do(who, http.MethodGet, "/admin/providers", nil).all()
		if who == a.eve {
			if all[0]["id"] != own {
				t.Errorf("%v", all)
			}
			all = all[1:]
		}
		if len(all) != 2 || all[0]["name"] != "anthropic" || all[1]["name"] != "house" {
			t.Fatalf("%v", all)
		}
		house := all[1]["id"].(string)
		shown := `{"id":"` + house + `","org_id":null,"name":"house","kind":"openai","source":"config","base_url":null,"has_api_key":true,` +
			`"timeouts":{"connect_ms":null,"response_ms":null,"idle_ms":1000},"stream_options":"auto","created_at":null,"updated_at":null}`
		a.do(who, http.MethodGet, "/admin/providers/"+house, nil).wantBody(shown)
		a.do(who, http.MethodPut, "/admin/providers/"+house, object{"name": 1}).wantBad("name")
		a.do(who, http.MethodPut, "/admin/providers/"+house, object{"api_key": "mine"}).wantError(403, gateway.Forbidden)
		a.do(who, http.MethodDelete, "/admin/providers/"+house, nil).wantError(403, gateway.Forbidden)
		a.make(who, "/admin/model-mappings", object{"model_alias": "small", "targets": []object{{"provider_id": house, "model": "m"}}})
		a.make(who, "/admin/rate-limits", object{"name": "l", "scope_type": "llm_provider", "scope_id": house, "requests_per_minute": 1})
		a.make(who, "/admin/budgets", object{"name": "b", "scope_type": "llm_provider", "scope_id": house, "period": "day", "amount": 1})
	}
	a.do(a.adam, http.MethodPost, "/admin/providers", object{"name": "House", "kind": "openai"}).wantError(409, gateway.Conflict)
	a.do(a.adam, http.MethodPost, "/admin/rate-limits", object{"name": "l", "scope_type": "llm_provider", "scope_id": own, "requests_per_minute": 1}).wantBad("scope_id")
	a.do(a.adam, http.MethodDelete, "/admin/providers/"+own, nil).wantError(404, gateway.NotFound)
}

// TestKindsOfProviders checks that every linked-in kind can be chosen, and one without an address of its own needs a
// base URL.
func TestKindsOfProviders(t *testing.T) {
	a := newAPI(t)
	a.configure(map[string]accounts.Protocol{"inhouse": homeless{}})
	a.do(a.adam, http.MethodPost, "/admin/providers", object{"name": "x", "kind": "openai"}).wantBad("kind")
	a.do(a.adam, http.MethodPost, "/admin/providers", object{"name": "x", "kind": "inhouse"}).wantBad("base_url: Value error")
	id := a.make(a.adam, "/admin/providers", object{"name": "x", "kind": "inhouse", "base_url": "https://models.example.test"})
	a.do(a.adam, http.MethodPut, "/admin/providers/"+id, object{"base_url": nil}).wantBad("base_url: Value error")
}

// homeless is a kind of provider that has no base URL of its own.
type homeless struct{ providers.OpenAI }

func (homeless) BaseURL() string { return "" }

func TestMappings(t *testing.T) {
	a := newAPI(t)
	provider := a.models(a.adam, "small")
	path := "/admin/model-mappings/"
	made := a.do(a.adam, http.MethodPost, path[:len(path)-1], object{
		"model_alias": "openai/large:latest", "targets": []object{{"provider_id": provider, "model": "gpt", "weight": 3, "timeouts": object{"idle_ms": 9}}}, "fallbacks": []string{"small"}, "max_output_tokens": 8192,
	})
	made.wantBody(`{"id":"ID","org_id":"` + a.adam.OrganizationID + `","model_alias":"openai/large:latest","description":"",` +
		`"targets":[{"provider_id":"ID","model":"gpt","weight":3,"timeouts":{"connect_ms":null,"response_ms":null,"idle_ms":9}}],"fallbacks":["small"],"max_output_tokens":8192,` + stamps)
	id := made.want(200)["id"].(string)
	if got := a.do(a.adam, http.MethodPut, path+id, object{"description": "d"}).want(200); got["description"] != "d" || len(got["fallbacks"].([]any)) != 1 || len(got["targets"].([]any)) != 1 {
		t.Errorf("%v", got)
	}
	// Objects in use stay.
	small := ""
	for _, m := range a.do(a.adam, http.MethodGet, "/admin/model-mappings", nil).all() {
		if m["model_alias"] == "small" {
			small = m["id"].(string)
		}
	}
	a.do(a.adam, http.MethodDelete, path+small, nil).wantError(409, gateway.Conflict)
	a.do(a.adam, http.MethodPut, path+small, object{"model_alias": "tiny"}).wantError(409, gateway.Conflict)
	a.do(a.adam, http.MethodDelete, "/admin/providers/"+provider, nil).wantError(409, gateway.Conflict)
	if got := a.do(a.adam, http.MethodPut, path+id, object{"fallbacks": nil, "description": nil, "max_output_tokens": nil}).want(200); got["description"] != "" || got["max_output_tokens"] != nil || len(got["fallbacks"].([]any)) != 0 {
		t.Errorf("%v", got)
	}
	a.do(a.adam, http.MethodDelete, path+small, nil).wantBody(`{"deleted":true}`)
	a.do(a.adam, http.MethodPut, path+id, object{"targets": nil}).wantBad("targets")
	target := []object{{"provider_id": provider, "model": "m"}}
	for name, tt := range map[string]struct {
		body object
		want []string
	}{
		"nothing":          {object{}, []string{"model_alias", "targets"}},
		"no target":        {object{"model_alias": "m", "targets": []object{}}, []string{"targets"}},
		"half a target":    {object{"model_alias": "m", "targets": []any{object{"weight": -1}, 3}}, []string{"targets[1]", "targets[0].provider_id", "targets[0].model", "targets[0].weight"}},
		"unknown provider": {object{"model_alias": "m", "targets": []object{target[0], {"provider_id": uuid.NewString(), "model": "m"}}}, []string{"targets[1].provider_id: Value error, there is no such provider"}},
		"unknown fallback": {object{"model_alias": "m", "targets": target, "fallbacks": []string{"openai/large:latest", "gone"}}, []string{"fallbacks[1]: Value error, there is no such alias"}},
		"no output":        {object{"model_alias": "m", "targets": target, "max_output_tokens": 0}, []string{"max_output_tokens: Input should be greater than or equal to 1"}},
		"itself":           {object{"model_alias": "m", "targets": target, "fallbacks": []string{"m"}}, []string{"fallbacks[0]: Value error"}},
		"alias":            {object{"model_alias": "a b\r\nx: y", "targets": target}, []string{"model_alias"}},
	} {
		t.Run(name, func(t *testing.T) {
			a.t = t
			a.do(a.adam, http.MethodPost, "/admin/model-mappings", tt.body).wantBad(tt.want...)
		})
	}
	a.t = t
	a.do(a.adam, http.MethodPost, "/admin/model-mappings", object{"model_alias": "openai/large:latest", "targets": target}).wantError(409, gateway.Conflict)
}

func TestSmartModels(t *testing.T) {
	a := newAPI(t)
	provider := a.models(a.adam, "small", "large", "judge")
	slots := []object{{"model_alias": "small", "label": "easy"}, {"model_alias": "large", "label": "hard"}}
	full := object{
		"model_alias": "smart", "description": "d", "enabled": true, "determiner_model_alias": "judge", "slots": slots, "context_breakpoints": []int{8000},
		"determiner_input_max_chars": 2000, "default_slot_on_failure": 1,
	}
	made := a.do(a.adam, http.MethodPost, "/admin/smart-models", full)
	shown := `{"id":"ID","org_id":"` + a.adam.OrganizationID + `","model_alias":"smart","description":"d","enabled":true,"determiner_model_alias":"judge",` +
		`"slots":[{"model_alias":"small","label":"easy"},{"model_alias":"large","label":"hard"}],"context_breakpoints":[8000],` +
		`"determiner_input_max_chars":2000,"default_slot_on_failure":1,"sticky":false,` + stamps
	made.wantBody(shown)
	id := made.want(200)["id"].(string)
	path := "/admin/smart-models/" + id
	a.do(a.adam, http.MethodGet, path, nil).wantBody(shown)
	a.do(a.adam, http.MethodGet, "/admin/smart-models", nil).wantBody("[" + shown + "]")
	a.do(a.adam, http.MethodPut, path, object{}).wantBody(shown)
	// A default below a floor that can be reached warns, where it is saved.
	if got := a.do(a.adam, http.MethodPut, path, object{"default_slot_on_failure": 0, "enabled": false}).want(200); len(got["warnings"].([]any)) != 1 || got["enabled"] != false {
		t.Errorf("%v", got)
	}
	if got := a.do(a.adam, http.MethodPut, path, object{"context_breakpoints": nil}).want(200); got["warnings"] != nil || len(got["context_breakpoints"].([]any)) != 0 {
		t.Errorf("%v", got)
	}
	for name, tt := range map[string]struct {
		change object
		want   []string
	}{
		"no slots":            {object{"slots": []object{}}, []string{"slots"}},
		"null slots":          {object{"slots": nil}, []string{"slots"}},
		"unknown alias":       {object{"slots": []object{slots[0], {"model_alias": "gone", "label": ""}}}, []string{"slots[1].model_alias: Value error, there is no such alias"}},
		"smart slot":          {object{"slots": []object{{"model_alias": "smart", "label": ""}}}, []string{"slots[0].model_alias: Value error, this must be another"}},
		"unknown determiner":  {object{"determiner_model_alias": "gone"}, []string{"determiner_model_alias: Value error, there is no such alias"}},
		"no determiner":       {object{"determiner_model_alias": nil}, []string{"determiner_model_alias: Value error, several slots need"}},
		"default slot":        {object{"default_slot_on_failure": 2}, []string{"default_slot_on_failure: Value error, there is no slot"}},
		"negative default":    {object{"default_slot_on_failure": -1}, []string{"default_slot_on_failure"}},
		"fewer slots":         {object{"slots": slots[:1], "default_slot_on_failure": 1}, []string{"default_slot_on_failure"}},
		"breakpoints descend": {object{"context_breakpoints": []int{5, 5}, "slots": append([]object{slots[0]}, slots...)}, []string{"context_breakpoints[1]: Value error, token counts have to ascend"}},
		"breakpoint zero":     {object{"context_breakpoints": []int{0}}, []string{"context_breakpoints[0]"}},
		"many breakpoints":    {object{"context_breakpoints": []int{1, 2}}, []string{"context_breakpoints: Value error, there is at most one"}},
		"no characters":       {object{"determiner_input_max_chars": 0}, []string{"determiner_input_max_chars"}},
		"types":               {object{"model_alias": 1, "enabled": "yes", "sticky": 1, "slots": "s", "determiner_input_max_chars": nil}, []string{"model_alias", "enabled", "sticky", "slots", "determiner_input_max_chars"}},
	} {
		t.Run(name, func(t *testing.T) {
			a.t = t
			a.do(a.adam, http.MethodPut, path, tt.change).wantBad(tt.want...)
			body := object{}
			for k, v := range full {
				body[k] = v
			}
			for k, v := range tt.change {
				body[k] = v
			}
			if name != "smart slot" && name != "null slots" {
				body["model_alias"] = "another"
				if v, ok := tt.change["model_alias"]; ok {
					body["model_alias"] = v
				}
				if w := a.do(a.adam, http.MethodPost, "/admin/smart-models", body); w.status != http.StatusBadRequest {
					t.Errorf("created: %d %s", w.status, w.body)
				}
			}
		})
	}
	a.t = t
	// An alias is one of either.
	full["model_alias"] = "small"
	a.do(a.adam, http.MethodPost, "/admin/smart-models", full).wantError(409, gateway.Conflict)
	a.do(a.adam, http.MethodPut, path, object{"model_alias": "judge"}).wantError(409, gateway.Conflict)
	a.do(a.adam, http.MethodPost, "/admin/model-mappings", object{"model_alias": "smart", "targets": []object{{"provider_id": provider, "model": "m"}}}).wantError(409, gateway.Conflict)
	for _, m := range a.do(a.adam, http.MethodGet, "/admin/model-mappings", nil).all() {
		a.do(a.adam, http.MethodDelete, "/admin/model-mappings/"+m["id"].(string), nil).wantError(409, gateway.Conflict)
	}
	a.do(a.adam, http.MethodDelete, path, nil).wantBody(`{"deleted":true}`)
	// One slot needs nobody to choose.
	a.make(a.adam, "/admin/smart-models", object{"model_alias": "one", "slots": slots[:1]})
}
