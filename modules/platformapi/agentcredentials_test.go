package platformapi

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/durward-gateway/durward/internal/gateway"
	"github.com/durward-gateway/durward/internal/identity/authserver"
	"github.com/durward-gateway/durward/modules/app/authorization"
	"github.com/durward-gateway/durward/storage"
)

// publicKey returns the key of RFC 8037 appendix A.2, with its thumbprint.
func publicKey() (key object, thumbprint string) {
	return object{"kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}, "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k"
}

func TestAgentCredentialShape(t *testing.T) {
	a := newAPI(t)
	a.core.Authorization = new(authorization.Server)
	id := a.agent(a.adam, "robot")
	path := "/api/agents/" + id + "/credentials"
	if got := a.do(a.adam, http.MethodGet, path, nil).want(200); len(got["data"].([]any)) != 0 {
		t.Errorf("%v", got)
	}
	key, thumbprint := publicKey()
	keyed := a.do(a.adam, http.MethodPost, path, object{"name": "Nightly", "jwks": object{"keys": []any{key}}}).want(200)
	want := object{
		"id": keyed["id"], "client_id": id, "name": "Nightly", "token_endpoint_auth_method": "private_key_jwt", "key_thumbprints": []any{thumbprint},
		"created_at": "2026-03-01T12:00:00.000000Z",
	}
	if diff := cmp.Diff(want, keyed); diff != "" {
		t.Error(diff)
	}
	made := a.do(a.adam, http.MethodPost, path, object{"name": nil, "jwks": nil}).want(200)
	secret, _ := made["client_secret"].(string)
	plain := object{
		"id": made["id"], "client_id": id, "name": "", "token_endpoint_auth_method": "client_secret_basic", "key_thumbprints": []any{},
		"created_at": "2026-03-01T12:00:00.000000Z", "client_secret": secret,
	}
	if diff := cmp.Diff(plain, made); diff != "" || len(secret) < 50 {
		t.Error(diff, secret)
	}
	stored, err := a.store.AgentCredential(t.Context(), a.adam.OrganizationID, made["id"].(string))
	if err != nil || string(stored.SecretHash) != authserver.HashSecret(secret) || stored.Keys != "" {
		t.Errorf("%+v, %v", stored, err)
	}
	delete(plain, "client_secret")
	list := a.do(a.adam, http.MethodGet, path, nil)
	if diff := cmp.Diff(object{"data": []any{plain, want}}, list.want(200)); diff != "" || strings.Contains(list.body, secret) {
		t.Error(diff)
	}
	a.do(a.adam, http.MethodPost, path, nil).want(200) // an empty body is a secret without a name
	for _, bad := range []string{uuid.NewString(), made["id"].(string)} {
		for _, of := range []string{id, a.agent(a.adam, "other "+bad)} {
			wantStatus := http.StatusNotFound
			if bad != made["id"] || of != id {
				a.do(a.adam, http.MethodDelete, "/api/agents/"+of+"/credentials/"+bad, nil).wantError(wantStatus, gateway.NotFound)
			}
		}
	}
	a.do(a.adam, http.MethodDelete, path+"/"+made["id"].(string), nil).want(204)
	a.do(a.adam, http.MethodDelete, path+"/"+made["id"].(string), nil).wantError(404, gateway.NotFound)
}

func TestAgentCredentialProblems(t *testing.T) {
	a := newAPI(t)
	id := a.agent(a.adam, "robot")
	path := "/api/agents/" + id + "/credentials"
	// Where nobody could log in with it none is made, but those of before can be listed and deleted.
	a.do(a.adam, http.MethodPost, path, object{}).wantError(409, gateway.Conflict)
	a.do(a.adam, http.MethodGet, path, nil).want(200)
	a.core.Authorization = new(authorization.Server)
	key, _ := publicKey()
	private := object{"kty": "OKP", "crv": "Ed25519", "x": key["x"], "d": "nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A"}
	for name, c := range map[string]struct {
		body object
		want string
	}{
		"a name that is none":  {object{"name": 7}, "body.name string_type"},
		"a long name":          {object{"name": strings.Repeat("x", 256)}, "body.name string_too_long"},
		"keys of another type": {object{"jwks": []any{private}}, "body.jwks value_error"},
		"a text":               {object{"jwks": "nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A"}, "body.jwks value_error"},
		"a key alone":          {object{"jwks": private}, "body.jwks value_error"},
		"no keys":              {object{"jwks": object{"keys": []any{}}}, "body.jwks value_error"},
		"a private key":        {object{"jwks": object{"keys": []any{key, private}}}, "body.jwks value_error"},
		"a symmetric key":      {object{"jwks": object{"keys": []any{object{"kty": "oct", "k": "nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A"}}}}, "body.jwks value_error"},
	} {
		t.Run(name, func(t *testing.T) {
			a.t = t
			w := a.do(a.adam, http.MethodPost, path, c.body)
			w.wantProblems(c.want)
			if strings.Contains(w.body, "nWGxne") || strings.Contains(a.log.String(), "nWGxne") {
				t.Errorf("the key is shown: %s", w.body)
			}
		})
	}
	a.t = t
	for range storage.MaxAgentCredentials {
		a.do(a.adam, http.MethodPost, path, object{}).want(200)
	}
	w := a.do(a.adam, http.MethodPost, path, object{})
	if got := w.wantError(409, gateway.Conflict); got["details"].(object)["field"] != "credentials" {
		t.Error(w.body)
	}
	unknown := a.do(a.adam, http.MethodPost, "/api/agents/"+uuid.NewString()+"/credentials", object{})
	unknown.wantError(404, gateway.AgentNotFound)
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		if w := a.do(a.eve, method, path, nil); w.body != unknown.body || w.status != 404 {
			t.Errorf("O01 %s: %d %s", method, w.status, w.body)
		}
	}
}
