package gatewayapi

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/durward-gateway/durward/internal/gateway"
	"github.com/durward-gateway/durward/internal/identity/authn"
	"github.com/durward-gateway/durward/internal/identity/caller"
	"github.com/durward-gateway/durward/modules/app/routes"
	"github.com/durward-gateway/durward/storage"
)

// one makes one object of every kind and returns its id by path.
func (a *api) one(who *authn.Caller) map[string]string {
	a.t.Helper()
	ids := make(map[string]string)
	ids[keyPath] = a.make(who, "/admin/api-keys", object{"name": "k"})
	ids[keyPath+"/rotate"] = ids[keyPath]
	ids[ownKeyPath] = a.make(who, "/user/api-keys", object{"name": "k"})
	ids[limitPath] = a.make(who, "/admin/rate-limits", object{"name": "l", "scope_type": "org", "requests_per_minute": 1})
	ids[providerPath] = a.models(who, "small", "large")
	ids[mappingPath] = a.do(who, http.MethodGet, "/admin/model-mappings", nil).all()[0]["id"].(string)
	ids[smartPath] = a.make(who, "/admin/smart-models", object{"model_alias": "smart", "slots": []object{{"model_alias": "small", "label": "s"}}})
	ids[smartPath+"/eval"] = ids[smartPath]
	ids[budgetPath] = a.make(who, "/admin/budgets", object{"name": "b", "scope_type": "org", "period": "day", "amount": 1})
	return ids
}

func everyRoute(f func(r *routes.Route[*request], path string), ids map[string]string) {
	for _, address := range table {
		for _, r := range address.Methods {
			id := ids[r.Path]
			if id == "" {
				id = uuid.NewString()
			}
			f(r, strings.TrimPrefix(strings.ReplaceAll(r.Path, "{id}", id), "/api/llm-gateway"))
		}
	}
}

// state returns everything that administrators see.
func (a *api) state(who *authn.Caller) string {
	a.t.Helper()
	var all strings.Builder
	everyRoute(func(r *routes.Route[*request], path string) {
		if r.Method == http.MethodGet && !strings.Contains(r.Path, "{") {
			all.WriteString(a.do(who, r.Method, path, nil).body + "\n")
		}
	}, nil)
	return all.String()
}

func TestRoles(t *testing.T) {
	a := newAPI(t)
	ids := a.one(a.adam)
	before := a.state(a.adam)
	everyRoute(func(r *routes.Route[*request], path string) {
		t.Run("R01 "+r.Method+" "+path, func(t *testing.T) {
			a.t = t
			for name, powers := range map[string]caller.Powers{"user": {}, "auditor": {Auditor: true}, "policy editor": {PolicyEditor: true}, "operator": {Operator: true}} {
				who := *a.alice
				who.Powers = powers
				w := a.do(&who, r.Method, path, `{broken`)
				refused := w.status == http.StatusForbidden && strings.Contains(w.body, "This needs the role of an administrator")
				if may := r.Role == routes.User || powers.Auditor && r.Audit == routes.AuditRead; refused == may {
					t.Errorf("for the %s: %d %s", name, w.status, w.body)
				}
			}
			if r.Role == routes.Public {
				t.Error("nothing here is public")
			}
			if (r.Role == routes.User) != strings.HasPrefix(r.Path, userPrefix) {
				t.Errorf("role %s", r.Role)
			}
			// A preview is asked for with a body, and changes nothing.
			if reads := r.Method == http.MethodGet || r.Path == smartsPath+"/preview"; reads != (r.Audit == routes.AuditRead) {
				t.Errorf("audit class %s", r.Audit)
			}
			if r.Role != routes.User {
				if w := a.do(a.adam, r.Method, path+"?misspelt=1", object{}); w.status != http.StatusBadRequest || !strings.Contains(w.body, "misspelt") {
					t.Errorf("an unknown parameter: %d %s", w.status, w.body)
				}
			}
			a.do(nil, r.Method, path, nil).wantError(http.StatusUnauthorized, gateway.Unauthorized)
			w := httptest.NewRecorder()
			if err := a.handler.ServeHTTP(w, httptest.NewRequest(r.Method, "/api/llm-gateway"+path, nil), nil); err != nil || w.Code != http.StatusUnauthorized {
				t.Errorf("without durward_auth: %d %v", w.Code, err)
			}
		})
	}, ids)
	a.t = t
	if after := a.state(a.adam); after != before {
		t.Error(cmp.Diff(before, after))
	}
}

// O01: an object of another organization is answered exactly like one that does not exist, and like an id that is none,
// and stays as it is.
func TestForeignOrganization(t *testing.T) {
	a := newAPI(t)
	ids := a.one(a.adam)
	before := a.state(a.adam)
	full := []any{nil, object{}, object{"name": "Stolen"}, object{"disabled": true}, object{"enabled": 1}, `{`, object{"model_alias": "x", "amount": "-"}}
	everyRoute(func(r *routes.Route[*request], path string) {
		if !strings.Contains(r.Path, "{") {
			return
		}
		t.Run("O01 K05 "+r.Method+" "+r.Path, func(t *testing.T) {
			a.t = t
			for _, body := range full {
				foreign := a.do(a.eve, r.Method, path, body)
				for _, other := range []string{uuid.NewString(), "not-a-uuid", "%27%20OR%201%3D1", strings.Repeat("a", 5000)} {
					unknown := a.do(a.eve, r.Method, strings.ReplaceAll(path, ids[r.Path], other), body)
					if foreign.status != unknown.status || foreign.body != unknown.body {
						t.Errorf("foreign %d %s\n%.20s %d %s", foreign.status, foreign.body, other, unknown.status, unknown.body)
					}
				}
				if foreign.status < 400 {
					t.Errorf("%d %s", foreign.status, foreign.body)
				}
			}
			good := object{"disabled": true}
			if r.Path == smartPath+"/eval" {
				good = object{"examples": []object{{"input": "x", "slot": 0}}}
			}
			if w := a.do(a.eve, r.Method, path, good); w.status != http.StatusNotFound || !strings.Contains(w.body, `"NotFound"`) {
				t.Errorf("%d %s", w.status, w.body)
			}
		})
	}, ids)
	a.t = t
	if after := a.state(a.adam); after != before {
		t.Error(cmp.Diff(before, after))
	}
	for _, path := range []string{"/admin/api-keys", "/user/api-keys", "/admin/rate-limits", "/admin/rate-limits/status", "/admin/providers", "/admin/model-mappings", "/admin/smart-models", "/admin/budgets"} {
		if got := a.do(a.eve, http.MethodGet, path, nil).all(); len(got) != 0 {
			t.Errorf("O04 %s: %v", path, got)
		}
	}
	// O02: what belongs to another organization cannot be referred to either.
	a.do(a.eve, http.MethodPost, "/admin/api-keys", object{"name": "k", "user_id": a.alice.UserID}).wantBad("user_id: Value error, there is no such user")
	for scope, id := range map[string]string{"api_key": ids[keyPath], "llm_provider": ids[providerPath], "user": a.alice.UserID, "agent": uuid.NewString(), "mcp_server": uuid.NewString()} {
		for path, body := range map[string]object{
			"/admin/rate-limits": {"requests_per_minute": 1}, "/admin/budgets": {"amount": 1, "period": "day"},
		} {
			body["name"], body["scope_type"], body["scope_id"] = "x", scope, id
			if w := a.do(a.eve, http.MethodPost, path, body); w.status != http.StatusBadRequest || !strings.Contains(w.body, "scope_id: Value error, there is no such") {
				t.Errorf("O02 %s %s: %d %s", path, scope, w.status, w.body)
			}
		}
	}
	a.do(a.eve, http.MethodPost, "/admin/model-mappings", object{"model_alias": "m", "targets": []object{{"provider_id": ids[providerPath], "model": "m"}}}).
		wantBad("targets[0].provider_id: Value error, there is no such provider")
	// Names are an organization's own.
	a.one(a.eve)
}

func TestPersonalKeysAreTheirOwners(t *testing.T) {
	a := newAPI(t)
	mine := a.make(a.alice, "/user/api-keys", object{"name": "mine", "scopes": []string{"llm", "mcp"}})
	theirs := a.make(a.adam, "/user/api-keys", object{"name": "theirs"})
	if got := a.do(a.alice, http.MethodGet, "/user/api-keys", nil).all(); len(got) != 1 || got[0]["id"] != mine {
		t.Errorf("%v", got)
	}
	a.do(a.alice, http.MethodDelete, "/user/api-keys/"+theirs, nil).wantError(http.StatusNotFound, gateway.NotFound)
	if got := a.do(a.adam, http.MethodGet, "/admin/api-keys/"+theirs, nil).want(200); got["revoked_at"] != nil {
		t.Errorf("%v", got)
	}
	for range 2 {
		a.do(a.alice, http.MethodDelete, "/user/api-keys/"+mine, nil).wantBody(`{"revoked":true}`)
	}
}

func TestVerbsAndPaths(t *testing.T) {
	a := newAPI(t)
	for _, address := range table {
		path := strings.TrimPrefix(strings.ReplaceAll(strings.Join(address.Segments, "/"), "{id}", uuid.NewString()), "/api/llm-gateway")
		for _, verb := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "get", "QUERY"} {
			if address.Methods[verb] != nil {
				continue
			}
			w := a.do(a.adam, verb, path, nil)
			w.wantError(http.StatusMethodNotAllowed, gateway.MethodNotAllowed)
			if w.header.Get("Allow") != address.Allow || address.Allow == "" {
				t.Errorf("R02 %s %s: Allow %q", verb, path, w.header.Get("Allow"))
			}
		}
	}
	for _, path := range []string{"/admin/", "/user/", "/admin/api-keys/", "/admin//api-keys", "/admin/API-keys", "/admin/api-keys/x/y", "/user/usage", "/admin/api-keys;x"} {
		a.do(a.adam, http.MethodGet, path, nil).wantError(http.StatusNotFound, gateway.NotFound)
	}
	// Addresses outside this family are passed on.
	for _, path := range []string{"", "/v1/models", "/admin", "/ADMIN/api-keys", "/administration/x"} {
		if w := a.do(a.adam, http.MethodGet, path, nil); w.status != http.StatusTeapot {
			t.Errorf("%s: %d", path, w.status)
		}
	}
}

func TestFaults(t *testing.T) {
	a := newAPI(t)
	id := a.make(a.adam, "/admin/api-keys", object{"name": "k"})
	a.store.err = storage.ErrUnavailable
	// K08: nothing is said to be revoked that is not.
	w := a.do(a.adam, http.MethodDelete, "/admin/api-keys/"+id, nil)
	w.wantError(http.StatusServiceUnavailable, gateway.Unavailable)
	if w.header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	a.store.err = errSecretCause{}
	if w := a.do(a.adam, http.MethodGet, "/admin/api-keys", nil); w.status != 500 || strings.Contains(w.body, "SELECT") {
		t.Errorf("%d %s", w.status, w.body)
	}
	a.store.err = nil
	if got := a.do(a.adam, http.MethodGet, "/admin/api-keys/"+id, nil).want(200); got["revoked_at"] != nil {
		t.Errorf("%v", got)
	}
}

type errSecretCause struct{}

func (errSecretCause) Error() string { return "near SELECT: syntax error" }

func TestAuditEvents(t *testing.T) {
	var got []string
	for _, address := range table {
		for _, r := range address.Methods {
			if r.Audit != routes.AuditRead {
				got = append(got, r.Method+" "+r.Path+" "+r.Event())
			}
		}
	}
	slices.Sort(got)
	const p = "/api/llm-gateway"
	want := []string{
		"DELETE " + p + "/admin/api-keys/{id} api_key.delete", "DELETE " + p + "/admin/budgets/{id} budget.delete",
		"DELETE " + p + "/admin/model-mappings/{id} model_mapping.delete", "DELETE " + p + "/admin/providers/{id} llm_provider.delete",
		"DELETE " + p + "/admin/rate-limits/{id} rate_limit.delete", "DELETE " + p + "/admin/smart-models/{id} smart_model.delete",
		"DELETE " + p + "/user/api-keys/{id} api_key.delete", "PATCH " + p + "/admin/api-keys/{id} api_key.update",
		"POST " + p + "/admin/api-keys api_key.create", "POST " + p + "/admin/api-keys/{id}/rotate api_key.rotate", "POST " + p + "/admin/budgets budget.create",
		"POST " + p + "/admin/model-mappings model_mapping.create", "POST " + p + "/admin/providers llm_provider.create",
		"POST " + p + "/admin/rate-limits rate_limit.create", "POST " + p + "/admin/smart-models smart_model.create",
		"POST " + p + "/admin/smart-models/{id}/eval smart_model.eval",
		"POST " + p + "/user/api-keys api_key.create", "PUT " + p + "/admin/budgets/{id} budget.update",
		"PUT " + p + "/admin/model-mappings/{id} model_mapping.update", "PUT " + p + "/admin/providers/{id} llm_provider.update",
		"PUT " + p + "/admin/rate-limits/{id} rate_limit.update", "PUT " + p + "/admin/smart-models/{id} smart_model.update",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestCaddyfile(t *testing.T) {
	for text, ok := range map[string]bool{"durward_gateway": true, "durward_gateway x": false, "durward_gateway {\n x y\n}": false} {
		if err := new(Handler).UnmarshalCaddyfile(caddyfile.NewTestDispenser(text)); (err == nil) != ok {
			t.Errorf("%q: %v", text, err)
		}
	}
	if id := (Handler{}).CaddyModule().ID; id != "http.handlers.durward_gateway" {
		t.Error(id)
	}
}
