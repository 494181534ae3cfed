package gatewayapi

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/durward-gateway/durward/internal/gateway"
	"github.com/durward-gateway/durward/internal/identity/apikey"
	"github.com/durward-gateway/durward/internal/identity/authn"
	"github.com/durward-gateway/durward/internal/seal"
	"github.com/durward-gateway/durward/storage"
)

func TestKeyBody(t *testing.T) {
	a := newAPI(t)
	made := a.do(a.adam, http.MethodPost, "/admin/api-keys", object{
		"name": "Batch", "user_id": a.alice.UserID, "scopes": []string{"model:small"}, "expires_at": "2026-03-01T14:00:00+01:00",
		"id": uuid.NewString(), "org_id": a.eve.OrganizationID, "key": "dw-mine", "unknown": 1,
	})
	raw := made.want(200)["key"].(string)
	if err := apikey.Check(raw); err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	shown := `{"id":"ID","org_id":"` + a.adam.OrganizationID + `","created_by_user_id":"` + a.adam.UserID + `","name":"Batch","key_prefix":"` + raw[:8] +
		`","scopes":["model:small"],"created_at":"2026-03-01T12:00:00.000000Z","user_id":"` + a.alice.UserID +
		`","group_name":null,"agent_id":null,"expires_at":"2026-03-01T13:00:00.000000Z","revoked_at":null,"disabled":false,"last_used_at":null`
	made.wantBody(shown + `,"key":"` + raw + `"}`)
	id := made.want(200)["id"].(string)
	a.do(a.adam, http.MethodGet, "/admin/api-keys/"+id, nil).wantBody(shown + "}")
	a.do(a.adam, http.MethodGet, "/admin/api-keys", nil).wantBody("[" + shown + "}]")
	a.do(a.alice, http.MethodGet, "/user/api-keys", nil).wantBody("[" + shown + "}]")

	// K06: what is stored is the HMAC, and finds the key with its user.
	found := 0
	for _, digest := range apikey.NewDigester(a.core.Keyring).Lookup(seal.NewSecret(raw)) {
		if holder, err := a.store.APIKeyByHMAC(t.Context(), digest); err == nil {
			found++
			if holder.ID != id || holder.User == nil || holder.User.ID != a.alice.UserID || !holder.Valid(start) {
				t.Errorf("%+v", holder)
			}
		}
	}
	if found != 1 {
		t.Errorf("found %d times", found)
	}
	a.do(a.adam, http.MethodPatch, "/admin/api-keys/"+id, object{"disabled": true}).wantBody(strings.Replace(shown, `"disabled":false`, `"disabled":true`, 1) + "}")
	a.do(a.adam, http.MethodPatch, "/admin/api-keys/"+id, object{"disabled": false}).want(200)
	// K05: again is the same, and the row stays.
	for range 2 {
		a.do(a.adam, http.MethodDelete, "/admin/api-keys/"+id, nil).wantBody(`{"revoked":true}`)
	}
	a.do(a.adam, http.MethodPatch, "/admin/api-keys/"+id, object{"disabled": false}).want(200)
	if got := a.do(a.adam, http.MethodGet, "/admin/api-keys/"+id, nil).want(200); got["revoked_at"] != "2026-03-01T12:00:00.000000Z" {
		t.Errorf("%v", got)
	}
	own := a.do(a.alice, http.MethodPost, "/user/api-keys", object{"name": "Mine", "scopes": []string{"mcp"}, "user_id": a.adam.UserID, "group_name": "g"}).want(200)
	if own["user_id"] != a.alice.UserID || own["created_by_user_id"] != a.alice.UserID || own["group_name"] != nil {
		t.Errorf("%v", own)
	}
	group := a.do(a.adam, http.MethodPost, "/admin/api-keys", object{"name": "g", "group_name": "ops", "scopes": nil, "expires_at": nil, "user_id": nil}).want(200)
	if group["group_name"] != "ops" || group["user_id"] != nil || group["scopes"].([]any)[0] != "llm" {
		t.Errorf("%v", group)
	}
}

// TestKeyChanges checks that a change of a key keeps the rules of its creation.
func TestKeyChanges(t *testing.T) {
	a := newAPI(t)
	path := "/admin/api-keys/" + a.make(a.adam, "/admin/api-keys", object{"name": "k", "expires_at": "2026-03-02T12:00:00Z"})
	own := "/admin/api-keys/" + a.make(a.alice, "/user/api-keys", object{"name": "own", "scopes": []string{"llm", "mcp"}})
	got := a.do(a.adam, http.MethodPatch, path, object{"name": "Other", "scopes": []string{"model:small"}, "expires_at": "2026-03-03T12:00:00Z"}).want(200)
	if got["name"] != "Other" || got["scopes"].([]any)[0] != "model:small" || got["expires_at"] != "2026-03-03T12:00:00.000000Z" || got["disabled"] != false {
		t.Errorf("%v", got)
	}
	got = a.do(a.adam, http.MethodPatch, path, object{"expires_at": nil, "disabled": true}).want(200)
	if got["name"] != "Other" || got["expires_at"] != nil || got["disabled"] != true {
		t.Errorf("%v", got)
	}
	a.do(a.adam, http.MethodPatch, path, object{"name": " ", "scopes": []any{"admin"}, "expires_at": "2026-03-01T12:00:00Z", "disabled": 1}).wantBad(
		"name", "scopes[0]: Value error, a scope", "expires_at: Value error, the time must be in the future", "disabled")
	a.do(a.adam, http.MethodPatch, path, object{"name": nil, "scopes": nil}).wantBad("name", "scopes")
	// K09: an administrator makes no key for MCP servers out of another one, but may narrow one.
	a.do(a.adam, http.MethodPatch, path, object{"scopes": []string{"llm", "mcp"}}).wantBad("scopes[1]: Value error, mcp is only")
	if got := a.do(a.adam, http.MethodPatch, own, object{"scopes": []string{"mcp"}}).want(200); len(got["scopes"].([]any)) != 1 {
		t.Errorf("%v", got)
	}
}

// TestRotation checks that a new secret replaces the former one, is shown once, and is nobody's but the user's for a key that
// acts at MCP servers.
func TestRotation(t *testing.T) {
	a := newAPI(t)
	made := a.do(a.adam, http.MethodPost, "/admin/api-keys", object{"name": "k", "user_id": a.alice.UserID}).want(200)
	path := "/admin/api-keys/" + made["id"].(string)
	holder := func(raw any) (storage.APIKeyHolder, error) {
		return a.store.APIKeyByHMAC(t.Context(), apikey.NewDigester(a.core.Keyring).Digest(seal.NewSecret(raw.(string))))
	}
	former := made["key"]
	for range 2 {
		got := a.do(a.adam, http.MethodPost, path+"/rotate", nil).want(200)
		if got["id"] != made["id"] || got["key"] == former || got["key_prefix"] != got["key"].(string)[:8] || got["user_id"] != a.alice.UserID || got["created_at"] != made["created_at"] {
			t.Errorf("%v", got)
		}
		if _, err := holder(former); !errors.Is(err, storage.ErrNotFound) {
			t.Errorf("the former secret: %v", err)
		}
		if h, err := holder(got["key"]); err != nil || h.ID != made["id"] || !h.Valid(start) {
			t.Errorf("%+v, %v", h, err)
		}
		if shown := a.do(a.adam, http.MethodGet, path, nil); strings.Contains(shown.body, got["key"].(string)) {
			t.Errorf("shown again: %s", shown.body)
		}
		former = got["key"]
	}
	by := *a.adam
	by.Login, by.Agent = "login", "robot"
	a.do(&by, http.MethodPost, path+"/rotate", nil).wantError(403, gateway.Forbidden)
	own := a.make(a.alice, "/user/api-keys", object{"name": "own", "scopes": []string{"llm", "mcp"}})
	a.do(a.adam, http.MethodPost, "/admin/api-keys/"+own+"/rotate", nil).wantError(403, gateway.Forbidden)
	a.do(a.adam, http.MethodDelete, path, nil).want(200)
	a.do(a.adam, http.MethodPost, path+"/rotate", nil).wantError(409, gateway.Conflict)
	if h, err := holder(former); err != nil || h.Valid(start) {
		t.Errorf("refused, and done: %+v, %v", h, err)
	}
}

// TestKeysForServers checks that an agent's token makes no key for MCP servers, which would escape the agent's
// policies; nor does anybody but an administrator say whose policies govern it (K09).
func TestKeysForServers(t *testing.T) {
	a := newAPI(t)
	agent := storage.Agent{
		ID: uuid.NewString(), OrganizationID: a.adam.OrganizationID, CreatedAt: start, UpdatedAt: start,
		Application: storage.Application{ID: uuid.NewString(), OrganizationID: a.adam.OrganizationID, Issuer: "https://id.example.test", ExternalID: "robot", CreatedAt: start, UpdatedAt: start},
	}
	if err := a.store.CreateAgent(t.Context(), agent); err != nil {
		t.Fatal(err)
	}
	for _, client := range []string{"robot", "somebody", ""} {
		by := *a.alice
		by.Agent = client
		a.do(&by, http.MethodPost, "/user/api-keys", object{"name": "k", "scopes": []string{"llm", "mcp"}}).wantError(403, gateway.Forbidden)
		a.do(&by, http.MethodPost, "/user/api-keys", object{"name": "k", "scopes": []string{"llm"}}).want(200)
	}
	machine := *a.alice
	machine.Machine = true
	a.do(&machine, http.MethodPost, "/user/api-keys", object{"name": "k", "scopes": []string{"mcp"}}).wantError(403, gateway.Forbidden)

	made := a.do(a.adam, http.MethodPost, "/user/api-keys", object{"name": "k", "scopes": []string{"mcp"}, "agent_id": agent.ID}).want(200)
	if made["agent_id"] != agent.ID {
		t.Errorf("%v", made)
	}
	for name, tc := range map[string]struct {
		who *authn.Caller
		id  any
	}{"a user": {a.alice, agent.ID}, "another organization": {a.eve, agent.ID}, "no agent": {a.adam, uuid.NewString()}, "no id": {a.adam, "robot"}} {
		if got := a.do(tc.who, http.MethodPost, "/user/api-keys", object{"name": "k", "scopes": []string{"mcp"}, "agent_id": tc.id}); got.status != 400 {
			t.Errorf("%s: %d %s", name, got.status, got.body)
		}
	}
	keys, err := a.store.UserAPIKeys(t.Context(), a.adam.OrganizationID, a.adam.UserID)
	if err != nil || len(keys) != 1 || keys[0].AgentID != agent.ID {
		t.Errorf("%+v %v", keys, err)
	}
}

// TestKeysOfAUser checks that a user has so many keys, whoever makes them; those that are over do not count.
func TestKeysOfAUser(t *testing.T) {
	a := newAPI(t)
	var made object
	for range maxKeys {
		made = a.do(a.alice, http.MethodPost, "/user/api-keys", object{"name": "k"}).want(200)
	}
	a.do(a.alice, http.MethodPost, "/user/api-keys", object{"name": "k"}).wantError(409, gateway.Conflict)
	a.do(a.adam, http.MethodPost, "/admin/api-keys", object{"name": "k", "user_id": a.alice.UserID}).wantError(409, gateway.Conflict)
	a.do(a.adam, http.MethodPost, "/admin/api-keys", object{"name": "k", "group_name": "g"}).want(200)
	a.do(a.adam, http.MethodPost, "/user/api-keys", object{"name": "k"}).want(200)
	a.do(a.alice, http.MethodDelete, "/user/api-keys/"+made["id"].(string), nil).want(200)
	a.do(a.alice, http.MethodPost, "/user/api-keys", object{"name": "k"}).want(200)
	a.do(a.alice, http.MethodPost, "/user/api-keys", object{"name": "k"}).wantError(409, gateway.Conflict)
}

// TestNewKeysOfAUser checks that making keys is bounded too, because keys that are over stay.
func TestNewKeysOfAUser(t *testing.T) {
	a := newAPI(t)
	for i := range maxNewKeys {
		key := storage.APIKey{
			ID: uuid.NewString(), OrganizationID: a.alice.OrganizationID, UserID: a.alice.UserID, CreatedBy: a.alice.UserID, Name: "k", Prefix: "dw-00000",
			HMAC: fmt.Appendf(nil, "%032d", i), Scopes: []string{"llm"}, CreatedAt: start.Add(-time.Hour), ExpiresAt: start.Add(-time.Minute),
		}
		if i == 0 {
			key.CreatedAt = start.Add(-24 * time.Hour)
		}
		if err := a.core.Store.CreateAPIKey(t.Context(), key); err != nil {
			t.Fatal(err)
		}
	}
	a.do(a.alice, http.MethodPost, "/user/api-keys", object{"name": "k"}).want(200)
	a.do(a.alice, http.MethodPost, "/user/api-keys", object{"name": "k"}).wantError(409, gateway.Conflict)
	a.do(a.adam, http.MethodPost, "/user/api-keys", object{"name": "k"}).want(200)
}

// TestKeysForProvisioning checks that only administrators make keys for provisioning, and that no other key becomes one.
func TestKeysForProvisioning(t *testing.T) {
	a := newAPI(t)
	a.do(a.alice, http.MethodPost, "/user/api-keys", object{"name": "k", "scopes": []string{"scim"}}).want(http.StatusBadRequest)
	a.do(a.adam, http.MethodPost, "/user/api-keys", object{"name": "k", "scopes": []string{"scim"}}).want(http.StatusBadRequest)
	made := a.do(a.adam, http.MethodPost, "/admin/api-keys", object{"name": "k", "scopes": []string{"scim"}}).want(200)
	other := a.do(a.adam, http.MethodPost, "/admin/api-keys", object{"name": "k"}).want(200)
	a.do(a.adam, http.MethodPatch, "/admin/api-keys/"+other["id"].(string), object{"scopes": []string{"scim"}}).want(http.StatusBadRequest)
	a.do(a.adam, http.MethodPatch, "/admin/api-keys/"+made["id"].(string), object{"scopes": []string{"llm"}}).want(http.StatusBadRequest)
	a.do(a.adam, http.MethodPatch, "/admin/api-keys/"+made["id"].(string), object{"scopes": []string{"scim"}, "name": "renamed"}).want(200)
}

func TestKeyProblems(t *testing.T) {
	a := newAPI(t)
	for name, tt := range map[string]struct {
		body any
		want []string
	}{
		"nothing":             {object{}, []string{"name: Field required"}},
		"empty body":          {"", []string{"Field required"}},
		"malformed JSON":      {`{"name":`, []string{"JSON decode error"}},
		"array":               {`[]`, []string{"Input should be a valid object"}},
		"K04 in the past":     {object{"name": "k", "expires_at": "2026-03-01T11:59:59Z"}, []string{"expires_at: Value error, the time must be in the future"}},
		"K04 now":             {object{"name": "k", "expires_at": "2026-03-01T12:00:00Z"}, []string{"expires_at"}},
		"no time":             {object{"name": "k", "expires_at": "tomorrow"}, []string{"expires_at"}},
		"both":                {object{"name": "k", "user_id": a.alice.UserID, "group_name": "g"}, []string{"group_name: Value error, give user_id or group_name"}},
		"unknown user":        {object{"name": "k", "user_id": uuid.NewString()}, []string{"user_id: Value error, there is no such user"}},
		"no scope":            {object{"name": "k", "scopes": []string{}}, []string{"scopes: List should have at least 1 item"}},
		"scopes":              {object{"name": "k", "scopes": []any{"admin", "mcp", 7, "llm"}}, []string{"scopes[2]", "scopes[0]: Value error, a scope must be", "scopes[1]: Value error, mcp is only"}},
		"scim and more":       {object{"name": "k", "scopes": []string{"scim", "llm"}}, []string{"scopes: Value error, a key with the scope scim has no other"}},
		"scim of a user":      {object{"name": "k", "scopes": []string{"scim"}, "user_id": a.alice.UserID}, []string{"scopes: Value error, scim is only for new keys"}},
		"scim of a group":     {object{"name": "k", "scopes": []string{"scim"}, "group_name": "g"}, []string{"scopes: Value error, scim is only for new keys"}},
		"all at once":         {object{"name": "", "user_id": "x", "group_name": 1, "scopes": "llm"}, []string{"name", "scopes", "user_id", "group_name"}},
		"a name with control": {object{"name": "a\nb"}, []string{"name: Value error, control"}},
		"blank":               {object{"name": "  "}, []string{"name: Value error, a name must not be blank"}},
		"null name":           {object{"name": nil}, []string{"name: Input should be a valid string"}},
	} {
		t.Run(name, func(t *testing.T) {
			a.t = t
			a.do(a.adam, http.MethodPost, "/admin/api-keys", tt.body).wantBad(tt.want...)
		})
	}
	a.t = t
	if got := a.do(a.adam, http.MethodGet, "/admin/api-keys", nil).all(); len(got) != 0 {
		t.Errorf("stored: %v", got)
	}
	id := a.make(a.adam, "/admin/api-keys", object{"name": "k"})
	a.do(a.adam, http.MethodPatch, "/admin/api-keys/"+id, object{}).wantBad("disabled: Field required")
	a.do(a.adam, http.MethodPatch, "/admin/api-keys/"+id, object{"disabled": nil}).wantBad("disabled")
	// Other forms than JSON, and too much of it.
	w := a.do(a.adam, http.MethodPost, "/admin/api-keys", `{"name":"`+strings.Repeat("a", 1<<20)+`"}`)
	w.wantError(http.StatusRequestEntityTooLarge, gateway.PayloadTooLarge)
	// A user who was revoked has no new keys in the same instant.
	if _, err := a.store.RevokeUser(t.Context(), a.alice.OrganizationID, a.alice.UserID, start); err != nil {
		t.Fatal(err)
	}
	a.do(a.alice, http.MethodPost, "/user/api-keys", object{"name": "k"}).wantError(http.StatusUnauthorized, gateway.Unauthorized)
	a.do(a.adam, http.MethodPost, "/admin/api-keys", object{"name": "k", "user_id": a.alice.UserID}).wantBad("user_id")
}

// TestRotationLater checks that both keys are good until the former one's end, that the new one is the same but for its id, and
// that no limit of the key is had twice.
func TestRotationLater(t *testing.T) {
	a := newAPI(t)
	made := a.do(a.adam, http.MethodPost, "/admin/api-keys", object{"name": "k", "group_name": "ops", "scopes": []string{"model:a"}, "expires_at": "2026-04-01T12:00:00Z"}).want(200)
	path := "/admin/api-keys/" + made["id"].(string)
	holder := func(raw any) storage.APIKeyHolder {
		h, err := a.store.APIKeyByHMAC(t.Context(), apikey.NewDigester(a.core.Keyring).Digest(seal.NewSecret(raw.(string))))
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	end := start.Add(time.Hour)
	got := a.do(a.adam, http.MethodPost, path+"/rotate", object{"former_ends_at": end.Format(time.RFC3339)}).want(200)
	for _, member := range []string{"name", "group_name", "user_id", "scopes", "expires_at", "agent_id", "disabled"} {
		if diff := cmp.Diff(made[member], got[member]); diff != "" {
			t.Errorf("%s (-former +new)\n%s", member, diff)
		}
	}
	if got["id"] == made["id"] || got["key"] == made["key"] {
		t.Errorf("%v", got)
	}
	for _, at := range []time.Time{start, end.Add(-time.Second), end.Add(time.Second)} {
		former, next := holder(made["key"]), holder(got["key"])
		if former.Valid(at) != at.Before(end) || !next.Valid(at) {
			t.Errorf("at %s the former one is valid: %v, the new one: %v", at, former.Valid(at), next.Valid(at))
		}
	}
	// Made again, such as when its answer was lost, it would make a key that ends with the former one.
	for _, ends := range []string{end.Format(time.RFC3339), "2026-03-20T12:00:00Z"} {
		a.do(a.adam, http.MethodPost, path+"/rotate", object{"former_ends_at": ends}).wantError(409, gateway.Conflict)
	}
	if h := holder(made["key"]); h.Valid(end.Add(time.Second)) {
		t.Errorf("the former key lives longer: %+v", h)
	}
	for _, wrong := range []any{start.Add(-time.Second).Format(time.RFC3339), "soon", 5} {
		if w := a.do(a.adam, http.MethodPost, path+"/rotate", object{"former_ends_at": wrong}); w.status != 400 {
			t.Errorf("%v: %d %s", wrong, w.status, w.body)
		}
	}
	limited := a.make(a.adam, "/admin/api-keys", object{"name": "limited"})
	a.make(a.adam, "/admin/rate-limits", object{"name": "l", "scope_type": "api_key", "scope_id": limited, "requests_per_minute": 1})
	a.do(a.adam, http.MethodPost, "/admin/api-keys/"+limited+"/rotate", object{"former_ends_at": end.Format(time.RFC3339)}).wantError(409, gateway.Conflict)
	a.do(a.adam, http.MethodPost, "/admin/api-keys/"+limited+"/rotate", object{"former_ends_at": nil}).want(200)
}
