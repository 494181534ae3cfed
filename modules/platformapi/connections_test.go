package platformapi

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"github.com/durward-gateway/durward/internal/gateway"
	"github.com/durward-gateway/durward/internal/identity/authn"
	"github.com/durward-gateway/durward/internal/mcp/streams"
	"github.com/durward-gateway/durward/modules/app/paths"
	"github.com/durward-gateway/durward/storage"
)

func (a *api) status(who *authn.Caller, server string) any {
	a.t.Helper()
	got := a.do(who, http.MethodGet, "/api/servers/"+server+"/connection", nil).want(200)
	if len(got) != 1 {
		a.t.Errorf("%v", got)
	}
	return got["status"]
}

func TestConnectOAuth(t *testing.T) {
	a := newAPI(t)
	entry := a.entry(a.adam, object{"oauth": known})
	created := a.do(a.adam, http.MethodPost, "/api/servers?test=false", object{
		"name": "Tracker", "mcp_server_directory_id": entry, "client_id": "client-1234", "client_secret": clientSecretText,
	}).want(200)
	id := created["id"].(string)
	checkAuthURL := func(raw any) {
		t.Helper()
		u, err := url.Parse(fmt.Sprint(raw))
		if err != nil || u.Host != "id.tracker.example" || u.Query().Get("client_id") != "client-1234" ||
			u.Query().Get("redirect_uri") != publicURL+paths.Callback || u.Query().Get("code_challenge_method") != "S256" {
			t.Errorf("auth_url %v", raw)
		}
	}
	// The creator's own connection has begun, and nobody else's.
	checkAuthURL(created["auth_url"])
	if _, err := uuid.Parse(fmt.Sprint(created["connection_id"])); err != nil {
		t.Error(err)
	}
	if a.status(a.adam, id) != "pending" || a.status(a.alice, id) != "available" {
		t.Error("O08: whose attempt is it?")
	}
	for _, path := range []string{"/api/servers/" + id, "/api/servers/tracker", "/api/servers/by-slug/tracker"} {
		for _, body := range []any{nil, object{}, object{"unknown": 1}} {
			got := a.do(a.alice, http.MethodPost, path+"/connect?return_url="+url.QueryEscape(publicURL+"/done"), body).want(200)
			checkAuthURL(got["auth_url"])
			u, _ := url.Parse(got["auth_url"].(string))
			if got["state"] != u.Query().Get("state") || got["state"] == "" || got["message"] == "" || len(got) != 4 {
				t.Errorf("%v", got)
			}
		}
	}
	if a.status(a.alice, "by-slug/tracker") != "pending" {
		t.Error("no attempt is under way")
	}
	for _, bad := range []string{
		"https://evil.example/", publicURL + ".evil.example/", "javascript:alert(1)", "//evil.example", publicURL + "@evil.example/", "/relative",
		publicURL + "/\r\nX: 1", "{env.SECRET}",
	} {
		a.do(a.alice, http.MethodPost, "/api/servers/"+id+"/connect?return_url="+url.QueryEscape(bad), nil).wantProblems("query.return_url value_error")
	}
	// The shape of a request is judged before what it names is looked up.
	a.do(a.alice, http.MethodPost, "/api/servers/"+uuid.NewString()+"/connect?return_url=https://evil.example/", nil).wantProblems("query.return_url value_error")
	a.do(a.alice, http.MethodPost, "/api/servers/"+id+"/connect?return_url="+strings.Repeat("a", 2049), `[]`).wantProblems(
		"query.return_url string_too_long", "body dict_type")
	a.do(a.alice, http.MethodDelete, "/api/servers/"+id+"/connection", nil).wantError(404, gateway.ConnectionNotFound)
	a.do(a.alice, http.MethodPost, "/api/servers/"+uuid.NewString()+"/connect", nil).wantError(404, gateway.ServerNotFound)
	a.do(a.alice, http.MethodGet, "/api/servers/unknown/connection", nil).wantError(404, gateway.ServerNotFound)
}

func TestConnectWithoutClient(t *testing.T) {
	a := newAPI(t)
	for name, entry := range map[string]object{
		"No client": {"oauth": known}, "Nothing discovered": {"public": true}, "Registration fails": {"oauth": object{
			"issuer": "https://id.tracker.example", "registration_endpoint": "https://id.tracker.example/register",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			a.t = t
			entry["name"] = name
			id := a.server(a.adam, name, a.entry(a.adam, entry))
			got := a.do(a.alice, http.MethodPost, "/api/servers/"+id+"/connect", object{}).wantError(500, gateway.OAuthConfigurationError)
			if !strings.Contains(got["message"].(string), "OAuth server configuration not found") {
				t.Error(got)
			}
		})
	}
	if !strings.Contains(a.log.String(), "no OAuth client") {
		t.Error("the log does not say why")
	}
}

func TestConnectTyped(t *testing.T) {
	a := newAPI(t)
	for _, tt := range []struct {
		provider string
		good     []object
		bad      map[string]object // by the field that is named
	}{
		{"api_key", []object{{"api_key": "canary-key"}}, map[string]object{"api_key": {}}},
		{"bearer_token", []object{{"bearer_token": "canary-token"}, {"token": "canary-token"}}, map[string]object{"bearer_token": {"api_key": "x"}}},
		{"basic_auth", []object{{"username": "u", "password": "canary-word"}}, map[string]object{
			"username": {"password": "canary-word"}, "password": {"username": "u"},
		}},
		{"none", []object{{}}, nil},
	} {
		t.Run(tt.provider, func(t *testing.T) {
			a.t = t
			id := a.server(a.adam, tt.provider, a.entry(a.adam, object{"name": tt.provider, "provider": tt.provider}))
			connect := "/api/servers/" + id + "/connect"
			for field, body := range tt.bad {
				got := a.do(a.alice, http.MethodPost, connect, body).wantError(400, gateway.BadRequest)
				if !strings.Contains(got["message"].(string), field) || strings.Contains(got["message"].(string), "canary") {
					t.Errorf("%v", got)
				}
			}
			if tt.provider != "none" && a.status(a.alice, id) != "available" {
				t.Error("connected by a refused request")
			}
			var connection any
			for _, body := range tt.good {
				got := a.do(a.alice, http.MethodPost, connect, body).want(200)
				if connection == nil {
					connection = got["connection_id"]
				}
				if diff := cmp.Diff(object{"auth_url": nil, "connection_id": connection, "state": nil, "message": "Connected"}, got); diff != "" {
					t.Error(diff)
				}
			}
			if a.status(a.alice, id) != "connected" {
				t.Error("not connected")
			}
			if tt.provider != "none" && a.status(a.adam, id) != "available" {
				t.Error("O07, O08: another user is connected too")
			}
			a.do(a.adam, http.MethodDelete, "/api/servers/"+id+"/connection", nil).wantError(404, gateway.ConnectionNotFound)
			key := storage.ConnectionKey{OrganizationID: a.alice.OrganizationID, UserID: a.alice.UserID, ServerID: id}
			ctx, done := a.core.Streams.Open(t.Context(), streams.Owner{Organization: key.OrganizationID, User: key.UserID, Server: id}, streams.Listen, start.AddDate(100, 0, 0), streams.Limits{}, nil)
			defer done()
			a.do(a.alice, http.MethodDelete, "/api/servers/"+id+"/connection", nil).want(204)
			if reason, ok := streams.EndedFor(ctx); !ok || reason != streams.Disconnected {
				t.Errorf("the stream goes on: %v", reason)
			}
			a.do(a.alice, http.MethodDelete, "/api/servers/"+id+"/connection", nil).wantError(404, gateway.ConnectionNotFound)
			if tt.provider != "none" && a.status(a.alice, id) != "available" {
				t.Error("still connected")
			}
		})
	}
	if strings.Contains(a.log.String(), "canary") {
		t.Errorf("the log shows a credential: %s", a.log)
	}
}

func TestConnectBodies(t *testing.T) {
	a := newAPI(t)
	id := a.server(a.adam, "Keyed", a.entry(a.adam, object{"provider": "api_key"}))
	connect := "/api/servers/" + id + "/connect"
	for _, member := range []string{"api_key", "bearer_token", "token", "username", "password"} {
		for _, value := range []string{"1", "null", "true", `["canary"]`, `{"a":"canary"}`} {
			w := a.do(a.alice, http.MethodPost, connect, `{"`+member+`":`+value+`}`)
			w.wantProblems("body." + member + " string_type") // B04
			if strings.Contains(w.body, "canary") {
				t.Error(w.body)
			}
		}
	}
	a.do(a.alice, http.MethodPost, connect, object{"api_key": strings.Repeat("x", 8193)}).wantProblems("body.api_key string_too_long")
	w := a.do(a.alice, http.MethodPost, connect, object{"api_key": "canary\r\nHost: evil"}) // H08
	if w.wantError(400, gateway.BadRequest); strings.Contains(w.body, "canary") {
		t.Error(w.body)
	}
	r := httptest.NewRequest(http.MethodPost, publicURL+connect, strings.NewReader("api_key=x"))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	a.send(a.alice, r).wantError(415, gateway.UnsupportedMediaType)
}

func TestDeleteServerEndsWhatRuns(t *testing.T) {
	a := newAPI(t)
	id := a.server(a.adam, "Keyed", a.entry(a.adam, object{"provider": "api_key"}))
	a.do(a.alice, http.MethodPost, "/api/servers/"+id+"/connect", object{"api_key": "canary"}).want(200)
	owner := streams.Owner{Organization: a.alice.OrganizationID, User: a.alice.UserID, Server: id}
	ctx, done := a.core.Streams.Open(t.Context(), owner, streams.Listen, start.AddDate(100, 0, 0), streams.Limits{}, nil)
	defer done()
	a.do(a.adam, http.MethodDelete, "/api/servers/"+id, nil).want(200)
	if reason, ok := streams.EndedFor(ctx); !ok || reason != streams.ServerDeleted {
		t.Errorf("the stream goes on: %v", reason)
	}
	// O15: the name and slug are free, and nothing of the former server is left.
	id = a.server(a.adam, "Keyed", a.entry(a.adam, object{"provider": "api_key"}))
	if got := a.status(a.alice, id); got != "available" {
		t.Errorf("status %v", got)
	}
}
